"""Drift: changes made outside the engine, their authors, and their handling."""
