"""Drift: what changed outside the engine, by whom, and what to do about it."""
