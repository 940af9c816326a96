"""Catalog state: what the catalog holds, and its readers."""
