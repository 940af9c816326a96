"""Compilation: from models and observed state to a plan."""
