"""Default collations: new columns inherit that of their table, a new table that of its schema.

Spark's issues SPARK-52219 and, for tables created from a query, SPARK-54870.
"""

from __future__ import annotations

from dataclasses import replace

from delta_engine.models import Column
from delta_engine.models.types import AtomicType, CharacterType, DataType, UnsupportedType, inside, rebuilt
from tests.fakes.unity_catalog.stored import BINARY, Stored


def created_in(stored: Stored, collation: str) -> Stored:
    """Return a new or replaced table under a default collation, with its columns."""
    columns = tuple(collated(column, collation) for column in stored.state.columns)
    return replace(stored.with_state(columns=columns), collation=collation)


def collated(column: Column, collation: str) -> Column:
    """Return a column whose strings have a collation."""
    return (
        column
        if collation == BINARY
        else replace(column, data_type=collated_type(column.data_type, collation))
    )


def collated_type(data_type: DataType, collation: str) -> DataType:
    """Return a type whose strings, also inside, have a collation."""
    if collation == BINARY:
        return data_type
    if isinstance(data_type, CharacterType) or data_type == AtomicType("string"):
        return UnsupportedType(f"string collate {collation}", "Delta tables hold the default collation only")
    return rebuilt(data_type, [collated_type(inner, collation) for _, inner in inside(data_type)])
