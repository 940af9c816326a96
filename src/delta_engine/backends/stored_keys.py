"""Keys stored in table properties, for platforms that refuse key constraints on Delta tables.

The property `delta_engine.constraint.<name>` holds a small JSON document per constraint. Like Unity Catalog's
constraints, these are informational: the platform does not enforce them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from delta_engine.models import ForeignKey, PrimaryKey

PROPERTY_PREFIX = "delta_engine.constraint."


def primary_key_property(name: str, key: PrimaryKey) -> tuple[str, str]:
    """Return the property (key, value) that stores a primary key."""
    return PROPERTY_PREFIX + name, _text({"type": "primary_key", "columns": list(key.columns)})


def foreign_key_property(key: ForeignKey) -> tuple[str, str]:
    """Return the property (key, value) that stores a fully resolved foreign key."""
    document = {
        "type": "foreign_key",
        "columns": list(key.columns),
        "references": key.references,
        "referenced_columns": list(key.referenced_columns),
    }
    return PROPERTY_PREFIX + (key.name or ""), _text(document)


def find_primary_key(properties: Mapping[str, str]) -> PrimaryKey | None:
    """Return the primary key in properties, or None; ValueError for a malformed constraint or two primary keys."""
    keys = [key for key in _keys(properties) if isinstance(key, PrimaryKey)]
    if len(keys) > 1:
        raise ValueError(f"it records {len(keys)} primary keys")
    return keys[0] if keys else None


def find_foreign_keys(properties: Mapping[str, str]) -> tuple[ForeignKey, ...]:
    """Return the foreign keys in properties, sorted by name; ValueError for a malformed constraint."""
    return tuple(key for key in _keys(properties) if isinstance(key, ForeignKey))


def _keys(properties: Mapping[str, str]) -> list[PrimaryKey | ForeignKey]:
    return [_key(key, properties[key]) for key in sorted(properties) if key.startswith(PROPERTY_PREFIX)]


def _key(key: str, value: str) -> PrimaryKey | ForeignKey:
    name = key.removeprefix(PROPERTY_PREFIX)
    match _document(value):
        case {"type": "primary_key", "columns": [_, *_] as columns} if _are_names(columns):
            return PrimaryKey(map(str, columns), name=name)
        case {
            "type": "foreign_key",
            "columns": [_, *_] as columns,
            "references": str(references),
            "referenced_columns": [_, *_] as referenced,
        } if _are_names([*columns, *referenced]):
            return ForeignKey(map(str, columns), references, map(str, referenced), name=name)
    raise ValueError(f"property {key!r} holds no constraint that the engine has written: {value!r}")


def _are_names(values: list[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _text(document: Mapping[str, object]) -> str:
    return json.dumps(document, ensure_ascii=False)


def _document(value: str) -> object:
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return None
