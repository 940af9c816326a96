"""The keys of a model file, one by one: what stands there for a model, and how Python says the same.

The one description by which models are written, edited in place, and edits described; a field of a model is a
line here. `model_documents` reads what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Generic, TypeVar

from delta_engine.config.python_text import Call, Code, literal
from delta_engine.config.yaml_emitter import Value
from delta_engine.models import (
    AUTO,
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
from delta_engine.sql import sql_data_type

Declared = TypeVar("Declared", Column, Table, Schema)


def as_code(value: Value) -> Code:
    """Return the Python literal of a value."""
    match value:
        case str():
            return literal(value)
        case int():
            return str(value)
        case Mapping():
            return {literal(key): as_code(item) for key, item in value.items()}
    return [as_code(item) for item in value]


@dataclass(frozen=True, slots=True)
class ModelField(Generic[Declared]):
    """A key of a model file.

    Args:
        key: the key.
        value: what stands there; None leaves the key out, and so does the default.
        default: what holds where the key is left out.
        argument: the Python argument of the same meaning; None for the key's own name.
        code: how Python says the value.
        entry: what one entry of a mapping or list is called, for people.
    """

    key: str
    value: Callable[[Declared], Value | None]
    default: Value | None = None
    argument: str | None = None
    code: Callable[[Value], Code] = as_code
    entry: str | None = None


def said(fields: tuple[ModelField[Declared], ...], model: Declared) -> dict[str, Value]:
    """Return what a model file says of a table, a column or a schema, in order, defaults left out.

    Args:
        fields: `TABLE_FIELDS`, `COLUMN_FIELDS` or `SCHEMA_FIELDS`.
        model: the table, the column or the schema.
    """
    values = ((field, field.value(model)) for field in fields)
    return {field.key: value for field, value in values if value is not None and value != field.default}


def arguments(fields: tuple[ModelField[Declared], ...], model: Declared) -> list[tuple[str, Code]]:
    """Return the same as Python arguments."""
    values = said(fields, model)
    return [
        (field.argument or field.key, field.code(values[field.key]))
        for field in fields
        if field.key in values
    ]


def column_call(column: Column) -> Call:
    """Return the call that makes a column in a Python model: name and type by position, the rest by name."""
    (_, name), (_, data_type), *others = arguments(COLUMN_FIELDS, column)
    return Call("Column", [name, data_type, *others])


def _call(function: str, value: Value) -> Code:
    """Return the call that makes a part of a model from how a model file says it."""
    match value:
        case Mapping():
            return Call(function, [(key, as_code(item)) for key, item in value.items()])
        case bool():
            return Call(function, [])
        case str():
            return Call(function, [as_code(value)])
        case int():
            return as_code(value)
    return [_call(function, item) if isinstance(item, Mapping) else as_code(item) for item in value]


def _checks_code(checks: Value) -> Code:
    assert isinstance(checks, Mapping)
    return [
        Call("CheckConstraint", [as_code(name), as_code(expression)]) for name, expression in checks.items()
    ]


def _clustering_code(columns: Value) -> Code:
    return AUTO if columns == AUTO else as_code(columns)


def _parts(part: PrimaryKey | ForeignKey | Identity | ColumnMask | RowFilter) -> dict[str, Value]:
    """Return a part of a model as a mapping: a name of its own first, defaults left out."""
    found = ((field.name, getattr(part, field.name), field.default) for field in fields(part))
    values = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value, default in found
        if value != default
    }
    return {**({"name": values["name"]} if "name" in values else {}), **values}


def _primary_key(table: Table) -> Value | None:
    if table.primary_key is None:
        return None
    values = _parts(table.primary_key)
    return values["columns"] if list(values) == ["columns"] and values["columns"] else values


def _clustering(table: Table) -> Value:
    return AUTO if table.clusters_automatically else list(table.cluster_by)


def _identity(column: Column) -> Value | None:
    return None if column.identity is None else _parts(column.identity) or True


def _mask(column: Column) -> Value | None:
    if column.mask is None:
        return None
    values = _parts(column.mask)
    return values["function"] if list(values) == ["function"] else values


def _managed(table: Table) -> Value | None:
    managed = table.manages
    return None if managed is None else [part.value for part in Part if part in managed]


def _grants(model: Table | Schema) -> Value:
    return {principal: list(granted) for principal, granted in model.grants.items()}


COLUMN_FIELDS: tuple[ModelField[Column], ...] = (
    ModelField("name", lambda column: column.name),
    ModelField("type", lambda column: sql_data_type(column.data_type)),
    ModelField("nullable", lambda column: column.is_nullable, True, "is_nullable"),
    ModelField("comment", lambda column: column.comment, ""),
    ModelField("default", lambda column: column.default),
    ModelField("generated_as", lambda column: column.generated_as),
    ModelField("identity", _identity, code=partial(_call, "Identity")),
    ModelField("tags", lambda column: dict(column.tags), {}, entry="tag"),
    ModelField("mask", _mask, code=partial(_call, "ColumnMask")),
    ModelField("renamed_from", lambda column: column.renamed_from),
    ModelField("renamed_fields", lambda column: dict(column.renamed_fields), {}, entry="renamed field"),
)

TABLE_FIELDS: tuple[ModelField[Table], ...] = (
    ModelField("catalog", lambda table: table.catalog_name, None, "catalog_name"),
    ModelField("schema", lambda table: table.schema_name, None, "schema_name"),
    ModelField("name", lambda table: table.table_name, None, "table_name"),
    ModelField("renamed_from", lambda table: table.renamed_from),
    ModelField("manages", _managed),
    ModelField("comment", lambda table: table.comment, ""),
    ModelField("columns", lambda table: [said(COLUMN_FIELDS, column) for column in table.columns]),
    ModelField(
        "properties", lambda table: dict(table.table_properties), {}, "table_properties", entry="property"
    ),
    ModelField("primary_key", _primary_key, code=partial(_call, "PrimaryKey")),
    ModelField(
        "foreign_keys",
        lambda table: [_parts(key) for key in table.foreign_keys],
        [],
        code=partial(_call, "ForeignKey"),
        entry="foreign key",
    ),
    ModelField(
        "checks",
        lambda table: {check.name: check.expression for check in table.checks},
        {},
        code=_checks_code,
        entry="check",
    ),
    ModelField("cluster_by", _clustering, [], code=_clustering_code),
    ModelField("partitioned_by", lambda table: list(table.partitioned_by), []),
    ModelField("location", lambda table: table.location),
    ModelField("tags", lambda table: dict(table.tags), {}, entry="tag"),
    ModelField(
        "row_filter",
        lambda table: _parts(table.row_filter) if table.row_filter else None,
        code=partial(_call, "RowFilter"),
    ),
    ModelField("owner", lambda table: table.owner),
    ModelField("grants", _grants, {}, entry="grant"),
)

SCHEMA_FIELDS: tuple[ModelField[Schema], ...] = (
    ModelField("catalog", lambda schema: schema.catalog_name, None, "catalog_name"),
    ModelField("name", lambda schema: schema.schema_name, None, "schema_name"),
    ModelField("comment", lambda schema: schema.comment),
    ModelField("tags", lambda schema: dict(schema.tags), {}, entry="tag"),
    ModelField("owner", lambda schema: schema.owner),
    ModelField("grants", _grants, {}, entry="grant"),
)

ITEM_LISTS = ("columns", "foreign_keys")
"""The keys under which lists of mappings stand."""

BLOCKS = frozenset((*ITEM_LISTS, "properties", "checks", "tags", "grants"))
"""The keys whose values take a line per entry."""

LONG_FORMS = {"primary_key": "columns", "mask": "function"}
"""The keys of the mappings that may be written as one value: which of theirs that is."""
