"""What is ours: what was recorded of a securable."""
