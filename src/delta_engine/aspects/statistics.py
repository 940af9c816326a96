"""The columns of which Delta collects statistics: it clusters a table by no other column.

Delta takes the first 32 columns, or as many as `delta.dataSkippingNumIndexedCols` says, or those that
`delta.dataSkippingStatsColumns` names. Each field in structs counts as a column (Databricks documentation, "Data
skipping"). Columns of any type count, and an array or a map counts once (measured on Delta 4.3.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from delta_engine.aspects.renames import place_of_key
from delta_engine.models import Column
from delta_engine.models.nested_types import Path, lower_path
from delta_engine.models.types import DataType, StructType

STATISTICS_COLUMNS: Final = "delta.dataSkippingStatsColumns"
INDEXED_COLUMNS: Final = "delta.dataSkippingNumIndexedCols"
_KEYS: Final = (STATISTICS_COLUMNS.lower(), INDEXED_COLUMNS.lower())
_DEFAULT: Final = 32
_ALL: Final = -1

_NAME: Final = re.compile(r"(?:`(?:[^`]|``)*`|[^,`])+")
_STEP: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`\s]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingStatistics:
    """The clustering keys without statistics.

    Args:
        limit: which columns have statistics.
        is_default: whether no property of the table limits them.
        is_managed: whether the table is a managed one.
    """

    keys: tuple[str, ...]
    limit: str
    is_default: bool
    is_managed: bool


def is_about_statistics(key: str) -> bool:
    """Whether a property decides which columns have statistics."""
    return key.lower() in _KEYS


def missing_statistics(
    keys: Sequence[str], columns: Sequence[Column], properties: Mapping[str, str], *, is_managed: bool
) -> MissingStatistics | None:
    """Return the clustering keys of a table that have no statistics; None if all have them."""
    values = {key.lower(): value for key, value in properties.items() if is_about_statistics(key)}
    named, number = values.get(STATISTICS_COLUMNS.lower()), values.get(INDEXED_COLUMNS.lower(), "")
    counted = int(number) if re.fullmatch(r"-?\d+", number) else _DEFAULT
    if named is not None:
        indexed = [lower_path(path) for path in named_paths(named)]
        limit = f"{STATISTICS_COLUMNS} names the columns with statistics"
    elif counted == _ALL:
        return None
    else:
        indexed = [lower_path(path) for path in leaves(columns)][:counted]
        limit = (
            f"Delta collects statistics of the first {counted} columns, with each field in structs counted"
        )
    places = {key: lower_path(place_of_key(key, columns)) for key in keys}
    missing = tuple(
        key for key, place in places.items() if not any(place[: len(path)] == path for path in indexed)
    )
    if not missing:
        return None
    return MissingStatistics(keys=missing, limit=limit, is_default=not values, is_managed=is_managed)


def named_paths(text: str) -> Iterator[Path]:
    """Yield the columns and fields that a value of `delta.dataSkippingStatsColumns` names."""
    for name in _NAME.findall(text):
        if path := tuple(quoted.replace("``", "`") or plain for quoted, plain in _STEP.findall(name)):
            yield path


def leaves(columns: Iterable[Column]) -> Iterator[Path]:
    """Yield the columns, and the fields in structs in their place, in order."""
    for column in columns:
        yield from leaves_of((column.name,), column.data_type)


def leaves_of(path: Path, data_type: DataType) -> Iterator[Path]:
    """Yield a column or a field, or what is in its place if it is a struct."""
    if not isinstance(data_type, StructType):
        yield path
        return
    for field in data_type.fields:
        yield from leaves_of((*path, field.name), field.data_type)
