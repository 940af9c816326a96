"""Types for readers and model files: SQL with backticks only around the names that need them.

Statements take `sql_data_type`, which quotes every name. Both spellings parse to the same type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from delta_engine.models.type_text import parse_data_type
from delta_engine.models.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    UnsupportedType,
)
from delta_engine.sql.text import quote_ident, shown_type, struct_field

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NESTED: Final = re.compile(r"\s*(?:struct|array|map)<", re.IGNORECASE)
_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|`((?:[^`]|``)+)`|[<>]|[^'`<>]+|.", re.DOTALL)


def readable_ident(name: str) -> str:
    """Return a raw identifier, in backticks only if it needs them."""
    return name if _PLAIN_NAME.fullmatch(name) else quote_ident(name)


@lru_cache(maxsize=4096)
def readable_data_type(data_type: DataType) -> str:
    """Return a type on one line."""
    match data_type:
        case ArrayType(element):
            return f"array<{readable_data_type(element)}>"
        case MapType(key, value):
            return f"map<{readable_data_type(key)}, {readable_data_type(value)}>"
        case StructType(fields):
            return f"struct<{', '.join(map(_readable_field, fields))}>"
    return shown_type(data_type)


def laid_out_data_type(data_type: DataType, indent: int = 0) -> str:
    """Return a type with a line per field of its structs."""
    match data_type:
        case ArrayType(element):
            return f"array<{laid_out_data_type(element, indent)}>"
        case MapType(key, value):
            return f"map<{laid_out_data_type(key, indent)}, {laid_out_data_type(value, indent)}>"
        case StructType(fields):
            lines = ",\n".join(_laid_out_fields(fields, indent + 2))
            return f"struct<\n{lines}\n{' ' * indent}>"
    return shown_type(data_type)


def with_readable_types(text: str) -> str:
    """Return a text without the backticks that names in the nested type at its start do not need."""
    pieces, rest = _split_nested_type(text)
    return (
        "".join(readable_ident(piece[1].replace("``", "`")) if piece[1] else piece[0] for piece in pieces)
        + rest
    )


def nested_type_in(text: str) -> tuple[DataType, str] | None:
    """Return the nested type at the start of a text, and what follows it; None if there is none."""
    pieces, rest = _split_nested_type(text)
    if not pieces:
        return None
    data_type = parse_data_type("".join(piece[0] for piece in pieces))
    return None if isinstance(data_type, UnsupportedType) else (data_type, rest)


def _split_nested_type(text: str) -> tuple[list[re.Match[str]], str]:
    """Return the tokens of the nested type at the start of a text, none if there is none, and what follows."""
    pieces, depth = [], 0
    for token in _TOKEN.finditer(text) if _NESTED.match(text) else ():
        depth += {"<": 1, ">": -1}.get(token[0], 0)
        pieces.append(token)
        if depth == 0 and token[0] == ">":
            return pieces, text[token.end() :]
    return [], text


def _readable_field(field: StructField) -> str:
    return struct_field(readable_ident(field.name), readable_data_type(field.data_type), field)


def _laid_out_fields(fields: tuple[StructField, ...], indent: int) -> Iterator[str]:
    for field in fields:
        data_type = laid_out_data_type(field.data_type, indent)
        yield " " * indent + struct_field(readable_ident(field.name), data_type, field)
