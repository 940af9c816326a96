"""The forms in which a data type arrives: SQL text, a pyspark `DataType`, and the JSON of Spark's schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from delta_engine.models.type_text import parse_data_type
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
    inside,
    rebuilt,
)

_CHAR_TYPE_KEY = "__CHAR_VARCHAR_TYPE_STRING"
"""The metadata key in which Spark keeps CHAR and VARCHAR, which the schema shows as string."""

_COLLATIONS_KEY = "__COLLATIONS"


class SparkDataType(Protocol):
    """The methods of a pyspark `DataType` that the engine calls; pyspark need not be imported."""

    def jsonValue(self) -> str | dict[str, object]:  # noqa: N802 - pyspark's name
        """Return the type in Spark's schema JSON."""
        ...

    def simpleString(self) -> str:  # noqa: N802 - pyspark's name
        """Return the type as short text."""
        ...


TypeLike: TypeAlias = DataType | str | SparkDataType


def to_data_type(value: TypeLike) -> DataType:
    """Return the canonical form of a SQL type string, a pyspark `DataType` or a canonical type, else TypeError."""
    if isinstance(value, str):
        return parse_data_type(value)
    if isinstance(
        value, (AtomicType, DecimalType, CharacterType, ArrayType, MapType, StructType, UnsupportedType)
    ):
        return value
    if not hasattr(value, "jsonValue"):
        raise TypeError(f"a data type is a SQL string or a pyspark DataType, not {value!r}")
    if "collate" in value.simpleString():
        return UnsupportedType(value.simpleString())
    return data_type_from_spark_json(value.jsonValue())


def data_type_from_spark_json(value: object, metadata: Mapping[str, object] | None = None) -> DataType:
    """Return the canonical form of a type in Spark's schema JSON; field `metadata` holds CHAR and VARCHAR."""
    metadata = metadata or {}
    if _COLLATIONS_KEY in metadata:
        return UnsupportedType("string collate")
    data_type = _from_json(value)
    declared = metadata.get(_CHAR_TYPE_KEY)
    return _with_lengths(data_type, parse_data_type(declared)) if isinstance(declared, str) else data_type


def _from_json(value: object) -> DataType:
    match value:
        case "null":  # Spark's older name of void
            return AtomicType("void")
        case str():
            return parse_data_type(value)
        case {"type": "array", "elementType": element}:
            return ArrayType(_from_json(element))
        case {"type": "map", "keyType": key, "valueType": item}:
            return MapType(_from_json(key), _from_json(item))
        case {"type": "struct", "fields": [_, *_] as fields}:
            return _struct([_field_from_json(field) for field in fields])
    return UnsupportedType(str(value))


def _field_from_json(field: Mapping[str, object]) -> StructField:
    value = field.get("metadata")
    metadata: Mapping[str, object] = value if isinstance(value, Mapping) else {}
    return StructField(
        name=str(field["name"]),
        data_type=data_type_from_spark_json(field["type"], metadata),
        is_nullable=bool(field.get("nullable", True)),
        comment=str(metadata.get("comment", "")),
    )


def _struct(fields: Sequence[StructField]) -> DataType:
    names = {field.name.lower() for field in fields}
    if len(names) != len(fields):
        return UnsupportedType("struct", "a struct has two fields of the same name")
    return StructType(tuple(fields))


def _with_lengths(data_type: DataType, declared: DataType) -> DataType:
    """Restore CHAR and VARCHAR where the schema has string; keep the rest."""
    if isinstance(declared, UnsupportedType) or (
        data_type == AtomicType("string") and isinstance(declared, CharacterType)
    ):
        return declared
    pairs = [*zip(inside(data_type), inside(declared), strict=False)]
    if type(data_type) is not type(declared) or len(pairs) != len(inside(data_type)):
        return data_type
    return rebuilt(data_type, [_with_lengths(inner, of_declared) for (_, inner), (_, of_declared) in pairs])
