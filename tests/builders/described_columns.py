"""Columns as tables of Unity Catalog describe them: in the documents of `AS JSON`, and in CREATE statements."""

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
)
from delta_engine.sql.text import quote_ident, sql_data_type, sql_literal

_OTHER_NAMES = {"timestamp": "timestamp_ltz"}


def json_column(column: Column) -> dict[str, object]:
    default = {} if column.default is None else {"default": column.default}
    return {**_json_field(column), **default}


def json_type(data_type: DataType) -> dict[str, object]:
    match data_type:
        case AtomicType("string"):
            return {"name": "string", "collation": "UTF8_BINARY"}
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
    raise ValueError(f"no Delta table has {data_type}")


def column_definition(column: Column) -> str:
    text = f"{quote_ident(column.name)} {sql_data_type(column.data_type)}"
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
