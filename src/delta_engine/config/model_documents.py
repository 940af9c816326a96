"""What a YAML model file may say, and the models that it makes."""

from __future__ import annotations

from typing import Any

import msgspec

from delta_engine.config.documents import Document, DocumentPath, unknown
from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    Part,
    PrimaryKey,
    RowFilter,
    Schema,
    Table,
)


class _Identity(msgspec.Struct):
    start: int = 1
    step: int = 1
    always: bool = True


class _Mask(msgspec.Struct):
    function: str
    using_columns: list[str] = msgspec.field(default_factory=list)


class _Column(msgspec.Struct):
    name: str
    type: str | None = None
    nullable: bool = True
    comment: str = ""
    default: Any = msgspec.UNSET
    generated_as: str | None = None
    identity: bool | str | _Identity | None = None
    tags: dict[str, Any] = msgspec.field(default_factory=dict)
    mask: str | _Mask | None = None
    renamed_from: str | None = None
    renamed_fields: dict[str, str] = msgspec.field(default_factory=dict)


class _PrimaryKey(msgspec.Struct):
    columns: list[str]
    name: str | None = None
    rely: bool = False


class _ForeignKey(msgspec.Struct):
    columns: list[str]
    references: str
    referenced_columns: list[str] = msgspec.field(default_factory=list)
    name: str | None = None
    rely: bool = False


class _RowFilter(msgspec.Struct):
    function: str
    columns: list[str] = msgspec.field(default_factory=list)


class _Table(msgspec.Struct):
    catalog: str
    schema: str
    name: str
    columns: list[_Column] = msgspec.field(default_factory=list)
    comment: str = ""
    properties: dict[str, Any] = msgspec.field(default_factory=dict)
    primary_key: list[str] | _PrimaryKey | None = None
    foreign_keys: list[_ForeignKey] = msgspec.field(default_factory=list)
    checks: dict[str, str] = msgspec.field(default_factory=dict)
    cluster_by: list[str] | str = msgspec.field(default_factory=list)
    partitioned_by: list[str] = msgspec.field(default_factory=list)
    tags: dict[str, Any] = msgspec.field(default_factory=dict)
    row_filter: _RowFilter | None = None
    owner: str | None = None
    grants: dict[str, list[str] | str] = msgspec.field(default_factory=dict)
    location: str | None = None
    renamed_from: str | None = None
    manages: list[str] | None = None


class _Schema(msgspec.Struct):
    catalog: str
    name: str
    comment: str | None = None
    tags: dict[str, Any] = msgspec.field(default_factory=dict)
    owner: str | None = None
    grants: dict[str, list[str]] = msgspec.field(default_factory=dict)


def schema_of(document: Document, path: DocumentPath, value: object) -> Schema:
    """Return the schema that a part of a document declares; the arguments are those of `table_of`.

    Raises:
        ConfigError: it is not of the form of a schema.
    """
    schema = document.convert(path, value, _Schema)
    return Schema(
        schema.catalog,
        schema.name,
        schema.comment,
        tags=document.texts((*path, "tags"), schema.tags),
        owner=schema.owner,
        grants=schema.grants,
        declared_at=document.location(path),
    )


def table_of(document: Document, path: DocumentPath, value: object) -> Table:
    """Return the table that a part of a document declares.

    Args:
        document: the model file.
        path: where the table stands in it.
        value: what stands there.

    Raises:
        ConfigError: it is not of the form of a table.
        InvalidModelError: a column has a type that Delta cannot store.
    """
    table = document.convert(path, value, _Table)
    key, row_filter = table.primary_key, table.row_filter
    return Table(
        table.catalog,
        table.schema,
        table.name,
        [
            _column(document, (*path, "columns", position), column, table)
            for position, column in enumerate(table.columns)
        ],
        table.comment,
        document.texts((*path, "properties"), table.properties),
        PrimaryKey(key.columns, key.name, key.rely) if isinstance(key, _PrimaryKey) else key,
        foreign_keys=[
            ForeignKey(one.columns, one.references, one.referenced_columns, one.name, one.rely)
            for one in table.foreign_keys
        ],
        checks=[CheckConstraint(name, expression) for name, expression in table.checks.items()],
        cluster_by=_clustering(document, path, table),
        partitioned_by=table.partitioned_by,
        tags=document.texts((*path, "tags"), table.tags),
        row_filter=RowFilter(row_filter.function, row_filter.columns) if row_filter else None,
        owner=table.owner,
        grants=_grants(document, (*path, "grants"), table.grants),
        location=table.location,
        renamed_from=table.renamed_from,
        manages=_parts(document, (*path, "manages"), table.manages),
        declared_at=document.location(path),
    )


def _column(document: Document, path: DocumentPath, column: _Column, table: _Table) -> Column:
    if column.type is None and (table.manages is None or Part.COLUMNS.value in table.manages):
        raise document.error(path, f"column {column.name!r} has no type", "Write one, such as type: bigint.")
    identity = _identity(document, path, column.identity)
    return Column(
        column.name,
        column.type or "void",
        column.nullable,
        column.comment,
        default=_default(document, path, column),
        generated_as=column.generated_as,
        identity=identity,
        tags=document.texts((*path, "tags"), column.tags),
        mask=_mask(column.mask),
        renamed_from=column.renamed_from,
        renamed_fields=column.renamed_fields,
        declared_at=document.location(path),
    )


def _default(document: Document, path: DocumentPath, column: _Column) -> str | None:
    if column.default is msgspec.UNSET:
        return None
    if column.default is None:
        raise document.error(
            (*path, "default"),
            "default says nothing",
            'Write "NULL" in quotes for that SQL expression, or leave the key out.',
        )
    return document.texts(path, {"default": column.default})["default"]


def _identity(
    document: Document, path: DocumentPath, identity: bool | str | _Identity | None
) -> Identity | None:
    match identity:
        case _Identity(start, step, always):
            return Identity(start, step, always)
        case str():
            raise document.error(
                (*path, "identity"),
                f"identity is true, or a mapping with start, step and always, not {identity!r}",
                "Write true.",
            )
    return Identity() if identity else None


def _mask(mask: str | _Mask | None) -> ColumnMask | None:
    match mask:
        case _Mask(function, using_columns):
            return ColumnMask(function, using_columns)
        case str():
            return ColumnMask(mask)
    return None


def _grants(
    document: Document, path: DocumentPath, grants: dict[str, list[str] | str]
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for principal, privileges in grants.items():
        if isinstance(privileges, str):
            raise document.error(
                (*path, principal), f"the grants of {principal!r} are a list", f"Write [{privileges}]."
            )
        found[principal] = privileges
    return found


def _parts(document: Document, path: DocumentPath, names: list[str] | None) -> list[str] | None:
    known = [part.value for part in Part]
    for position, name in enumerate(names or ()):
        if name not in known:
            raise document.error((*path, position), *unknown("part", name, known))
    return names


def _clustering(document: Document, path: DocumentPath, table: _Table) -> list[str] | str:
    if isinstance(table.cluster_by, str) and table.cluster_by.upper() != "AUTO":
        raise document.error(
            (*path, "cluster_by"), "cluster_by is a list of columns, or AUTO", f"Write [{table.cluster_by}]."
        )
    return table.cluster_by
