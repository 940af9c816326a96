"""The keys of a model file for writing and editing, derived from the facets in `delta_engine.aspects`."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.emitter import Emitter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, SingleQuotedScalarString

from delta_engine.aspects import COLUMN_FACETS, SCHEMA_FACETS, TABLE_FACETS
from delta_engine.aspects.facet import Facet
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


MAX_LINE_LENGTH = 100

Code: TypeAlias = "str | Call | Sequence[Code] | Mapping[str, Code]"
"""An expression: verbatim text, a call, a list, or a dict with verbatim keys."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call; `(name, value)` is a keyword argument, and `is_spread` forces a line per argument."""

    function: str
    arguments: Sequence[Code | tuple[str, Code]]
    is_spread: bool = False


def literal(text: str) -> str:
    """Return text as a string literal, in double quotes unless single quotes need fewer escapes."""
    if '"' in text:
        return repr(text)
    return '"' + repr("'" + text)[2:]


def python_text(code: Code, *, indent: int = 0, reserved: int = 0) -> str:
    """Return an expression on one line if it fits, else an item per line; `reserved` counts its other characters."""
    if isinstance(code, str):
        return code
    line = on_one_line(code)
    if line is not None and indent + reserved + len(line) <= MAX_LINE_LENGTH:
        return line
    opening, items, closing = _parts(code)
    if not items:
        return opening + closing
    margin = " " * (indent + 4)
    lines = [f"{margin}{prefix}{_nested(item, prefix, indent + 4)},\n" for prefix, item in items]
    return f"{opening}\n{''.join(lines)}{' ' * indent}{closing}"


def on_one_line(code: Code) -> str | None:
    """Return an expression on one line, or None if it needs line breaks."""
    if isinstance(code, str):
        return code
    if isinstance(code, Call) and code.is_spread and code.arguments:
        return None
    opening, items, closing = _parts(code)
    texts = [(prefix, on_one_line(item)) for prefix, item in items]
    if any(text is None for _, text in texts):
        return None
    return f"{opening}{', '.join(f'{prefix}{text}' for prefix, text in texts)}{closing}"


def _parts(code: Call | Sequence[Code] | Mapping[str, Code]) -> tuple[str, list[tuple[str, Code]], str]:
    """Return the opening, the items with their prefixes, and the closing of an expression."""
    if isinstance(code, Call):
        return f"{code.function}(", [_argument(argument) for argument in code.arguments], ")"
    if isinstance(code, Mapping):
        return "{", [(f"{key}: ", value) for key, value in code.items()], "}"
    return "[", [("", item) for item in code], "]"


def _nested(item: Code, prefix: str, indent: int) -> str:
    return python_text(item, indent=indent, reserved=len(prefix) + len(","))


def _argument(argument: Code | tuple[str, Code]) -> tuple[str, Code]:
    if isinstance(argument, tuple):
        name, value = argument
        return f"{name}=", value
    return "", argument


Value: TypeAlias = "str | int | Sequence[Value] | Mapping[str, Value]"
"""A value of a model file: a text, a number, true or false, a list or a mapping."""

_BOOLEANS_ELSEWHERE = frozenset({"yes", "no", "on", "off"})
"""Plain texts of YAML 1.2 that YAML 1.1 readers parse as booleans."""

_NUMBER = re.compile(r"-?[0-9]+").fullmatch
"""Matches plain numbers; texts that look like numbers are quoted first."""

_QUOTED = {"'": SingleQuotedScalarString, '"': DoubleQuotedScalarString}


class _Emitter(Emitter):
    """Prefers double quotes, and forces them where ruamel.yaml's choice does not round-trip."""

    def choose_scalar_style(self) -> str:
        style = str(super().choose_scalar_style() or "")
        text = self.event.value
        # Plain and single quotes lose U+0085 and friends; `{k: ? a}` and `{"k": v, :a: b}` are not read back.
        is_misread = style == "" and (
            (text.startswith(("?", ":", "-")) and not _NUMBER(text)) or text.lower() in _BOOLEANS_ELSEWHERE
        )
        is_unsafe = is_misread or not text.isprintable()
        is_unwanted = style == "'" and self.event.style != "'"
        return '"' if is_unsafe or is_unwanted else style


def emit_block(value: Mapping[str, object]) -> str:
    """Return a document with mappings and lists in blocks, except those that `flow` returned."""
    yaml = YAML()
    yaml.Emitter = _Emitter
    yaml.width = sys.maxsize
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()


def flow(value: Value) -> object:
    """Return a value that `emit_block` writes on one line, such as `{name: id, type: bigint}`."""
    if isinstance(value, (str, int)):
        return value
    collection: CommentedMap | CommentedSeq
    if isinstance(value, Mapping):
        collection = CommentedMap((key, flow(item)) for key, item in value.items())
    else:
        collection = CommentedSeq([flow(item) for item in value])
    collection.fa.set_flow_style()
    return collection


def emit_pair(key: str, value: Value, *, in_flow: bool) -> str:
    """Return `key: value` on one line, with flow collections; `in_flow` quotes for use in braces."""
    if in_flow:
        return emit_block(cast("Mapping[str, object]", flow({key: value})))[1:-2]
    return emit_block({key: flow(value)})[:-1]


def emit_value(value: Value, *, in_flow: bool, style: str | None = None) -> str:
    """Return a value on one line; `style` is the preferred quote of a text, None for as few quotes as possible."""
    if isinstance(value, str) and style in _QUOTED:
        value = _QUOTED[style](value)
    return emit_pair("k", value, in_flow=in_flow).removeprefix("k: ")
