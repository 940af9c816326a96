"""Makes models of YAML documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from delta_engine.aspects import COLUMN_FACETS, SCHEMA_FACETS, TABLE_FACETS
from delta_engine.aspects.facet import Facet
from delta_engine.config.yaml_documents import Document, DocumentPath
from delta_engine.errors import ConfigError, RefusedError, unknown
from delta_engine.models import Column, Part, Schema, Table


class _ModelFile(msgspec.Struct):
    schemas: list[Any] = msgspec.field(default_factory=list)
    tables: list[Any] = msgspec.field(default_factory=list)


_NO_MODEL_FILE: Final = "a model file contains the keys tables and schemas, or one of them, each with a list"


def models_in(document: Document) -> Iterator[Table | Schema | RefusedError]:
    """Yield the models of a document, and the refusals of those that are broken."""
    lists = model_lists(document)
    for key, model_of in (("schemas", schema_of), ("tables", table_of)):
        for position, value in enumerate(lists.get(key, ())):
            try:
                yield model_of(document, (key, position), value)
            except RefusedError as refusal:
                for refused in refusal.refusals:
                    if key == "tables":
                        refused.table = refused.table or _declared_name(value)
                    yield refused


def model_lists(document: Document) -> Mapping[str, Sequence[Any]]:
    """Return the lists of schemas and tables of a document; ConfigError if it is not a model file."""
    lists = document.value
    if not isinstance(lists, dict) or not lists:
        raise document.error((), _NO_MODEL_FILE)
    if not lists.keys() & _ModelFile.__struct_fields__:  # another file, or the one key is misspelled
        written = str(next(iter(lists)))
        _, way_out = unknown("key", written, _ModelFile.__struct_fields__)
        raise document.error((written,), f"unknown key {written!r}: {_NO_MODEL_FILE}", way_out)
    document.convert((), lists, _ModelFile)
    return lists


def _declared_name(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    return ".".join(str(value.get(part, "?")) for part in ("catalog", "schema", "name"))


_Facet = Facet[Any, Any, Any]
_Facets = tuple[_Facet, ...]


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


_COLUMN_KEYS, _TABLE_KEYS, _SCHEMA_KEYS = (
    {facet.key: facet for facet in facets} for facets in (_COLUMN_FACETS, _TABLE_FACETS, _SCHEMA_FACETS)
)


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


def schema_of(document: Document, path: DocumentPath, value: dict[str, object]) -> Schema:
    """Return the schema that a part of a document declares."""
    schema = document.convert(path, value, _Schema)
    return Schema(
        schema.catalog,
        schema.name,
        declared_at=document.location(path),
        **_arguments(document, path, value, schema, _SCHEMA_KEYS),
    )


def table_of(document: Document, path: DocumentPath, value: dict[str, object]) -> Table:
    """Return the table that a part of a document declares; refuse column types that the engine does not manage."""
    table = document.convert(path, value, _Table)
    managed = _parts(document, (*path, "manages"), table.manages)
    return Table(
        table.catalog,
        table.schema,
        table.name,
        [*_columns(document, (*path, "columns"), value.get("columns"), table.columns, managed)],
        manages=managed,
        declared_at=document.location(path),
        **_arguments(document, path, value, table, _TABLE_KEYS),
    )


def _columns(
    document: Document, path: DocumentPath, written: Any, columns: Sequence[Any], managed: list[str] | None
) -> Iterator[Column]:
    has_types = managed is None or Part.COLUMNS.value in managed
    places = document.item_locations(path, len(columns))
    for position, (place, value, column) in enumerate(zip(places, written or (), columns, strict=True)):
        if column.type is None and has_types:
            way_out = "Write one, such as type: bigint."
            raise document.error((*path, position), f"column {column.name!r} has no type", way_out)
        arguments = _arguments(document, (*path, position), value, column, _COLUMN_KEYS)
        written_type = "void" if column.type is None else column.type
        yield Column(column.name, written_type, declared_at=place, **arguments)


def _arguments(
    document: Document,
    path: DocumentPath,
    written: Mapping[str, object],
    converted: object,
    keys: Mapping[str, _Facet],
) -> dict[str, Any]:
    """Return a model's arguments from a document; omitted keys keep the model's defaults."""
    arguments = {}
    for key in written:
        facet = keys.get(key)
        if facet is not None:
            value, read = getattr(converted, key), facet.form.read
            place = (*path, key)
            arguments[facet.attribute] = value if read is None else read(_Place(document, place), value)
    return arguments


def _parts(document: Document, path: DocumentPath, names: list[str] | None) -> list[str] | None:
    parts = [part.value for part in Part]
    for position, name in enumerate(names or ()):
        if name not in parts:
            raise document.error((*path, position), *unknown("part", name, parts))
    return names
