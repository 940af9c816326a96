"""Volumes and small Delta tables of Unity Catalog, as a store needs them."""
