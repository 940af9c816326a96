"""Compilation: from models and observed state to a plan, and from a plan to its statements and their order."""
