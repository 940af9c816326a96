"""Runs SQL: the port, capabilities, error conditions, sessions, warehouses, addressing."""
