"""Validation: what the engine may do. Rules read models and plans, and never change them."""
