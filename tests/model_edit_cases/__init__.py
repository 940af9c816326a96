"""Edits of model files, case by case; `tests/unit/test_model_edits.py` makes them."""
