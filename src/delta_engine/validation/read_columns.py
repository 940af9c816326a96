"""Columns that an expression reads and its table does not have."""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine.models import Column
from delta_engine.models.types import ArrayType, DataType, StructType
from delta_engine.sql.expressions import read_places


def unknown_columns(expression: str, columns: Sequence[Column]) -> list[str]:
    """Return unknown columns and field paths of an expression, sorted; none if it does not parse."""
    types = {column.key: column.data_type for column in columns}
    unknown = set()
    for name, *inside in read_places(expression):
        if name not in types:
            unknown.add(name)
        elif not _has(types[name], inside):
            unknown.add(".".join((name, *inside)))
    return sorted(unknown)


def _has(data_type: DataType, path: Sequence[str]) -> bool:
    """Whether a type has a path. A field of an array of structs is an array, and maps may have any key."""
    match data_type:
        case StructType(fields) if path:
            found = (field.data_type for field in fields if field.name.lower() == path[0])
            inside = next(found, None)
            return inside is not None and _has(inside, path[1:])
        case ArrayType(element):
            return _has(element, path)
    return True
