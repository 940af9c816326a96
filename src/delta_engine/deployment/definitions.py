"""The full definition of a table, as a document keeps it, and its checksums."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from delta_engine.aspects.primary_key import named_primary_key
from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    RowFilter,
    Schema,
    Table,
)
from delta_engine.models.open_struct import OpenStruct, encode_open
from delta_engine.models.resolution import resolved_keys
from delta_engine.sql import sql_data_type


class IdentityDefinition(OpenStruct, frozen=True, kw_only=True):
    """How values are counted up."""

    start: int
    step: int
    always: bool


class MaskDefinition(OpenStruct, frozen=True, kw_only=True):
    """A column mask."""

    function: str
    using_columns: tuple[str, ...] = ()


class ColumnDefinition(OpenStruct, frozen=True, kw_only=True, gc=False):
    """A column; the type as SQL."""

    name: str
    type: str
    nullable: bool
    comment: str
    default: str | None = None
    generated_as: str | None = None
    identity: IdentityDefinition | None = None
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    mask: MaskDefinition | None = None


class PrimaryKeyDefinition(OpenStruct, frozen=True, kw_only=True):
    """A primary key, by its full name."""

    name: str
    columns: tuple[str, ...]
    rely: bool


class ForeignKeyDefinition(OpenStruct, frozen=True, kw_only=True):
    """A foreign key, by its full name; the table it references, by its whole name."""

    name: str
    columns: tuple[str, ...]
    references: str
    referenced_columns: tuple[str, ...]
    rely: bool = False


class RowFilterDefinition(OpenStruct, frozen=True, kw_only=True):
    """A row filter."""

    function: str
    columns: tuple[str, ...] = ()


class TableDefinition(OpenStruct, frozen=True, kw_only=True):
    """A table, with everything that a model says about it."""

    catalog: str
    schema: str
    name: str
    comment: str
    columns: tuple[ColumnDefinition, ...]
    properties: dict[str, str]
    primary_key: PrimaryKeyDefinition | None
    foreign_keys: tuple[ForeignKeyDefinition, ...] = ()
    checks: dict[str, str] = msgspec.field(default_factory=dict)
    cluster_by: tuple[str, ...] = ()
    clusters_automatically: bool = False
    partitioned_by: tuple[str, ...] = ()
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    row_filter: RowFilterDefinition | None = None
    owner: str | None = None
    grants: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    location: str | None = None
    manages: tuple[str, ...] | None = None


class SchemaDefinition(OpenStruct, frozen=True, kw_only=True):
    """A schema, with everything that is said about it; a comment of None is left alone."""

    catalog: str
    schema: str
    comment: str | None = None
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    owner: str | None = None
    grants: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


def define_schema(schema: Schema) -> SchemaDefinition:
    """Return a schema's definition."""
    return SchemaDefinition(
        catalog=schema.catalog_name,
        schema=schema.schema_name,
        comment=schema.comment,
        tags=dict(schema.tags),
        owner=schema.owner,
        grants=dict(schema.grants),
    )


def as_schema(definition: SchemaDefinition) -> Schema:
    """Return a definition as a plain model, for the planner."""
    return Schema(
        definition.catalog,
        definition.schema,
        definition.comment,
        tags=definition.tags,
        owner=definition.owner,
        grants=definition.grants,
    )


def define(model: Table) -> TableDefinition:
    """Return a model's definition: names and defaults filled in, nothing left to derive."""
    key = named_primary_key(model)
    row_filter = model.row_filter
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
        foreign_keys=tuple(
            ForeignKeyDefinition(
                name=foreign_key.name or "",
                columns=foreign_key.columns,
                references=foreign_key.references,
                referenced_columns=foreign_key.referenced_columns,
                rely=foreign_key.rely,
            )
            for foreign_key in resolved_keys(model, {model.qualified_name.key: model})
        ),
        checks={check.name: check.expression for check in model.checks},
        cluster_by=model.cluster_by,
        clusters_automatically=model.clusters_automatically,
        partitioned_by=model.partitioned_by,
        tags=dict(model.tags),
        row_filter=(
            RowFilterDefinition(function=row_filter.function, columns=row_filter.columns)
            if row_filter
            else None
        ),
        owner=model.owner,
        grants=dict(model.grants),
        location=model.location,
        manages=define_parts(model),
    )


def define_parts(model: Table) -> tuple[str, ...] | None:
    """Return the parts that a model is about as documents keep them."""
    return None if model.manages is None else tuple(sorted(part.value for part in model.manages))


def define_columns(columns: Iterable[Column]) -> tuple[ColumnDefinition, ...]:
    """Return columns as documents keep them."""
    return tuple(map(_define_column, columns))


def as_table(definition: TableDefinition) -> Table:
    """Return a definition as a plain model, for the planner."""
    key, row_filter = definition.primary_key, definition.row_filter
    return Table(
        definition.catalog,
        definition.schema,
        definition.name,
        [_as_column(column) for column in definition.columns],
        definition.comment,
        definition.properties,
        PrimaryKey(key.columns, key.name, key.rely) if key else None,
        foreign_keys=[
            ForeignKey(one.columns, one.references, one.referenced_columns, one.name, one.rely)
            for one in definition.foreign_keys
        ],
        checks=[CheckConstraint(name, expression) for name, expression in definition.checks.items()],
        cluster_by=definition.cluster_by,
        clusters_automatically=definition.clusters_automatically,
        partitioned_by=definition.partitioned_by,
        tags=definition.tags,
        row_filter=RowFilter(row_filter.function, row_filter.columns) if row_filter else None,
        owner=definition.owner,
        grants=definition.grants,
        location=definition.location,
        manages=definition.manages,
    )


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


def _define_column(column: Column) -> ColumnDefinition:
    identity, mask = column.identity, column.mask
    return ColumnDefinition(
        name=column.name,
        type=sql_data_type(column.data_type),
        nullable=column.is_nullable,
        comment=column.comment,
        default=column.default,
        generated_as=column.generated_as,
        identity=(
            IdentityDefinition(start=identity.start, step=identity.step, always=identity.always)
            if identity
            else None
        ),
        tags=dict(column.tags) if column.tags else {},
        mask=MaskDefinition(function=mask.function, using_columns=mask.using_columns) if mask else None,
    )


def _as_column(column: ColumnDefinition) -> Column:
    identity, mask = column.identity, column.mask
    return Column(
        column.name,
        column.type,
        column.nullable,
        column.comment,
        default=column.default,
        generated_as=column.generated_as,
        identity=Identity(identity.start, identity.step, identity.always) if identity else None,
        tags=column.tags,
        mask=ColumnMask(mask.function, mask.using_columns) if mask else None,
    )
