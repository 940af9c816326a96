"""Keys and checks: how they are named, what foreign keys point at, and how keys are kept where a platform has none."""
