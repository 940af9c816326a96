"""Observed state: what the catalog holds right now, and who reads it."""
