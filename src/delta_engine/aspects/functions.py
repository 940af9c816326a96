"""Functions that filter rows and mask columns: their names as Unity Catalog stores them, and what they block."""

from __future__ import annotations

from collections.abc import Iterable

from delta_engine.aspects.aspect import Comparison
from delta_engine.models import QualifiedName


def full_function_name(function: str, table: QualifiedName) -> QualifiedName:
    """Return a function's three-part name in lower case; the parts it lacks are those of the table.

    Args:
        function: its name as people write it, with or without quotes, catalog and schema.
        table: the table that it protects.

    Raises:
        ValueError: it has more than three parts, or an empty one.
    """
    found = table.resolve(function.replace("`", "").strip())
    return QualifiedName(*found.key.split("."))


def takes_dropped(columns: Iterable[str], comparison: Comparison) -> bool:
    """Whether one of the columns that a function takes is to be dropped."""
    dropped = {column.key for column in comparison.dropped}
    return any(name.lower() in dropped for name in columns)
