"""What runs SQL and what it can do: the port, capabilities, error conditions, sessions, warehouses, addressing."""
