"""The keys of a model file for writing and editing, and their values as YAML and as Python.

They derive from the facets in `delta_engine.aspects`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final, TypeAlias

from delta_engine.aspects import COLUMN_FACETS, KINDS, TABLE_FACETS
from delta_engine.aspects.facet import REQUIRED, TEXT, Facet, Form, Written
from delta_engine.aspects.function_definition import BODY_FACET
from delta_engine.aspects.kind import Kind
from delta_engine.aspects.view_definition import QUERY_FACET
from delta_engine.config.yaml_text import block, in_lines, list_item, one_line, pair
from delta_engine.models import (
    Column,
    FunctionName,
    Part,
    PolicyName,
    QualifiedName,
    SchemaName,
    Securable,
    ViewName,
)
from delta_engine.models.type_text import parse_data_type, type_schema
from delta_engine.sql.readable_types import laid_out_data_type, readable_data_type
from delta_engine.telemetry.visible import plural

Values: TypeAlias = Mapping[str, Written]
"""The values of a model file by key."""

Fields: TypeAlias = tuple[Facet[Any, Any, Any], ...]
"""The keys of a securable or a column in order, as facets."""

MAX_LINE_LENGTH = 100
_LONGEST_TYPE = 72

Code: TypeAlias = "str | Call | Sequence[Code] | Mapping[str, Code]"
"""An expression: verbatim text, a call, a list, or a dict with verbatim keys."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call; `(name, value)` is a keyword argument, and `is_spread` forces a line per argument."""

    function: str
    arguments: Sequence[Code | tuple[str, Code]]
    is_spread: bool = False


def written_values(fields: Fields, model: Securable | Column) -> dict[str, Written]:
    """Return the values that a model file gives a securable or a column, in order and without defaults."""
    values = ((field, field.written_value(model)) for field in fields)
    return {
        field.key: value
        for field, value in values
        if value is not None and (field.default == REQUIRED or value != field.form.write(field.absent))
    }


def arguments(fields: Fields, model: Securable | Column) -> list[tuple[str, Code]]:
    """Return the same values as Python arguments."""
    values = written_values(fields, model)
    return [(field.attribute, code_of(field, values[field.key])) for field in fields if field.key in values]


def fields_of(model: Securable) -> Fields:
    """Return the keys of a securable."""
    return FIELDS[model.qualified_name.kind]


def alternatives(fields: Fields) -> list[list[str]]:
    """Return the keys that say the same in different ways, of which a model has exactly one."""
    by_attribute = groupby(fields, key=lambda field: field.attribute)
    groups = [[field.key for field in group] for _, group in by_attribute]
    return [keys for keys in groups if len(keys) > 1]


def column_call(column: Column) -> Call:
    """Return the call that creates a column in a Python model; name and type are positional."""
    (_, name), (_, data_type), *others = arguments(COLUMN_FIELDS, column)
    return Call("Column", [name, data_type, *others])


def code_of(field: Facet[Any, Any, Any], value: Written) -> Code:
    """Return the value of a key as Python."""
    if isinstance(value, str) and value in field.constants:
        return value
    if field.constructor is None or (field.takes_text and isinstance(value, str)):
        return as_code(value)
    if field.takes_pair and isinstance(value, Mapping):
        return Call(field.constructor, [as_code(part) for pair in value.items() for part in pair])
    if field.entry is not None and isinstance(value, Mapping):
        return [Call(field.constructor, [as_code(name), as_code(item)]) for name, item in value.items()]
    return _call(field.constructor, value)


def as_code(value: Written) -> Code:
    """Return the Python literal of a value."""
    match value:
        case str():
            return literal(value)
        case int():
            return str(value)
        case Mapping():
            return {literal(key): as_code(item) for key, item in value.items()}
    return [as_code(item) for item in value]


def _call(function: str, value: Written) -> Code:
    match value:
        case Mapping():
            is_typed = "type" in value  # as a column, whose name and type are positional
            codes = ((key, as_code(item)) for key, item in value.items())
            return Call(
                function,
                [code if is_typed and key in ("name", "type") else (key, code) for key, code in codes],
            )
        case bool():
            return Call(function, [])
        case str():
            return Call(function, [as_code(value)])
        case int():
            return as_code(value)
    return [_call(function, item) if isinstance(item, Mapping) else as_code(item) for item in value]


def sources_of_items(
    before: Sequence[Written], after: Sequence[Written], renames: Mapping[str, str]
) -> list[int | None]:
    """Return each item's position in `before`, None if new; foreign keys match by columns and table, others by name."""
    renamed = {old.lower(): new.lower() for old, new in renames.items()}
    places: dict[tuple[str, ...], int] = {}
    for is_renamed in (False, True):  # a renamed column takes the name of one that is removed
        for place, item in enumerate(before):
            old = _identity(item)
            new = tuple(renamed.get(name, name) for name in old)
            if (new != old) == is_renamed:
                places[new] = place
    return [places.pop(_identity(item), None) for item in after]


def _identity(item: Written) -> tuple[str, ...]:
    if not isinstance(item, Mapping):
        return (str(item).lower(),)
    columns = item.get("columns")
    names = (*columns, item["references"]) if isinstance(columns, list) else (item["name"],)
    return tuple(str(name).lower() for name in names)


def literal(text: str) -> str:
    """Return text as a string literal, in double quotes unless single quotes need fewer escapes."""
    if '"' in text:
        return repr(text)
    return '"' + repr("'" + text)[2:]


def python_text(code: Code, *, indent: int, reserved: int) -> str:
    """Return an expression on one line if it fits, else an item per line; `reserved` counts its other characters."""
    if isinstance(code, str):
        return code
    line = on_one_line(code)
    if line is not None and indent + reserved + len(line) <= MAX_LINE_LENGTH:
        return line
    opening, items, closing = _parts(code)
    if not items:
        return opening + closing
    lines = ""
    for prefix, item in items:
        nested = python_text(item, indent=indent + 4, reserved=len(prefix) + len(","))
        lines += f"{' ' * (indent + 4)}{prefix}{nested},\n"
    return f"{opening}\n{lines}{' ' * indent}{closing}"


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
        items = [
            (f"{item[0]}=", item[1]) if isinstance(item, tuple) else ("", item) for item in code.arguments
        ]
        return f"{code.function}(", items, ")"
    if isinstance(code, Mapping):
        return "{", [(f"{key}: ", value) for key, value in code.items()], "}"
    return "[", [("", item) for item in code], "]"


def key_text(key: str, value: Written, *, in_block: bool = False) -> str:
    """Return a key of a table, a column or a schema in YAML, on one line; collections in blocks have a line per entry.

    Those of `BLOCKS` are always in blocks.
    """
    if key == "type" and isinstance(value, str) and _is_long(value):
        return f"type: {in_lines(laid_out_data_type(parse_data_type(value)))}"
    if key in (BODY_FACET.key, QUERY_FACET.key) and isinstance(value, str) and _has_lines(value):
        return f"{key}: {in_lines(value)}"
    in_block = bool(value) and (in_block or key in BLOCKS)
    if in_block and isinstance(value, Mapping):
        return f"{key}:{block(pair(name, part) for name, part in value.items())}"
    if in_block and isinstance(value, list):
        return f"{key}:{block(list_item(entry_text(part)) for part in value)}"
    return pair(key, value)


def entry_text(value: Written, *, in_block: bool = False) -> str:
    """Return an entry of a list, on one line; in a block, or for a column with a long nested type, a line per key."""
    if not isinstance(value, Mapping) or not (in_block or _is_long(value.get("type"))):
        return one_line(value)
    return "\n".join(key_text(key, part) if key == "type" else pair(key, part) for key, part in value.items())


def _has_lines(text: str) -> bool:
    """Whether a text has several lines that YAML can show as they are."""
    lines = text.removesuffix("\n").split("\n")
    return len(lines) > 1 and bool(lines[-1].strip()) and all(map(str.isprintable, lines))


def _is_long(text: object) -> bool:
    is_nested = isinstance(text, str) and len(text) > _LONGEST_TYPE and "struct<" in text
    return is_nested and str(text).isprintable()


_TYPE: Form[Any] = replace(TEXT, schema=type_schema())
_PARTS: Form[Any] = replace(
    TEXT, words="list", schema={"type": ["array", "null"], "items": {"enum": [part.value for part in Part]}}
)
_COLUMNS: Form[Any] = replace(
    TEXT, words="list", schema={"type": "array", "items": {"$ref": "#/$defs/Column"}}
)


def _written(facets: Fields) -> Fields:
    return tuple(facet for facet in facets if facet.meaning is not None)


def _required(key: str, argument: str, meaning: str, form: Form[Any] = TEXT) -> Facet[Any, Any, Any]:
    """Return a key that every table, column or schema needs."""
    return Facet(
        key=key,
        argument=argument,
        declared=lambda model: getattr(model, argument),
        absent=None,
        form=form,
        meaning=meaning,
        default=REQUIRED,
    )


_NAME: Form[Any] = replace(TEXT, with_texts=lambda name, names, _values: names(name))
_CATALOG_NAME: Form[Any] = replace(
    TEXT, with_texts=lambda name, names, _values: names(f"{name}.").removesuffix(".")
)
"""A catalog's name changes as the beginning of a longer name does."""

_CATALOG = _required(
    "catalog", "catalog_name", "the catalog, usually a variable: see [Variables](#variables)", _CATALOG_NAME
)
_SCHEMA = _required("schema", "schema_name", "the schema", _NAME)

COLUMN_FIELDS: Fields = (
    _required("name", "name", "the column; keeps its case, compares without it"),
    replace(
        _required("type", "data_type", "a [SQL type](#types)", _TYPE),
        written=lambda column: readable_data_type(column.data_type),
    ),
    *_written(COLUMN_FACETS),
)

_renamed_from, _comment, *_others = _written(TABLE_FACETS)
_TABLE_FIELDS: Fields = (
    _renamed_from,
    Facet(
        key="manages",
        declared=lambda model: model.manages,
        absent=None,
        form=_PARTS,
        meaning="the [parts](#a-part-of-a-table) that the model manages, if another owns the rest",
        default="all",
        written=lambda table: (
            None if table.manages is None else [part.value for part in Part if part in table.manages]
        ),
    ),
    _comment,
    replace(
        _required("columns", "columns", "at least one [column](#column), in the table's order", _COLUMNS),
        written=lambda table: [written_values(COLUMN_FIELDS, column) for column in table.columns],
    ),
    *_others,
)

NAMES: Final[Mapping[str, Fields]] = {
    SchemaName.kind: (_CATALOG, _required("name", "schema_name", "the schema", _NAME)),
    FunctionName.kind: (_CATALOG, _SCHEMA, _required("name", "function_name", "the function", _NAME)),
    QualifiedName.kind: (_CATALOG, _SCHEMA, _required("name", "table_name", "the table", _NAME)),
    PolicyName.kind: (_required("name", "name", "the policy", _NAME),),
    ViewName.kind: (_CATALOG, _SCHEMA, _required("name", "view_name", "the view", _NAME)),
}
"""The keys of each kind that name a model."""

FIELDS: Final[Mapping[str, Fields]] = {
    kind.word: (
        *NAMES[kind.word],
        *(_TABLE_FIELDS if kind.word == QualifiedName.kind else _written(kind.facets)),
    )
    for kind in KINDS
}
"""The keys of each kind, in the order in which model files have the kinds."""

LISTS: Final[Mapping[str, Kind]] = {plural(kind.word): kind for kind in KINDS}
"""The kinds by their keys in a model file."""

BLOCKS = frozenset(("columns", *(facet.key for facet in TABLE_FACETS if facet.entry is not None)))
"""The keys whose values take a line per entry."""
