"""What is ours: what was recorded of a table or schema."""
