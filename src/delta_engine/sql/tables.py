"""Statements and clauses about tables and schemas as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from delta_engine.sql.text import idents, quote_ident, sql_comment, sql_literal, sql_pairs, sql_paths

BINARY_COLLATION: Final = "DEFAULT COLLATION UTF8_BINARY"
"""The clause of CREATE TABLE by which a table, and its later columns, inherit no collation from its schema."""


def sql_partitioned_by(columns: Sequence[str]) -> str:
    """Return the clause of CREATE TABLE for Hive-style partitions."""
    return f"PARTITIONED BY ({idents(columns)})"


def sql_location(location: str) -> str:
    """Return the clause of CREATE TABLE for the location of an external table's files."""
    return f"LOCATION {sql_literal(location)}"


def sql_schema(catalog: str, schema: str) -> str:
    """Return the SQL that addresses a schema, as the catalog stores its name."""
    return f"{quote_ident(catalog.lower())}.{quote_ident(schema.lower())}"


def sql_create_schema(catalog: str, schema: str, comment: str = "") -> str:
    """Create a schema."""
    return f"CREATE SCHEMA {quote_ident(catalog)}.{quote_ident(schema)}{sql_comment(comment)}"


def sql_create_table(
    table: str,
    *,
    columns: Sequence[str],
    constraints: Sequence[str] = (),
    comment: str = "",
    properties: Mapping[str, str],
    clauses: Sequence[str] = (),
    cluster_by: Sequence[Sequence[str]] = (),
) -> str:
    """Create a whole Delta table in one statement.

    Without IF NOT EXISTS, which reports success if another principal has just created a different table.
    """
    body = ",\n  ".join((*columns, *constraints))
    table_comment = f"\nCOMMENT {sql_literal(comment)}" if comment else ""
    tblproperties = f"\nTBLPROPERTIES ({sql_pairs(properties)})" if properties else ""
    clustering = f"\nCLUSTER BY ({sql_paths(cluster_by)})" if cluster_by else ""
    further = "".join(f"\n{clause}" for clause in clauses)
    return (
        f"CREATE TABLE {table} (\n  {body}\n)\nUSING delta{clustering}{table_comment}{further}{tblproperties}"
    )


def sql_register_table(table: str, location: str) -> str:
    """Create an external table over the Delta table at a location, as it is there."""
    return f"CREATE TABLE {table}\nUSING delta\n{sql_location(location)}"


def sql_set_comment(securable: str, comment: str) -> str:
    """Set the comment of a table or schema (such as ``TABLE `dev`.`silver`.`orders` ``); empty clears it."""
    return f"COMMENT ON {securable} IS {sql_literal(comment)}"


def sql_on_streaming_table(statement: str) -> str:
    """Return a statement about a table as one about a streaming table (docs: "ALTER STREAMING TABLE")."""
    table = "ALTER TABLE "
    return (
        f"ALTER STREAMING TABLE {statement.removeprefix(table)}" if statement.startswith(table) else statement
    )


def sql_set_table_properties(table: str, properties: Mapping[str, str]) -> str:
    """Set properties; other properties remain."""
    return f"ALTER TABLE {table} SET TBLPROPERTIES ({sql_pairs(properties)})"


def sql_unset_table_properties(table: str, keys: Iterable[str]) -> str:
    """Remove properties, which may be missing."""
    return f"ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ({', '.join(map(sql_literal, keys))})"


def sql_cluster_automatically(table: str) -> str:
    """Let the platform choose the clustering columns."""
    return f"ALTER TABLE {table} CLUSTER BY AUTO"


def sql_alter_clustering(table: str, places: Sequence[Sequence[str]]) -> str:
    """Cluster by other columns or fields; an empty list removes clustering."""
    return f"ALTER TABLE {table} CLUSTER BY {f'({sql_paths(places)})' if places else 'NONE'}"


def sql_drop_table(table: str) -> str:
    """Drop a table; Databricks can restore a managed one for some days (`sql_undrop_table`)."""
    return f"DROP TABLE {table}"


def sql_rewrite_table(
    table: str,
    *,
    partitioned_by: Sequence[str],
    comment: str,
    properties: Mapping[str, str],
    location: str | None,
    clauses: Sequence[str] = (),
) -> str:
    """Replace a table by its own rows, in one commit."""
    whole = [
        *([sql_partitioned_by(partitioned_by)] if partitioned_by else []),
        *([f"COMMENT {sql_literal(comment)}"] if comment else []),
        *clauses,
        *([sql_location(location)] if location is not None else []),
        *([f"TBLPROPERTIES ({sql_pairs(properties)})"] if properties else []),
    ]
    further = "".join(f"\n{clause}" for clause in whole)
    return f"CREATE OR REPLACE TABLE {table}\nUSING delta{further}\nAS SELECT * FROM {table}"


def sql_restore(table: str, version: int) -> str:
    """Bring a table back to one of its versions."""
    return f"RESTORE TABLE {table} TO VERSION AS OF {version}"


def sql_set_managed(table: str) -> str:
    """Copy the files of an external table to where the catalog keeps them, and manage it (docs: "SET MANAGED")."""
    return f"ALTER TABLE {table} SET MANAGED"


def sql_unset_managed(table: str) -> str:
    """Return a table to the location that it had before `sql_set_managed`; rows that were added since stay."""
    return f"ALTER TABLE {table} UNSET MANAGED"


def sql_undrop_table(table: str) -> str:
    """Restore a table dropped within the catalog's recovery period, by default seven days.

    Its keys are not restored, and a catalog or schema may have no recovery period (docs: "UNDROP", "DROP TABLE").
    """
    return f"UNDROP TABLE {table}"


def sql_rename_table(observed: str, desired: str) -> str:
    """Rename a table within its schema."""
    return f"ALTER TABLE {observed} RENAME TO {desired}"


def sql_drop_empty_schema(catalog: str, schema: str) -> str:
    """Drop a schema, if it exists; the platform refuses this for a schema with content."""
    return f"DROP SCHEMA IF EXISTS {sql_schema(catalog, schema)} RESTRICT"
