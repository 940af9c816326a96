"""Drift: what changed behind the engine's back, by whom, and what to do about it."""
