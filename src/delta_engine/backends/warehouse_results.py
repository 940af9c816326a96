"""Collects the rows of a statement from all chunks of its result; refuses incomplete results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from delta_engine.backends.error_conditions import INCOMPLETE_RESULT, UNREADABLE_RESULT
from delta_engine.errors import StatementError
from delta_engine.models.type_text import parse_data_type
from delta_engine.models.types import ArrayType, AtomicType, DataType, DecimalType, MapType, StructType

if TYPE_CHECKING:
    from databricks.sdk.service.sql import ResultData, StatementExecutionAPI, StatementResponse

    from delta_engine.backends.databricks_sdk import Calls
    from delta_engine.backends.sql_runner import Row


def rows_of(response: StatementResponse, sql: str, api: StatementExecutionAPI, calls: Calls) -> Sequence[Row]:
    """Return all rows of a successful statement, in order; StatementError or CallError if some are unavailable."""
    manifest = response.manifest
    if manifest is None or manifest.schema is None or not manifest.schema.columns:
        return ()
    if manifest.truncated:
        raise incomplete("it was truncated", sql)
    columns = [
        (column.name or "", converter(column.type_text or "STRING")) for column in manifest.schema.columns
    ]
    rows = [_row(columns, values, sql) for values in _values(response, sql, api, calls)]
    if manifest.total_row_count is not None and len(rows) != manifest.total_row_count:
        raise incomplete(f"it has {manifest.total_row_count} rows, but {len(rows)} arrived", sql)
    return rows


def _values(
    response: StatementResponse, sql: str, api: StatementExecutionAPI, calls: Calls
) -> Iterator[Sequence[object]]:
    chunk, position = response.result, 0
    while chunk is not None:
        index, following = _place(chunk)
        if index not in (None, position):
            raise incomplete(f"chunk {index} came for chunk {position}", sql)
        yield from _checked(chunk.data_array or [], sql)
        for link in chunk.external_links or ():
            yield from _checked(_parsed(calls.download(link), sql), sql)
        if following is None:
            return
        position += 1
        if following != position:
            raise incomplete(f"chunk {following} follows chunk {position - 1}", sql)
        ask = partial(api.get_statement_result_chunk_n, str(response.statement_id), position)
        chunk = calls.make(ask, is_repeatable=True)


def incomplete(reason: str, sql: str) -> StatementError:
    """Return the error of an incomplete result, because half of a catalog would look like drift."""
    message = f"the warehouse's answer is incomplete: {reason}"
    return StatementError(message, sql=sql, error_class=INCOMPLETE_RESULT, is_outcome_unknown=True)


def _parsed(data: bytes, sql: str) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise incomplete("a downloaded chunk is not JSON", sql) from error


def _place(chunk: ResultData) -> tuple[int | None, int | None]:
    """Return the indexes of a chunk and of the next one; an external chunk has them in its link."""
    for link in chunk.external_links or ():
        return link.chunk_index, link.next_chunk_index
    return chunk.chunk_index, chunk.next_chunk_index


def _checked(rows: object, sql: str) -> Sequence[Sequence[object]]:
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise incomplete("a chunk is not a list of rows", sql)
    return rows


def _row(columns: Sequence[tuple[str, Convert]], values: Sequence[object], sql: str) -> Row:
    try:
        return {name: convert(value) for (name, convert), value in zip(columns, values, strict=True)}
    except (ValueError, RecursionError) as error:
        raise StatementError(
            f"the warehouse's answer cannot be read: {error}",
            sql=sql,
            error_class=UNREADABLE_RESULT,
            is_outcome_unknown=True,
        ) from error


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


def _timestamp(text: str) -> datetime:
    moment = _moment(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))  # Python 3.10 rejects Z


_SCALARS: Final[Mapping[str, Callable[[str], object]]] = {
    "boolean": lambda text: {"true": True, "false": False}[text.lower()],
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
            return [_value(element, item) for item in value]
        case MapType(key, item), dict():
            return {_value(key, name): _value(item, inner) for name, inner in value.items()}
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
