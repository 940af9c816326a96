"""Log records and spans of a run, for machines. Knows nothing of tables and plans."""
