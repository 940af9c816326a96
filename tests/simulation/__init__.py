"""A deterministic simulator: whole stories of engines, people and writers, each made from one number."""
