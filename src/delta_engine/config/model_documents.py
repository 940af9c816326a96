"""Reads models from YAML; the facets in `delta_engine.aspects` define the keys of a model file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import asdict

from delta_engine.aspects import COLUMN_FACETS, SCHEMA_FACETS, TABLE_FACETS
from delta_engine.aspects.facet import Facet
from delta_engine.config.documents import Document, DocumentPath, unknown
from delta_engine.errors import ConfigError
from delta_engine.models import Column, Part, Schema, Table

_Facets = tuple[Facet[Any, Any, Any], ...]


def _shape(name: str, keys: Iterable[tuple[str, Any] | tuple[str, Any, Any]], facets: _Facets) -> Any:
    """Return a msgspec struct with the given keys and a key per facet; omitted keys are UNSET."""
    optional = [(facet.key, facet.form.written_type, msgspec.UNSET) for facet in facets]
    return msgspec.defstruct(name, [*keys, *optional])


def _written(facets: Iterable[Facet[Any, Any, Any]]) -> _Facets:
    return tuple(facet for facet in facets if facet.meaning is not None)


_COLUMN_FACETS = _written(COLUMN_FACETS)
_TABLE_FACETS = _written(TABLE_FACETS)
_SCHEMA_FACETS = _written(SCHEMA_FACETS)

_Column: Any = _shape("_Column", [("name", str), ("type", str | None, None)], _COLUMN_FACETS)
_Table = _shape(
    "_Table",
    [
        ("catalog", str),
        ("schema", str),
        ("name", str),
        ("columns", list[_Column], msgspec.field(default_factory=list)),
        ("manages", list[str] | None, None),
    ],
    _TABLE_FACETS,
)
_Schema = _shape("_Schema", [("catalog", str), ("name", str)], _SCHEMA_FACETS)


@dataclass(frozen=True, slots=True)
class _Place:
    document: Document
    path: DocumentPath

    def text(self, value: object) -> str:
        key = str(self.path[-1])
        return self.document.texts(self.path[:-1], {key: value})[key]

    def texts(self, values: Mapping[str, object]) -> dict[str, str]:
        return self.document.texts(self.path, values)

    def error(self, reason: str, way_out: str = "", *steps: str | int) -> ConfigError:
        return self.document.error((*self.path, *steps), reason, way_out)


def schema_of(document: Document, path: DocumentPath, value: object) -> Schema:
    """Return the schema that a part of a document declares."""
    schema = asdict(document.convert(path, value, _Schema))
    return Schema(
        schema["catalog"],
        schema["name"],
        declared_at=document.location(path),
        **_arguments(document, path, schema, _SCHEMA_FACETS),
    )


def table_of(document: Document, path: DocumentPath, value: object) -> Table:
    """Return the table that a part of a document declares; refuse column types that Delta cannot store."""
    table = asdict(document.convert(path, value, _Table))
    managed = _parts(document, (*path, "manages"), table["manages"])
    return Table(
        table["catalog"],
        table["schema"],
        table["name"],
        [
            _column(document, (*path, "columns", position), asdict(column), managed)
            for position, column in enumerate(table["columns"])
        ],
        manages=managed,
        declared_at=document.location(path),
        **_arguments(document, path, table, _TABLE_FACETS),
    )


def _column(
    document: Document, path: DocumentPath, column: dict[str, Any], managed: list[str] | None
) -> Column:
    if column["type"] is None and (managed is None or Part.COLUMNS.value in managed):
        raise document.error(
            path, f"column {column['name']!r} has no type", "Write one, such as type: bigint."
        )
    return Column(
        column["name"],
        column["type"] or "void",
        declared_at=document.location(path),
        **_arguments(document, path, column, _COLUMN_FACETS),
    )


def _arguments(
    document: Document, path: DocumentPath, values: dict[str, Any], facets: _Facets
) -> dict[str, Any]:
    """Return a model's arguments from a document; omitted keys keep the model's defaults."""
    return {
        facet.attribute: facet.form.read(_Place(document, (*path, facet.key)), values[facet.key])
        for facet in facets
        if values[facet.key] is not msgspec.UNSET
    }


def _parts(document: Document, path: DocumentPath, names: list[str] | None) -> list[str] | None:
    known = [part.value for part in Part]
    for position, name in enumerate(names or ()):
        if name not in known:
            raise document.error((*path, position), *unknown("part", name, known))
    return names
