"""Log records and spans of a run; independent of tables and plans."""
