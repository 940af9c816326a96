"""Types as `DESCRIBE TABLE … AS JSON` has them."""

from __future__ import annotations

from delta_engine.types import (
    ArrayType,
    AtomicType,
    CharacterType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)

_OTHER_NAMES = {"timestamp": "timestamp_ltz"}


def json_type(data_type: DataType) -> dict[str, object]:
    """Return a type in the documented form."""
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
            return {
                "name": "map",
                "key_type": json_type(key),
                "value_type": json_type(value),
                "value_nullable": True,
            }
        case StructType(fields):
            return {
                "name": "struct",
                "fields": [
                    {
                        "name": field.name,
                        "type": json_type(field.data_type),
                        "nullable": field.is_nullable,
                        **({"comment": field.comment} if field.comment else {}),
                    }
                    for field in fields
                ],
            }
    raise ValueError(f"no Delta table has {data_type}")
