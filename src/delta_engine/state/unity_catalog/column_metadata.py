"""Columns from Spark's schema JSON, as the SDK's `type_json` has them: with what Delta keeps in the metadata.

The keys are those of Delta's protocol ("Generated columns", "Identity columns", "Default columns").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

import msgspec

from delta_engine.models import Column, Identity, QualifiedName
from delta_engine.models.types import data_type_from_spark_json
from delta_engine.state.catalog_reader import readable_column

_GENERATION = "delta.generationExpression"
_IDENTITY_START = "delta.identity.start"
_IDENTITY_STEP = "delta.identity.step"
_IDENTITY_BY_DEFAULT = "delta.identity.allowExplicitInsert"
_DEFAULT = "CURRENT_DEFAULT"


def column_from_type_json(table: QualifiedName, text: str, *, comment: str) -> Column | None:
    """Return a column from the JSON of a whole field; None if it is only that of a type.

    Raises:
        CatalogReadError: its type is one that the engine does not know.
        ValueError: it is no JSON.
    """
    field = msgspec.json.decode(text)
    if not _is_mapping(field) or not isinstance(field.get("name"), str) or "type" not in field:
        return None
    metadata, is_nullable = field.get("metadata") or {}, field.get("nullable", True)
    if not _is_mapping(metadata) or not isinstance(is_nullable, bool):
        return None
    default, generated = metadata.get(_DEFAULT), metadata.get(_GENERATION)
    return readable_column(
        table,
        str(field["name"]),
        data_type_from_spark_json(field["type"], metadata),
        is_nullable=is_nullable,
        comment=comment or str(metadata.get("comment") or ""),
        default=None if default is None else str(default),
        generated_as=None if generated is None else str(generated),
        identity=_identity(metadata),
    )


def _identity(metadata: Mapping[str, object]) -> Identity | None:
    if _IDENTITY_START not in metadata:
        return None
    return Identity(
        start=int(str(metadata[_IDENTITY_START])),
        step=int(str(metadata.get(_IDENTITY_STEP, 1))),
        always=not metadata.get(_IDENTITY_BY_DEFAULT),
    )


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, dict)
