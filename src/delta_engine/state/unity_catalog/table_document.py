"""The document of `DESCRIBE TABLE EXTENDED … AS JSON` (Databricks' SQL reference, "DESCRIBE TABLE", for its form).

Types are objects there: `{"name": "decimal", "precision": 18, "scale": 2}`. Which columns are generated or counted up
it does not document.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, QualifiedName
from delta_engine.state.catalog_reader import readable_column
from delta_engine.state.unity_catalog.described_keys import described_keys
from delta_engine.state.unity_catalog.table_details import TableDetails
from delta_engine.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    UnsupportedType,
    parse_data_type,
)

_DEFAULT_COLLATION = "utf8_binary"
_OTHER_NAMES = {"timestamp_ltz": "timestamp"}


def table_details(table: QualifiedName, text: str) -> TableDetails:
    """Return what a document says.

    Raises:
        CatalogReadError: it is not of the documented form, or has a type that the engine does not know.
    """
    try:
        document = json.loads(text)
        columns = tuple(_column(table, column) for column in _objects(document["columns"]))
        properties = {key: _text(value) for key, value in document["table_properties"].items()}
        clustering = document.get("clustering_information")
        return TableDetails(
            columns=columns,
            properties=properties,
            comment=_optional_text(document.get("comment")) or "",
            cluster_by=None if clustering is None else tuple(_clustering(clustering)),
            partitioned_by=tuple(map(_text, document.get("partition_columns") or ())),
            table_type=_optional_text(document.get("type")),
            owner=_optional_text(document.get("owner")),
            location=_optional_text(document.get("location")),
            keys=described_keys(str(document["table_constraints"]))
            if "table_constraints" in document
            else None,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CatalogReadError(
            f"its description as JSON is not of the documented form: {error!r}",
            table=str(table),
            way_out="Report it, with what DESCRIBE TABLE EXTENDED … AS JSON returns for this table.",
        ) from error


def _column(table: QualifiedName, column: Mapping[str, object]) -> Column:
    return readable_column(
        table,
        _text(column["name"]),
        _data_type(column["type"]),
        is_nullable=_flag(column.get("nullable", True)),
        comment=_optional_text(column.get("comment")) or "",
        default=_optional_text(column.get("default")),
    )


def _data_type(value: object) -> DataType:
    match value:
        case {"name": "array", "element_type": element}:
            return ArrayType(_data_type(element))
        case {"name": "map", "key_type": key, "value_type": item}:
            return MapType(_data_type(key), _data_type(item))
        case {"name": "struct", "fields": [_, *_] as fields}:
            return StructType(tuple(map(_field, _objects(fields))))
        case {"name": "decimal", "precision": precision, "scale": scale}:
            return parse_data_type(f"decimal({precision},{scale})")
        case {"name": "char" | "varchar" as name, "length": length}:
            return parse_data_type(f"{name}({length})")
        case {"name": "string", "collation": str() as collation} if collation.lower() != _DEFAULT_COLLATION:
            return UnsupportedType(
                f"string collate {collation}", "Delta tables hold the default collation only"
            )
        case {"name": str() as name}:
            return parse_data_type(_OTHER_NAMES.get(name, name))
    return UnsupportedType(str(value), "Delta tables cannot store it")


def _field(field: Mapping[str, object]) -> StructField:
    return StructField(
        name=_text(field["name"]),
        data_type=_data_type(field["type"]),
        is_nullable=_flag(field.get("nullable", True)),
        comment=_optional_text(field.get("comment")) or "",
    )


def _clustering(value: object) -> Sequence[str]:
    """Return the columns; a name that needs quotes has them here, such as `` `a b`.c ``."""
    return [
        _text(column["name"]).replace("``", "\0").replace("`", "").replace("\0", "`")
        for column in _objects(value)
    ]


def _objects(value: object) -> Sequence[Mapping[str, object]]:
    if not isinstance(value, list) or not all(map(_is_object, value)):
        raise ValueError(f"a list of objects is wanted, not {value!r}")
    return value


def _is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, dict)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a text is wanted, not {value!r}")
    return value


def _optional_text(value: object) -> str | None:
    return None if value is None else _text(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"true or false is wanted, not {value!r}")
    return value
