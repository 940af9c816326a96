"""Queries over a table's rows, for checks before a change: the number of rows that violate a condition."""

from __future__ import annotations

from collections.abc import Iterable

from delta_engine.models.types import ArrayType, DataType, MapType, StructField, StructType
from delta_engine.sql.text import quote_ident, sql_data_type, sql_literal


def sql_count_violations(rows: str, conditions: Iterable[str]) -> str:
    """Return the query that counts violations per condition: one row, in the given order; unknown results count."""
    counts = ", ".join(
        f"count_if({sql_violation(condition)}) AS violations_{place}"
        for place, condition in enumerate(conditions)
    )
    return f"SELECT {counts} FROM {rows}"


def sql_violation(condition: str) -> str:
    """Return the condition of the rows that violate another condition."""
    return f"NOT coalesce(({condition}), false)"


def sql_select(table: str, columns: Iterable[str]) -> str:
    """Return a subquery in parentheses, for FROM."""
    return f"(SELECT {', '.join(columns)} FROM {table})"


def sql_column_alias(expression: str, name: str) -> str:
    """Return an expression as a named column, for SELECT."""
    quoted = quote_ident(name)
    return quoted if expression == quoted else f"{expression} AS {quoted}"


def sql_null(data_type: DataType) -> str:
    """Return a NULL of a type."""
    return f"CAST(NULL AS {sql_data_type(data_type)})"


def sql_as_it_will_be(expression: str, observed: DataType, renamed: DataType, desired: DataType) -> str:
    """Return an expression with the desired fields, under their desired names; new fields are NULL.

    Args:
        renamed: the observed type with the desired names of its fields.
        desired: only the fields of this type count.
    """
    match observed, renamed, desired:
        case StructType(), StructType(), StructType():
            return _struct(expression, observed, renamed, desired)
        case ArrayType(one), ArrayType(same), ArrayType(other):
            inside = sql_as_it_will_be("x", one, same, other)
            return expression if inside == "x" else f"transform({expression}, x -> {inside})"
        case MapType(_, one), MapType(_, same), MapType(_, other):
            inside = sql_as_it_will_be("x", one, same, other)
            return expression if inside == "x" else f"transform_values({expression}, (k, x) -> {inside})"
    return expression


def _struct(expression: str, observed: StructType, renamed: StructType, desired: StructType) -> str:
    pairs = zip(observed.fields, renamed.fields, strict=True)
    existing = {same.name.lower(): (one, same) for one, same in pairs}
    fields = [
        (field.name, _field(expression, field, existing.get(field.name.lower()))) for field in desired.fields
    ]
    so_far = [(field.name, _inside(expression, field)) for field in observed.fields]
    if sorted(fields) == sorted(so_far):
        return expression
    named = ", ".join(f"{sql_literal(name)}, {value}" for name, value in fields)
    return f"IF({expression} IS NULL, NULL, named_struct({named}))"


def _field(expression: str, desired: StructField, existing: tuple[StructField, StructField] | None) -> str:
    if existing is None:
        return sql_null(desired.data_type)
    observed, renamed = existing
    inside = _inside(expression, observed)
    return sql_as_it_will_be(inside, observed.data_type, renamed.data_type, desired.data_type)


def _inside(expression: str, field: StructField) -> str:
    return f"{expression}.{quote_ident(field.name)}"
