"""Expressions that show the columns of a table as they will be, before anything is changed."""

from __future__ import annotations

from delta_engine.models.types import ArrayType, DataType, MapType, StructField, StructType
from delta_engine.sql.text import quote_ident, sql_data_type, sql_literal


def sql_as_it_will_be(expression: str, observed: DataType, renamed: DataType, desired: DataType) -> str:
    """Return an expression that has the fields wanted, by the names wanted: new ones are NULL.

    Args:
        expression: the SQL of what there is; it comes back as it is if its fields are the ones wanted.
        observed: its type.
        renamed: the same type, with the names that fields shall have.
        desired: the type wanted; only its fields count.
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


def sql_null(data_type: DataType) -> str:
    """Return a NULL of a type."""
    return f"CAST(NULL AS {sql_data_type(data_type)})"


def _struct(expression: str, observed: StructType, renamed: StructType, desired: StructType) -> str:
    pairs = zip(observed.fields, renamed.fields, strict=True)
    there = {same.name.lower(): (one, same) for one, same in pairs}
    fields = [
        (field.name, _field(expression, field, there.get(field.name.lower()))) for field in desired.fields
    ]
    so_far = [(field.name, _inside(expression, field)) for field in observed.fields]
    if sorted(fields) == sorted(so_far):
        return expression
    named = ", ".join(f"{sql_literal(name)}, {value}" for name, value in fields)
    return f"IF({expression} IS NULL, NULL, named_struct({named}))"


def _field(expression: str, desired: StructField, there: tuple[StructField, StructField] | None) -> str:
    if there is None:
        return sql_null(desired.data_type)
    observed, renamed = there
    inside = _inside(expression, observed)
    return sql_as_it_will_be(inside, observed.data_type, renamed.data_type, desired.data_type)


def _inside(expression: str, field: StructField) -> str:
    return f"{expression}.{quote_ident(field.name)}"
