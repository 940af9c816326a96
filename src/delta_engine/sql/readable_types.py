"""Types for readers and model files: SQL with backticks only around the names that need them.

Statements take `sql_data_type`, which quotes every name. Both spellings parse to the same type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from delta_engine.models.types import ArrayType, DataType, MapType, StructField, StructType
from delta_engine.sql.text import quote_ident, sql_data_type, struct_field

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
    return sql_data_type(data_type)


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
    return sql_data_type(data_type)


def with_readable_types(text: str) -> str:
    """Return a text without the backticks that names in the nested type at its start do not need."""
    if not _NESTED.match(text):
        return text
    pieces, depth = [], 0
    for token in _TOKEN.finditer(text):
        depth += {"<": 1, ">": -1}.get(token[0], 0)
        quoted = token[1]
        pieces.append(readable_ident(quoted.replace("``", "`")) if quoted else token[0])
        if depth == 0 and token[0] == ">":
            return "".join(pieces) + text[token.end() :]
    return text


def _readable_field(field: StructField) -> str:
    return struct_field(readable_ident(field.name), readable_data_type(field.data_type), field)


def _laid_out_fields(fields: tuple[StructField, ...], indent: int) -> Iterator[str]:
    for field in fields:
        data_type = laid_out_data_type(field.data_type, indent)
        yield " " * indent + struct_field(readable_ident(field.name), data_type, field)
