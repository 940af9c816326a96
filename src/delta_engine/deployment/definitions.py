"""The full definition of a table or schema, as documents record it, and its checksums.

The keys of a definition follow from the facets in `delta_engine.aspects`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from delta_engine.aspects import COLUMN_FACETS, SCHEMA_FACETS, TABLE_FACETS, storage
from delta_engine.aspects.facet import Facet
from delta_engine.errors import SourceLocation
from delta_engine.models import Column, Schema, Table
from delta_engine.models.open_struct import OpenStruct, encode_open
from delta_engine.sql.text import sql_data_type


def _recorded(facets: Iterable[Facet[Any, Any, Any]]) -> tuple[Facet[Any, Any, Any], ...]:
    return tuple(facet for facet in facets if facet.observed is not None)


_COLUMN_FACETS = _recorded(COLUMN_FACETS)
_SCHEMA_FACETS = _recorded(SCHEMA_FACETS)
# Format 1 has the location last, and the same model has to give the same bytes.
_TABLE_FACETS = tuple(sorted(_recorded(TABLE_FACETS), key=lambda facet: facet is storage.LOCATION_FACET))


def _key(facet: Facet[Any, Any, Any]) -> tuple[str, Any] | tuple[str, Any, Any]:
    """Return a facet as a field of a struct; documents leave out what has its default."""
    if facet.is_always_recorded:
        return facet.key, facet.form.recorded_type
    default = facet.form.encode(facet.absent)
    if isinstance(default, dict):
        default = msgspec.field(default_factory=dict)
    return facet.key, facet.form.recorded_type, default


def _keys(
    name: str, keys: Iterable[tuple[str, Any] | tuple[str, Any, Any]], *, has_cycles: bool = True
) -> Any:
    """Return a struct with keys in their order; the class that inherits it gives type checkers those it uses."""
    return msgspec.defstruct(
        name, keys, bases=(OpenStruct,), module=__name__, frozen=True, kw_only=True, gc=has_cycles
    )


_ColumnKeys: Any = _keys(
    "_ColumnKeys", [("name", str), ("type", str), *map(_key, _COLUMN_FACETS)], has_cycles=False
)


class ColumnDefinition(_ColumnKeys):  # type: ignore[misc]  # its keys follow from the facets
    """A column; the type as SQL."""

    if TYPE_CHECKING:
        name: str
        type: str
        nullable: bool
        comment: str


_comment, *_others = map(_key, _TABLE_FACETS)
_TableKeys: Any = _keys(
    "_TableKeys",
    [
        ("catalog", str),
        ("schema", str),
        ("name", str),
        _comment,
        ("columns", tuple[ColumnDefinition, ...]),
        *_others,
        ("manages", tuple[str, ...] | None, None),
    ],
)


class TableDefinition(_TableKeys):  # type: ignore[misc]  # its keys follow from the facets
    """A table, with everything that a model declares."""

    if TYPE_CHECKING:
        catalog: str
        schema: str
        name: str
        columns: tuple[ColumnDefinition, ...]
        manages: tuple[str, ...] | None = None


_BaselineKeys: Any = _keys(
    "_BaselineKeys",
    [
        ("columns", tuple[ColumnDefinition, ...], ()),
        *(
            (facet.key, facet.form.recorded_type | msgspec.UnsetType, msgspec.UNSET)
            for facet in _TABLE_FACETS
        ),
    ],
)


class Baseline(_BaselineKeys):  # type: ignore[misc]  # its keys follow from the facets
    """What a table had besides its model: only what differs from the definition, with whole columns."""

    if TYPE_CHECKING:
        columns: tuple[ColumnDefinition, ...]


_SchemaKeys: Any = _keys("_SchemaKeys", [("catalog", str), ("schema", str), *map(_key, _SCHEMA_FACETS)])


class SchemaDefinition(_SchemaKeys):  # type: ignore[misc]  # its keys follow from the facets
    """A schema, with everything that a model declares; a comment of None is unmanaged."""

    if TYPE_CHECKING:
        catalog: str
        schema: str


_RECORD = SourceLocation("the deployment state")
"""The place that messages give for a recorded model."""


def define_schema(schema: Schema) -> SchemaDefinition:
    """Return a schema's definition."""
    return SchemaDefinition(
        catalog=schema.catalog_name,
        schema=schema.schema_name,
        **{facet.key: facet.recorded_value(schema) for facet in _SCHEMA_FACETS},
    )


def as_schema(definition: SchemaDefinition) -> Schema:
    """Return a definition as a plain model, for the planner."""
    arguments = _arguments(definition, _SCHEMA_FACETS)
    return Schema(definition.catalog, definition.schema, **arguments, declared_at=_RECORD)


def define(model: Table) -> TableDefinition:
    """Return a model's definition: names and defaults filled in, nothing left to derive."""
    return TableDefinition(
        catalog=model.catalog_name,
        schema=model.schema_name,
        name=model.table_name,
        columns=define_columns(model.columns),
        manages=None if model.manages is None else tuple(sorted(part.value for part in model.manages)),
        **{facet.key: facet.recorded_value(model) for facet in _TABLE_FACETS},
    )


def define_columns(columns: Iterable[Column]) -> tuple[ColumnDefinition, ...]:
    """Return columns as documents record them."""
    return tuple(map(_define_column, columns))


def as_table(definition: TableDefinition) -> Table:
    """Return a definition as a plain model, for the planner."""
    return Table(
        definition.catalog,
        definition.schema,
        definition.name,
        [_as_column(column) for column in definition.columns],
        manages=definition.manages,
        declared_at=_RECORD,
        **_arguments(definition, _TABLE_FACETS),
    )


def define_baseline(declared: TableDefinition, whole: Table) -> Baseline | None:
    """Return what a table has besides its definition; None if it has nothing."""
    found, known = define(whole), {column.name.lower(): column for column in declared.columns}
    columns = tuple(column for column in found.columns if column != known.get(column.name.lower()))
    values = {facet.key: getattr(found, facet.key) for facet in _TABLE_FACETS}
    values = {key: value for key, value in values.items() if value != getattr(declared, key)}
    return Baseline(columns=columns, **values) if columns or values else None


def with_baseline(declared: TableDefinition, baseline: Baseline | None) -> TableDefinition:
    """Return a definition with what the table had besides."""
    if baseline is None:
        return declared
    others = {column.name.lower(): column for column in baseline.columns}
    columns = [others.pop(column.name.lower(), column) for column in declared.columns]
    values = {facet.key: getattr(baseline, facet.key) for facet in _TABLE_FACETS}
    values = {key: value for key, value in values.items() if value is not msgspec.UNSET}
    return msgspec.structs.replace(declared, columns=(*columns, *others.values()), **values)


def definition_checksum(definition: TableDefinition) -> str:
    """Return the SHA-256 of the canonical definition: the same whatever the order of its keys."""
    return checksum_of(encode_open(definition, sort_keys=True))


def schema_checksum(columns: Iterable[ColumnDefinition]) -> str:
    """Return the SHA-256 of what readers and writers depend on: names, types and NOT NULL, in order."""
    return checksum_of(
        msgspec.json.encode([(column.name, column.type, column.nullable) for column in columns])
    )


def checksum_of(data: bytes) -> str:
    """Return a checksum as documents have it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _arguments(
    definition: TableDefinition | SchemaDefinition, facets: Iterable[Facet[Any, Any, Any]]
) -> dict[str, Any]:
    """Return the arguments of a model that a definition records."""
    return {facet.attribute: facet.form.decode(getattr(definition, facet.key)) for facet in facets}


# A large document has half a million columns, most of them with none of these: one comparison tells.
_RARE = tuple(facet for facet in _COLUMN_FACETS if not facet.is_always_recorded)
_DECLARED_VALUES = attrgetter(*(facet.attribute for facet in _RARE))
_RECORDED_VALUES = attrgetter(*(facet.key for facet in _RARE))
_NONE_DECLARED = tuple(facet.absent for facet in _RARE)
_NONE_RECORDED = tuple(facet.form.encode(facet.absent) for facet in _RARE)
_ENCODINGS = [(facet.key, facet.form.encode, facet.absent) for facet in _RARE]
_DECODINGS = [(facet.attribute, facet.form.decode, facet.form.encode(facet.absent)) for facet in _RARE]


def _define_column(column: Column) -> ColumnDefinition:
    name, data_type = column.name, sql_data_type(column.data_type)
    nullable, comment = column.is_nullable, column.comment
    values = _DECLARED_VALUES(column)
    if values == _NONE_DECLARED:
        return ColumnDefinition(name=name, type=data_type, nullable=nullable, comment=comment)
    pairs = zip(_ENCODINGS, values, strict=True)
    rare = {key: encode(value) for (key, encode, absent), value in pairs if value is not absent}
    return ColumnDefinition(name=name, type=data_type, nullable=nullable, comment=comment, **rare)


def _as_column(column: ColumnDefinition) -> Column:
    values = _RECORDED_VALUES(column)
    if values == _NONE_RECORDED:
        return Column(column.name, column.type, column.nullable, column.comment)
    pairs = zip(_DECODINGS, values, strict=True)
    rare = {attribute: decode(value) for (attribute, decode, absent), value in pairs if value != absent}
    return Column(column.name, column.type, column.nullable, column.comment, **rare)
