"""Tests. Unit tests mirror `src` and need neither Spark nor network."""
