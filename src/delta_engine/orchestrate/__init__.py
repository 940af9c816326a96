"""Orchestration: the whole run, from models to a changed catalog."""
