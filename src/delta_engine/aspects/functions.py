"""Functions that filter rows and mask columns: their names as Unity Catalog stores them."""

from __future__ import annotations

import re

from delta_engine.models import QualifiedName

_PART = re.compile(r"(`(?:[^`]|``)*`)|([^`.]+)")


def full_function_name(function: str, table: QualifiedName) -> QualifiedName:
    """Return the lower-case name, completed from the protected table; raises ValueError for an invalid name."""
    parts = [part.lower() for part in function_parts(function)]
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise ValueError(f"{function!r} is not a function's name")
    return QualifiedName(*(table.catalog.lower(), table.schema.lower())[: 3 - len(parts)], *parts)


def function_parts(function: str) -> tuple[str, ...]:
    """Return the parts of a function name without quotes, which may contain dots; empty for an invalid name."""
    parts = _PART.findall(function.strip())
    spelled = ".".join(quoted or plain for quoted, plain in parts)
    if spelled != function.strip():
        return ()
    return tuple(quoted[1:-1].replace("``", "`") if quoted else plain for quoted, plain in parts)
