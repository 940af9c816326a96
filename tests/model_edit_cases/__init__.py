"""Edits of model files, case by case; `tests/unit/config/test_model_edits.py` makes them."""
