"""Where deployment states and their journals live: one module per kind of store."""
