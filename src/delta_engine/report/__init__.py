"""Reports of plans and results, as text, pages and JSON. Nothing here decides or runs anything."""
