"""Validation: what may be done. Rules read models and plans, and never change them."""
