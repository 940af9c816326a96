"""SQL text: quoting, literals, types and shared fragments. Identifiers are quoted here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from typing_extensions import assert_never

from delta_engine.models.parts import QualifiedName
from delta_engine.models.types import (
    ArrayType,
    AtomicType,
    CharacterType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    UnsupportedType,
    parts,
)

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\u0000"})


def quote_ident(name: str) -> str:
    """Return a raw identifier in backticks, with its own backticks doubled."""
    return "`" + name.replace("`", "``") + "`"


def without_name(text: str, name: str, stand_in: str) -> str:
    """Return a text without a dotted name, plain or quoted: texts about several names become equal."""
    return text.replace(sql_path(name.split(".")), stand_in).replace(name, stand_in)


def sql_path(path: Sequence[str]) -> str:
    """Return a dotted name, of a table or of a nested field, with each part quoted."""
    return ".".join(map(quote_ident, path))


def sql_paths(paths: Iterable[Sequence[str]]) -> str:
    """Return dotted names as a comma-separated list."""
    return ", ".join(map(sql_path, paths))


def sql_name(name: QualifiedName) -> str:
    """Return the three-part name of a table or a function, in lower case as the catalog stores it."""
    return sql_path(name.parts)


def escape_sql_literal(text: str) -> str:
    r"""Return text escaped for the inside of a SQL string literal.

    A quote becomes `\'`, which every Spark version accepts; before Spark 4.1, `''` separates two adjacent literals.
    `${` becomes `$\{`: Spark substitutes variables inside literals (`spark.sql.variable.substitute`), and serverless
    compute does not allow switching that off.
    """
    return text.translate(_ESCAPES).replace("${", "$\\{")


def sql_literal(text: str) -> str:
    """Return text as a SQL string literal."""
    return f"'{escape_sql_literal(text)}'"


@lru_cache(maxsize=4096)
def sql_data_type(data_type: DataType) -> str:
    """Return a type as SQL that Spark and Databricks parse; ValueError for an `UnsupportedType`, also inside it."""
    for part in parts(data_type):
        if isinstance(part, UnsupportedType):
            raise ValueError(f"type {part.text!r} has no SQL: {part.reason}")
    return shown_type(data_type)


@lru_cache(maxsize=4096)
def shown_type(data_type: DataType) -> str:
    """Return a type for messages and records: its SQL, with an `UnsupportedType` as it was read."""
    match data_type:
        case AtomicType(name):
            return name
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case CharacterType(name, length):
            return f"{name}({length})"
        case ArrayType(element):
            return f"array<{shown_type(element)}>"
        case MapType(key, value):
            return f"map<{shown_type(key)},{shown_type(value)}>"
        case StructType(fields):
            return f"struct<{', '.join(map(_struct_field, fields))}>"
        case UnsupportedType(text):
            return text
    assert_never(data_type)


def idents(names: Iterable[str]) -> str:
    """Return identifiers as a comma-separated list, each quoted."""
    return ", ".join(map(quote_ident, names))


def sql_comment(text: str) -> str:
    """Return a COMMENT clause with a leading blank; empty for an empty text."""
    return f" COMMENT {sql_literal(text)}" if text else ""


def sql_pairs(properties: Mapping[str, str]) -> str:
    """Return keys and values as SQL lists them, sorted by key."""
    return ", ".join(f"{sql_literal(key)} = {sql_literal(properties[key])}" for key in sorted(properties))


def struct_field(name: str, data_type: str, field: StructField) -> str:
    """Return a field of a struct, with its name and type spelled already."""
    not_null = "" if field.is_nullable else " NOT NULL"
    return f"{name}: {data_type}{not_null}{sql_comment(field.comment)}"


def _struct_field(field: StructField) -> str:
    return struct_field(quote_ident(field.name), shown_type(field.data_type), field)
