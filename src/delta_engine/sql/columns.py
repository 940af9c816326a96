"""Statements and clauses about columns; several columns share a statement if the platform accepts that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from delta_engine.models.parts import Identity
from delta_engine.models.types import DataType
from delta_engine.sql.string_literals import with_portable_literals
from delta_engine.sql.text import quote_ident, sql_comment, sql_data_type, sql_literal, sql_path


def sql_column_definition(
    path: Sequence[str], data_type: DataType, *, is_nullable: bool = True, extra: str = "", comment: str = ""
) -> str:
    """Return a column, or a nested field at `path`, with `extra` clauses between NOT NULL and COMMENT."""
    not_null = "" if is_nullable else " NOT NULL"
    clause = f" {extra}" if extra else ""
    return f"{sql_path(path)} {sql_data_type(data_type)}{not_null}{clause}{sql_comment(comment)}"


def sql_generation(generated_as: str | None, identity: Identity | None) -> str:
    """Return the clause of a generated or identity column; empty for other columns."""
    if identity is not None:
        kind = "ALWAYS" if identity.always else "BY DEFAULT"
        return f"GENERATED {kind} AS IDENTITY (START WITH {identity.start} INCREMENT BY {identity.step})"
    return "" if generated_as is None else f"GENERATED ALWAYS AS ({with_portable_literals(generated_as)})"


def sql_default(expression: str) -> str:
    """Return the clause for a column's default."""
    return f"DEFAULT {with_portable_literals(expression)}"


def sql_add_columns(table: str, definitions: Iterable[str]) -> str:
    """Add columns, all in one statement."""
    return f"ALTER TABLE {table} ADD COLUMNS ({', '.join(definitions)})"


def sql_drop_columns(table: str, paths: Iterable[Sequence[str]]) -> str:
    """Drop columns and fields, all in one statement."""
    return f"ALTER TABLE {table} DROP COLUMNS ({', '.join(map(sql_path, paths))})"


def sql_set_column_comments(table: str, comments: Iterable[tuple[Sequence[str], str]]) -> str:
    """Set (path, comment) pairs in one statement; an empty comment clears."""
    return _alter_columns(table, ((path, f"COMMENT {sql_literal(text)}") for path, text in comments))


def sql_set_not_null(table: str, paths: Iterable[Sequence[str]]) -> str:
    """Tighten columns to NOT NULL in one statement; Databricks checks the rows, open-source Spark refuses it."""
    return _alter_columns(table, ((path, "SET NOT NULL") for path in paths))


def sql_drop_not_null(table: str, paths: Iterable[Sequence[str]]) -> str:
    """Make columns and fields nullable in one statement."""
    return _alter_columns(table, ((path, "DROP NOT NULL") for path in paths))


def sql_set_defaults(table: str, defaults: Iterable[tuple[str, str]]) -> str:
    """Set (name, expression) pairs as defaults in one statement; the table needs `allowColumnDefaults`."""
    return _alter_columns(table, (((name,), f"SET {sql_default(text)}") for name, text in defaults))


def sql_drop_defaults(table: str, names: Iterable[str]) -> str:
    """Drop defaults in one statement; a column may have no default."""
    return _alter_columns(table, (((name,), "DROP DEFAULT") for name in names))


def sql_move_column(table: str, name: str, after: str | None) -> str:
    """Move a column behind another one, or to the front; one per statement (Spark 4.1.1 ignores earlier moves)."""
    place = "FIRST" if after is None else f"AFTER {quote_ident(after)}"
    return _alter_columns(table, [((name,), place)])


def sql_change_column_types(table: str, types: Iterable[tuple[Sequence[str], DataType]]) -> str:
    """Change (path, type) pairs in one statement."""
    return _alter_columns(table, ((path, f"TYPE {sql_data_type(kind)}") for path, kind in types))


def sql_rename_column(table: str, path: Sequence[str], desired: str) -> str:
    """Rename a column or nested field; the table needs column mapping."""
    return f"ALTER TABLE {table} RENAME COLUMN {sql_path(path)} TO {quote_ident(desired)}"


def _alter_columns(table: str, changes: Iterable[tuple[Sequence[str], str]]) -> str:
    # Several columns in one ALTER COLUMN are one commit. COLUMN occurs once: repeating it is a parse
    # error in Spark 4.1.
    listed = ", ".join(f"{sql_path(path)} {change}" for path, change in changes)
    return f"ALTER TABLE {table} ALTER COLUMN {listed}"
