"""The Python API: opens an engine, calls a use case, and returns a value that shows itself. Decides nothing."""
