"""Constraints: how they are named."""
