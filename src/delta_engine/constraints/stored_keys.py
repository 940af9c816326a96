"""Keys kept in table properties, for platforms that refuse key constraints on Delta tables.

One property per constraint, `delta_engine.constraint.<name>`, with a small JSON document as its value.
Like the constraints of Unity Catalog they are informational: nothing enforces them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from delta_engine.models import PrimaryKey

PROPERTY_PREFIX = "delta_engine.constraint."


def primary_key_property(name: str, key: PrimaryKey) -> tuple[str, str]:
    """Return the property (key, value) that records a primary key."""
    document = {"type": "primary_key", "columns": list(key.columns)}
    return PROPERTY_PREFIX + name, json.dumps(document, ensure_ascii=False)


def find_primary_key(properties: Mapping[str, str]) -> PrimaryKey | None:
    """Return the primary key that properties record, or None.

    Raises:
        ValueError: a recorded constraint is not what this module writes, or there are two keys.
    """
    found: list[PrimaryKey] = []
    for key, value in properties.items():
        if key.startswith(PROPERTY_PREFIX):
            found.append(PrimaryKey(_columns(key, value), name=key.removeprefix(PROPERTY_PREFIX)))
    if len(found) > 1:
        raise ValueError(f"it records {len(found)} primary keys")
    return found[0] if found else None


def _columns(key: str, value: str) -> list[str]:
    match _document(value):
        case {"type": "primary_key", "columns": [_, *_] as columns} if all(
            isinstance(column, str) for column in columns
        ):
            return [str(column) for column in columns]
    raise ValueError(f"property {key!r} holds no constraint that the engine has written: {value!r}")


def _document(value: str) -> object:
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return None
