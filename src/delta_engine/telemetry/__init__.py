"""What is told of a run while it goes on, to machines: log records and spans. Knows nothing of tables and plans."""
