"""Converts the texts of a result to the values of Spark's rows.

The API returns every value as a string, and NULL as null (databricks-sdk, `StatementExecutionAPI.execute_statement`,
`format`). The spelling of the texts is undocumented (docs/assumptions.md). This module expects timestamps in ISO 8601,
and arrays, maps and structs in JSON, with scalars as JSON values or as texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import partial
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
"""Returns the value of one text; None for None. Raises ValueError."""

_NESTED: Final = ("array<", "map<", "struct<")


def converter(type_text: str) -> Convert:
    """Return the converter of a column, by its type in the result's schema (`DECIMAL(18,2)`, `MAP<STRING, STRING>`)."""
    name = type_text.lower().partition("(")[0].strip()
    if name in _SCALARS:
        return partial(_scalar, name)
    if name.startswith(_NESTED):
        data_type = parse_data_type(type_text)
        return lambda text: None if text is None else _value(data_type, json.loads(str(text)))
    return _text


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _timestamp(text: str) -> datetime:
    moment = _moment(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))  # Python 3.10 rejects Z


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


def _value(data_type: DataType, value: object) -> object:
    match data_type, value:
        case _, None:
            return None
        case AtomicType(name), _ if name in _SCALARS:
            return _scalar(name, value)
        case DecimalType(), _:
            return _scalar("decimal", value)
        case ArrayType(element), list():
            return [_value(element, one) for one in value]
        case MapType(key, item), dict():
            return {_value(key, name): _value(item, one) for name, one in value.items()}
        case StructType(fields), dict():
            return {field.name: _value(field.data_type, value.get(field.name)) for field in fields}
        case ((ArrayType() | MapType() | StructType()), _):
            raise ValueError(f"{value!r} is no {type(data_type).__name__}")
    return _text(value)


def _scalar(name: str, value: object) -> object:
    try:
        return None if value is None else _SCALARS[name](str(value))
    except (ArithmeticError, KeyError) as error:
        raise ValueError(f"{value!r} is no {name}") from error


def _text(value: object) -> object:
    return value if value is None or isinstance(value, str) else json.dumps(value)
