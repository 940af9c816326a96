"""Converts the texts of a result to the values that Spark's rows have.

The API returns every value as a string, and NULL as null (databricks-sdk, `StatementExecutionAPI.execute_statement`,
`format`). How the texts are spelled is not documented (docs/assumptions.md). This module expects timestamps in ISO
8601, and arrays, maps and structs in JSON, with scalars either as JSON values or as texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Final, TypeAlias

from delta_engine.models.types import (
    ArrayType,
    AtomicType,
    DataType,
    DecimalType,
    MapType,
    StructType,
    parse_data_type,
)

Convert: TypeAlias = Callable[[object], object]
"""Returns the value of one text or JSON value; None for None. Raises ValueError."""


def converter(type_text: str) -> Convert:
    """Return the converter of a column.

    Args:
        type_text: the SQL type as in the result's schema (`BIGINT`, `DECIMAL(18,2)`, `MAP<STRING, STRING>`).
    """
    name = type_text.lower().partition("(")[0].strip()
    if name in _SCALARS:
        return _of_scalar(name)
    if name.startswith(_NESTED):
        return _of_json(_of_type(parse_data_type(type_text)))
    return _of_text


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _timestamp(text: str) -> datetime:
    moment = _moment(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))  # Python 3.10 knows no Z


_SCALARS: Final[Mapping[str, Callable[[str], object]]] = {
    "boolean": _boolean,
    "tinyint": int,
    "smallint": int,
    "int": int,
    "bigint": int,
    "float": float,
    "double": float,
    "decimal": Decimal,
    "date": date.fromisoformat,
    "timestamp": _timestamp,
    "timestamp_ntz": _moment,
}

_NESTED: Final = ("array<", "map<", "struct<")


def _of_type(data_type: DataType) -> Convert:
    match data_type:
        case AtomicType(name) if name in _SCALARS:
            return _of_scalar(name)
        case DecimalType():
            return _of_scalar("decimal")
        case ArrayType(element):
            return _of_array(_of_type(element))
        case MapType(key, value):
            return _of_map(_of_type(key), _of_type(value))
        case StructType(fields):
            return _of_struct({field.name: _of_type(field.data_type) for field in fields})
    return _of_text


def _of_scalar(name: str) -> Convert:
    convert = _SCALARS[name]

    def converted(value: object) -> object:
        try:
            return None if value is None else convert(str(value))
        except (ArithmeticError, KeyError) as error:
            raise ValueError(f"{value!r} is no {name}") from error

    return converted


def _of_text(value: object) -> object:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _of_json(convert: Convert) -> Convert:
    return lambda text: None if text is None else convert(json.loads(str(text)))


def _of_array(element: Convert) -> Convert:
    def converted(value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, list):
            raise ValueError(f"{value!r} is no array")
        return [element(one) for one in value]

    return converted


def _of_map(key: Convert, value: Convert) -> Convert:
    def converted(entries: object) -> object:
        if entries is None:
            return None
        if not isinstance(entries, dict):
            raise ValueError(f"{entries!r} is no map")
        return {key(name): value(one) for name, one in entries.items()}

    return converted


def _of_struct(fields: Mapping[str, Convert]) -> Convert:
    def converted(value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ValueError(f"{value!r} is no struct")
        return {name: convert(value.get(name)) for name, convert in fields.items()}

    return converted
