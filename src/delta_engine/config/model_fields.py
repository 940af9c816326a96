"""The keys of a model file for writing and editing, derived from the facets in `delta_engine.aspects`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from delta_engine.aspects import COLUMN_FACETS, SCHEMA_FACETS, TABLE_FACETS
from delta_engine.aspects.facet import Facet
from delta_engine.config.python_text import Call, Code, literal
from delta_engine.config.yaml_emitter import Value
from delta_engine.models import Column, Part, Schema, Table
from delta_engine.sql.text import sql_data_type

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
        value: returns the value; None and the default omit the key.
        argument: the equivalent Python argument; None if it has the key's name.
        entry: what messages call one entry of a mapping or list.
    """

    key: str
    value: Callable[[Declared], Value | None]
    default: Value | None = None
    argument: str | None = None
    code: Callable[[Value], Code] = as_code
    entry: str | None = None


def said(fields: tuple[ModelField[Declared], ...], model: Declared) -> dict[str, Value]:
    """Return the values that a model file gives a table, a column or a schema, in order and without defaults."""
    values = ((field, field.value(model)) for field in fields)
    return {field.key: value for field, value in values if value is not None and value != field.default}


def arguments(fields: tuple[ModelField[Declared], ...], model: Declared) -> list[tuple[str, Code]]:
    """Return the same values as Python arguments."""
    values = said(fields, model)
    return [
        (field.argument or field.key, field.code(values[field.key]))
        for field in fields
        if field.key in values
    ]


def column_call(column: Column) -> Call:
    """Return the call that creates a column in a Python model; name and type are positional."""
    (_, name), (_, data_type), *others = arguments(COLUMN_FIELDS, column)
    return Call("Column", [name, data_type, *others])


def _call(function: str, value: Value) -> Code:
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


def _entries_code(function: str, entries: Value) -> Code:
    assert isinstance(entries, Mapping)
    return [Call(function, [as_code(name), as_code(value)]) for name, value in entries.items()]


def _constants_code(constants: tuple[str, ...], value: Value) -> Code:
    return value if isinstance(value, str) and value in constants else as_code(value)


def _code(facet: Facet[Any, Any, Any]) -> Callable[[Value], Code]:
    if facet.constants:
        return partial(_constants_code, facet.constants)
    if facet.constructor is None:
        return as_code
    is_mapping = facet.entry is not None and isinstance(facet.form.write(facet.absent), Mapping)
    return partial(_entries_code if is_mapping else _call, facet.constructor)


def _fields(facets: tuple[Facet[Declared, Any, Any], ...]) -> tuple[ModelField[Declared], ...]:
    return tuple(
        ModelField(
            facet.key,
            facet.written_value,
            facet.form.write(facet.absent),
            facet.argument,
            _code(facet),
            facet.entry,
        )
        for facet in facets
        if facet.meaning is not None
    )


def _managed(table: Table) -> Value | None:
    managed = table.manages
    return None if managed is None else [part.value for part in Part if part in managed]


COLUMN_FIELDS: tuple[ModelField[Column], ...] = (
    ModelField("name", lambda column: column.name),
    ModelField("type", lambda column: sql_data_type(column.data_type)),
    *_fields(COLUMN_FACETS),
)

_renamed_from, _comment, *_others = _fields(TABLE_FACETS)
TABLE_FIELDS: tuple[ModelField[Table], ...] = (
    ModelField("catalog", lambda table: table.catalog_name, None, "catalog_name"),
    ModelField("schema", lambda table: table.schema_name, None, "schema_name"),
    ModelField("name", lambda table: table.table_name, None, "table_name"),
    _renamed_from,
    ModelField("manages", _managed),
    _comment,
    ModelField("columns", lambda table: [said(COLUMN_FIELDS, column) for column in table.columns]),
    *_others,
)

SCHEMA_FIELDS: tuple[ModelField[Schema], ...] = (
    ModelField("catalog", lambda schema: schema.catalog_name, None, "catalog_name"),
    ModelField("name", lambda schema: schema.schema_name, None, "schema_name"),
    *_fields(SCHEMA_FACETS),
)

_BLOCK_FACETS = [facet for facet in TABLE_FACETS if facet.entry is not None]

ITEM_LISTS = (
    "columns",
    *(facet.key for facet in _BLOCK_FACETS if isinstance(facet.form.write(facet.absent), list)),
)
"""The keys of lists of mappings."""

BLOCKS = frozenset(("columns", *(facet.key for facet in _BLOCK_FACETS)))
"""The keys whose values take a line per entry."""

_FACETS: tuple[Facet[Any, Any, Any], ...] = (*TABLE_FACETS, *COLUMN_FACETS)
LONG_FORMS = {facet.key: facet.short for facet in _FACETS if facet.short is not None}
"""The key that a mapping's short form stands for, by the mapping's own key."""
