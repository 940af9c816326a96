"""Reports of plans and results, as text, pages and JSON. Reports decide and run nothing."""
