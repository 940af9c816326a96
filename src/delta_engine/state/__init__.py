"""Catalog state: what the catalog holds now, and the readers that read it."""
