"""The full definition of a table or schema, as documents record it.

The keys of a definition follow from the facets in `delta_engine.aspects`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from delta_engine.aspects.facet import Facet
from delta_engine.deployment.stored_definitions import (
    ATTEMPTED_FACETS,
    RECORDED_COLUMN_FACETS,
    RECORDED_SCHEMA_FACETS,
    RECORDED_TABLE_FACETS,
    ColumnDefinition,
    SchemaDefinition,
    TableDefinition,
)
from delta_engine.errors import SourceLocation
from delta_engine.models import Column, Schema, Table
from delta_engine.models.open_struct import checksum_of
from delta_engine.sql.text import shown_type

_RECORD = SourceLocation("the deployment state")
"""The place that messages give for a recorded model."""


def define_schema(schema: Schema) -> SchemaDefinition:
    """Return a schema's definition."""
    return SchemaDefinition(
        catalog=schema.catalog_name,
        schema=schema.schema_name,
        **{facet.key: facet.recorded_value(schema) for facet in RECORDED_SCHEMA_FACETS},
    )


def as_schema(definition: SchemaDefinition) -> Schema:
    """Return a definition as a plain model, for the planner."""
    arguments = _schema_arguments(definition)
    return Schema(definition.catalog, definition.schema, **arguments, declared_at=_RECORD)


def define(model: Table) -> TableDefinition:
    """Return a model's definition: names and defaults filled in, nothing left to derive."""
    return TableDefinition(
        catalog=model.catalog_name,
        schema=model.schema_name,
        name=model.table_name,
        columns=define_columns(model.columns),
        manages=None if model.manages is None else tuple(sorted(part.value for part in model.manages)),
        **{facet.key: facet.recorded_value(model) for facet in RECORDED_TABLE_FACETS},
    )


def define_attempt(model: Table) -> TableDefinition:
    """Return a model's definition with what a run is to do: former names of columns and fields, and `using`."""
    definition = define(model)
    columns = tuple(
        msgspec.structs.replace(
            found, **{facet.key: facet.form.encode(facet.declared(column)) for facet in ATTEMPTED_FACETS}
        )
        for found, column in zip(definition.columns, model.columns, strict=True)
    )
    return msgspec.structs.replace(definition, columns=columns)


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
        **_table_arguments(definition),
    )


def schema_checksum(columns: Iterable[ColumnDefinition]) -> str:
    """Return the SHA-256 of what readers and writers depend on: names, types and NOT NULL, in order."""
    return checksum_of(
        msgspec.json.encode([(column.name, column.type, column.nullable) for column in columns])
    )


def _reader(facets: Sequence[Facet[Any, Any, Any]]) -> Callable[[object], dict[str, Any]]:
    """Return a function from a definition to the arguments of its model."""
    values_of = attrgetter(*(facet.key for facet in facets))
    none = tuple(facet.form.encode(facet.absent) for facet in facets)
    decodings = [
        (facet.attribute, facet.form.decode, absent) for facet, absent in zip(facets, none, strict=True)
    ]

    def arguments(definition: object) -> dict[str, Any]:
        values = values_of(definition)
        if values == none:  # half a million columns: one comparison tells
            return {}
        pairs = zip(decodings, values, strict=True)
        return {attribute: decode(value) for (attribute, decode, absent), value in pairs if value != absent}

    return arguments


_RARE = tuple(facet for facet in RECORDED_COLUMN_FACETS if not facet.is_always_recorded)
_DECLARED_VALUES = attrgetter(*(facet.attribute for facet in _RARE))
_NONE_DECLARED = tuple(facet.absent for facet in _RARE)
_ENCODINGS = [(facet.key, facet.form.encode, facet.absent) for facet in _RARE]

_column_arguments = _reader((*_RARE, *ATTEMPTED_FACETS))
_table_arguments = _reader(RECORDED_TABLE_FACETS)
_schema_arguments = _reader(RECORDED_SCHEMA_FACETS)


def _define_column(column: Column) -> ColumnDefinition:
    name, data_type = column.name, shown_type(column.data_type)
    nullable, comment = column.is_nullable, column.comment
    values = _DECLARED_VALUES(column)
    if values == _NONE_DECLARED:
        return ColumnDefinition(name=name, type=data_type, nullable=nullable, comment=comment)
    pairs = zip(_ENCODINGS, values, strict=True)
    rare = {key: encode(value) for (key, encode, absent), value in pairs if value is not absent}
    return ColumnDefinition(name=name, type=data_type, nullable=nullable, comment=comment, **rare)


def _as_column(column: ColumnDefinition) -> Column:
    rare = _column_arguments(column)
    if not rare:
        return Column(column.name, column.type, column.nullable, column.comment)
    return Column(column.name, column.type, column.nullable, column.comment, **rare)
