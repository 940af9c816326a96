"""The full definition of a table, as a document keeps it, and its checksums."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from delta_engine.aspects.primary_key import named_primary_key
from delta_engine.deployment.open_struct import OpenStruct, encode_open
from delta_engine.models import Column, PrimaryKey, Table
from delta_engine.sql import sql_data_type


class ColumnDefinition(OpenStruct, frozen=True, kw_only=True, gc=False):
    """A column; the type as SQL."""

    name: str
    type: str
    nullable: bool
    comment: str


class PrimaryKeyDefinition(OpenStruct, frozen=True, kw_only=True):
    """A primary key, by its full name."""

    name: str
    columns: tuple[str, ...]
    rely: bool


class TableDefinition(OpenStruct, frozen=True, kw_only=True):
    """A table, with everything that a model says about it."""

    catalog: str
    schema: str
    name: str
    comment: str
    columns: tuple[ColumnDefinition, ...]
    properties: dict[str, str]
    primary_key: PrimaryKeyDefinition | None
    cluster_by: tuple[str, ...] = ()


def define(model: Table) -> TableDefinition:
    """Return a model's definition: names and defaults filled in, nothing left to derive."""
    key = named_primary_key(model)
    return TableDefinition(
        catalog=model.catalog_name,
        schema=model.schema_name,
        name=model.table_name,
        comment=model.comment,
        columns=define_columns(model.columns),
        properties=dict(model.effective_table_properties),
        primary_key=(
            PrimaryKeyDefinition(name=key.name or "", columns=key.columns, rely=key.rely) if key else None
        ),
        cluster_by=model.cluster_by,
    )


def define_columns(columns: Iterable[Column]) -> tuple[ColumnDefinition, ...]:
    """Return columns as documents keep them."""
    return tuple(
        ColumnDefinition(
            name=column.name,
            type=sql_data_type(column.data_type),
            nullable=column.is_nullable,
            comment=column.comment,
        )
        for column in columns
    )


def as_table(definition: TableDefinition) -> Table:
    """Return a definition as a plain model, for the planner."""
    key = definition.primary_key
    return Table(
        definition.catalog,
        definition.schema,
        definition.name,
        [Column(column.name, column.type, column.nullable, column.comment) for column in definition.columns],
        definition.comment,
        definition.properties,
        PrimaryKey(key.columns, key.name, key.rely) if key else None,
        cluster_by=definition.cluster_by,
    )


def definition_checksum(definition: TableDefinition) -> str:
    """Return the SHA-256 of the canonical definition: the same whatever the order of its keys."""
    return _sha256(encode_open(definition, sort_keys=True))


def schema_checksum(columns: Iterable[ColumnDefinition]) -> str:
    """Return the SHA-256 of what readers and writers depend on: names, types and NOT NULL, in order."""
    return _sha256(msgspec.json.encode([(column.name, column.type, column.nullable) for column in columns]))


def _sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
