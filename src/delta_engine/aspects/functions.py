"""The names of functions that filter rows and mask columns, as Unity Catalog stores them."""

from __future__ import annotations

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
