"""Statements that give existing rows their values, and queries that verify the result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from delta_engine.models.types import CharacterType, DataType, MapType, parts, uses_type
from delta_engine.sql.string_literals import with_portable_literals
from delta_engine.sql.text import quote_ident, sql_data_type, sql_literal

BEFORE = "VERSION AS OF :before"
AFTER = "VERSION AS OF :after"
"""What `sql_compare_versions` has in place of the two versions, which are known when the rows are written."""


class Assignment(NamedTuple):
    """A column and the SQL of its values.

    Args:
        value: the expression of the new value.
        condition: true for the rows that need it.
    """

    column: str
    value: str
    condition: str


def sql_converted(expression: str, data_type: DataType) -> str:
    """Return an expression as a value of a type; the platform itself refuses texts beyond a limited length."""
    value = with_portable_literals(expression)
    if isinstance(data_type, CharacterType):
        return f"({value})"
    return f"CAST(({value}) AS {sql_data_type(data_type)})"


def new_values(column: str, value: str) -> Assignment:
    """Return the assignment of every row that differs, so that a repetition changes nothing."""
    name = quote_ident(column)
    return Assignment(column, value, f"NOT ({name} <=> {value})")


def missing_values(column: str, value: str) -> Assignment:
    """Return the assignment of the rows without a value; present values stay."""
    name = quote_ident(column)
    return Assignment(column, f"coalesce({name}, {value})", f"({name} IS NULL AND {value} IS NOT NULL)")


def given_values(column: str, value: str) -> Assignment:
    """Return the assignment of a value that differs each time, so that no condition may compute it."""
    name = quote_ident(column)
    return Assignment(column, f"coalesce({name}, {value})", f"({name} IS NULL)")


def sql_ranges(column: str, data_type: DataType, bounds: Sequence[str]) -> list[str]:
    """Return the conditions of the ranges between ascending bounds; together, they leave out NULL alone."""
    name, kind = quote_ident(column), sql_data_type(data_type)
    limits = [f"CAST({sql_literal(bound)} AS {kind})" for bound in bounds]
    between = [f"{name} >= {lower} AND {name} < {upper}" for lower, upper in pairwise(limits)]
    return [f"{name} < {limits[0]}", *between, f"{name} >= {limits[-1]}"]


def sql_fill(table: str, assignments: Sequence[Assignment], within: str) -> str:
    """Assign values in one UPDATE, which touches only rows that need a value, `within` a range."""
    values = ", ".join(f"{quote_ident(assignment.column)} = {assignment.value}" for assignment in assignments)
    return f"UPDATE {table} SET {values} WHERE {_needing(assignments, within)}"


def sql_give(table: str, assignments: Sequence[Assignment], within: str) -> str:
    """Assign values in one MERGE, which takes non-deterministic values; UPDATE refuses them (measured on 4.3.1)."""
    values = ", ".join(f"{quote_ident(assignment.column)} = {assignment.value}" for assignment in assignments)
    source = "(SELECT 1 AS delta_engine_once) AS delta_engine_source"
    return f"MERGE INTO {table} USING {source} ON {_needing(assignments, within)} WHEN MATCHED THEN UPDATE SET {values}"


def sql_files_to_fill(table: str, conditions: Sequence[str]) -> str:
    """Return how many files have rows that meet one of the conditions, as `files`, and their bytes as `size`."""
    met = " OR ".join(conditions)
    return (
        "SELECT count(*) AS files, coalesce(sum(size), 0) AS size FROM (SELECT max(_metadata.file_size) AS size, "
        f"count_if({met}) AS n FROM {table} GROUP BY _metadata.file_path) WHERE n > 0"
    )


def sql_refuse_rows(table: str, condition: str, message: str) -> str:
    """Fail with a message and the number of rows that meet a condition, if there are any."""
    counted = f"count_if({condition})"
    text = f"concat({counted}, {sql_literal(' ' + message)})"
    return f"SELECT CASE WHEN {counted} > 0 THEN raise_error({text}) END AS verified FROM {table}"


def sql_compare_versions(table: str, columns: Iterable[tuple[str, DataType]]) -> str:
    """Fail if two versions differ in the number of rows, or in the checksum of one of the columns.

    The checksum is a sum over the rows: their order does not count, and two equal rows do not cancel each other.
    """
    named = list(columns)
    sums = "".join(f", {sql_checksum(name, kind)} AS c{place}" for place, (name, kind) in enumerate(named))
    cases = "".join(
        f" WHEN NOT (one.c{place} <=> other.c{place}) THEN raise_error({sql_literal(_changed(name))})"
        for place, (name, _) in enumerate(named)
    )
    return (
        f"SELECT CASE WHEN one.n <> other.n THEN raise_error({sql_literal('the number of rows has changed')}){cases} "
        f"END AS verified FROM (SELECT count(*) AS n{sums} FROM {table} {BEFORE}) AS one "
        f"CROSS JOIN (SELECT count(*) AS n{sums} FROM {table} {AFTER}) AS other"
    )


def at_versions(sql: str, before: int, after: int) -> str:
    """Return `sql_compare_versions` for two versions."""
    return sql.replace(BEFORE, f"VERSION AS OF {before}").replace(AFTER, f"VERSION AS OF {after}")


def sql_checksum(column: str, data_type: DataType) -> str:
    """Return the sum of a column's hashes over all rows; it computes each value."""
    name = quote_ident(column)
    value = f"to_json({name})" if _has_no_hash(data_type) else name
    return f"sum(CAST(xxhash64({value}) AS decimal(38,0)))"


def _needing(assignments: Sequence[Assignment], within: str) -> str:
    condition = " OR ".join(assignment.condition for assignment in assignments)
    return f"{within} AND ({condition})" if within else condition


def _changed(column: str) -> str:
    return f"the values of column {column} have changed, and nothing should have changed them"


def _has_no_hash(data_type: DataType) -> bool:
    """Whether a type is, or has inside, one that Spark does not hash (measured on 4.1.1)."""
    return uses_type(data_type, "variant") or any(isinstance(part, MapType) for part in parts(data_type))
