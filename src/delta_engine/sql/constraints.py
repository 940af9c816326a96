"""Statements and clauses about keys and checks."""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine.sql.string_literals import with_portable_literals
from delta_engine.sql.text import idents, quote_ident, sql_path


def sql_primary_key(name: str, columns: Sequence[str], *, rely: bool = False) -> str:
    """Return the constraint clause of a primary key, for CREATE TABLE and ADD."""
    trusted = " NOT ENFORCED RELY" if rely else ""
    return f"CONSTRAINT {quote_ident(name)} PRIMARY KEY ({idents(columns)}){trusted}"


def sql_foreign_key(
    name: str,
    columns: Sequence[str],
    references: str,
    referenced_columns: Sequence[str],
    *,
    rely: bool = False,
) -> str:
    """Return the constraint clause of a foreign key, for CREATE TABLE and ADD; `references` is a table's address."""
    trusted = " NOT ENFORCED RELY" if rely else ""
    return (
        f"CONSTRAINT {quote_ident(name)} FOREIGN KEY ({idents(columns)}) "
        f"REFERENCES {references} ({idents(referenced_columns)}){trusted}"
    )


def sql_add_constraint(table: str, clause: str) -> str:
    """Add a constraint clause to an existing table."""
    return f"ALTER TABLE {table} ADD {clause}"


def sql_add_check(table: str, name: str, expression: str) -> str:
    """Add an enforced check; the platform first checks existing rows."""
    return (
        f"ALTER TABLE {table} ADD CONSTRAINT {quote_ident(name)} CHECK ({with_portable_literals(expression)})"
    )


def sql_not_null_condition(*path: str) -> str:
    """Return the condition that a column is not null, or that a field is not null inside a struct that is not null."""
    named = sql_path(path)
    around = "".join(f"{sql_path(path[:depth])} IS NULL OR " for depth in range(1, len(path)))
    return f"{around}{named} IS NOT NULL"


def sql_drop_constraint(table: str, name: str, *, if_exists: bool = False) -> str:
    """Drop a constraint; the name is the catalog's spelling."""
    guard = "IF EXISTS " if if_exists else ""
    return f"ALTER TABLE {table} DROP CONSTRAINT {guard}{quote_ident(name)}"
