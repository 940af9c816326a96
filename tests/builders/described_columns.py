"""Columns as tables of Unity Catalog describe them: as JSON, in CREATE statements, in listings."""

import json

from typing_extensions import assert_never

from delta_engine.models import Column
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
)
from delta_engine.sql.text import quote_ident, shown_type, sql_literal

_COLLATED = "string collate "
_OTHER_NAMES = {"timestamp": "timestamp_ltz"}


def json_column(column: Column) -> dict[str, object]:
    default = {} if column.default is None else {"default": column.default}
    return {**_json_field(column), **default}


def json_type(data_type: DataType) -> dict[str, object]:
    match data_type:
        case AtomicType("string"):
            return {"name": "string", "collation": "UTF8_BINARY"}
        case UnsupportedType(text) if text.startswith(_COLLATED):
            return {"name": "string", "collation": text.removeprefix(_COLLATED)}
        case AtomicType(name):
            return {"name": _OTHER_NAMES.get(name, name)}
        case DecimalType(precision, scale):
            return {"name": "decimal", "precision": precision, "scale": scale}
        case CharacterType(name, length):
            return {"name": name, "length": length}
        case ArrayType(element):
            return {"name": "array", "element_type": json_type(element), "element_nullable": True}
        case MapType(key, value):
            types = {"key_type": json_type(key), "value_type": json_type(value)}
            return {"name": "map", **types, "value_nullable": True}
        case StructType(fields):
            return {"name": "struct", "fields": [_json_field(field) for field in fields]}
        case UnsupportedType(text) if " collate " in text:
            return {"name": "string", "collation": text.rpartition(" ")[2]}
        case UnsupportedType(text):
            return {"name": text.partition("(")[0]}
    assert_never(data_type)


def column_definition(column: Column) -> str:
    text = f"{quote_ident(column.name)} {shown_type(column.data_type)}"
    if not column.is_nullable:
        text += " NOT NULL"
    if column.generated_as is not None:
        text += f" GENERATED ALWAYS AS ({column.generated_as})"
    if column.identity is not None:
        how = "ALWAYS" if column.identity.always else "BY DEFAULT"
        start, step = column.identity.start, column.identity.step
        text += f" GENERATED {how} AS IDENTITY (START WITH {start} INCREMENT BY {step})"
    if column.default is not None:
        text += f" DEFAULT {column.default}"
    return f"{text} COMMENT {sql_literal(column.comment)}" if column.comment else text


def _json_field(field: Column | StructField) -> dict[str, object]:
    comment = {"comment": field.comment} if field.comment else {}
    return {"name": field.name, "type": json_type(field.data_type), "nullable": field.is_nullable, **comment}


def listed_column(column: Column, position: int) -> dict[str, object]:
    """Return a column as databricks-sdk lists it: its type also as a field of Spark's schema JSON."""
    metadata = {"comment": column.comment} if column.comment else {}
    text = shown_type(column.data_type)
    collations = {"__COLLATIONS": {column.name: f"icu.{text[15:]}"}} if " collate " in text else {}
    field = {
        "name": column.name,
        "type": "string" if collations else _spark_type(column.data_type),
        "nullable": column.is_nullable,
        "metadata": {**metadata, **collations},
    }
    return {
        "name": column.name,
        "type_text": shown_type(column.data_type).lower(),
        "type_json": json.dumps(field),
        "type_name": _type_name(column.data_type),
        "position": position,
        "nullable": column.is_nullable,
        **metadata,
    }


def _type_name(data_type: DataType) -> str:
    name = shown_type(data_type).partition("(")[0].partition("<")[0]
    return {"BIGINT": "LONG"}.get(name.upper(), name.upper())


def _spark_type(data_type: DataType) -> object:
    match data_type:
        case ArrayType(element):
            return {"type": "array", "elementType": _spark_type(element), "containsNull": True}
        case MapType(key, value):
            return {
                "type": "map",
                "keyType": _spark_type(key),
                "valueType": _spark_type(value),
                "valueContainsNull": True,
            }
        case StructType(fields):
            described_fields = [
                {
                    "name": field.name,
                    "type": _spark_type(field.data_type),
                    "nullable": field.is_nullable,
                    "metadata": {"comment": field.comment} if field.comment else {},
                }
                for field in fields
            ]
            return {"type": "struct", "fields": described_fields}
        case AtomicType("bigint"):
            return "long"
        case AtomicType("int"):
            return "integer"
    return shown_type(data_type).lower()
