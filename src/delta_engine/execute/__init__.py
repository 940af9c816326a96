"""Execution: runs compiled plans. It applies no policy."""
