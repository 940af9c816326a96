"""Data types in one canonical form that needs no pyspark.

`type_forms` makes the same value from a SQL string, a pyspark `DataType` and the JSON of Spark's schemas. A type that
the engine does not manage, and a text that is not a type, become an `UnsupportedType`. `Table` refuses it if the model
manages columns. `sql` spells types as SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class AtomicType:
    """A type without parameters, by Spark's SQL name (`bigint`, `timestamp_ntz`, `variant`)."""

    name: str


@dataclass(frozen=True, slots=True)
class DecimalType:
    """`decimal(precision, scale)`: the number of all digits, and of those after the point."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class CharacterType:
    """`char(length)` or `varchar(length)`; the length is in characters."""

    name: str
    length: int


@dataclass(frozen=True, slots=True)
class ArrayType:
    """`array<element>`; elements are nullable, because SQL cannot declare otherwise."""

    element: DataType


@dataclass(frozen=True, slots=True)
class MapType:
    """`map<key, value>`."""

    key: DataType
    value: DataType


@dataclass(frozen=True, slots=True)
class StructField:
    """One field of a struct."""

    name: str
    data_type: DataType
    is_nullable: bool = True
    comment: str = ""


@dataclass(frozen=True, slots=True)
class StructType:
    """`struct<field: type, …>`, in the order of declaration."""

    fields: tuple[StructField, ...]


NOT_MANAGED: Final = "the engine does not manage it"
"""The reason for a type that tables on Databricks can have."""


@dataclass(frozen=True, slots=True)
class UnsupportedType:
    """A type that the engine does not manage or that Spark does not have, with the reason.

    `meant` is the type that was probably meant; empty if none resembles it. Two such types compare by their texts.
    """

    text: str
    reason: str = field(default=NOT_MANAGED, compare=False)
    meant: str = field(default="", compare=False)


DataType: TypeAlias = (
    AtomicType | DecimalType | CharacterType | ArrayType | MapType | StructType | UnsupportedType
)


def inside(data_type: DataType | None) -> list[tuple[str, DataType]]:
    """Return the types directly inside a type, each with the step to it; empty for None."""
    match data_type:
        case ArrayType(element):
            return [("element", element)]
        case MapType(key, value):
            return [("key", key), ("value", value)]
        case StructType(fields):
            return [(field.name, field.data_type) for field in fields]
    return []


def rebuilt(data_type: DataType, types: Iterable[DataType]) -> DataType:
    """Return a type with other types directly inside it, in the order of `inside`."""
    match data_type, [*types]:
        case ArrayType(), [element]:
            return ArrayType(element)
        case MapType(), [key, value]:
            return MapType(key, value)
        case StructType(fields), inner_types:
            pairs = zip(fields, inner_types, strict=True)
            return StructType(tuple(replace(field, data_type=inner) for field, inner in pairs))
    return data_type


def parts(data_type: DataType) -> Iterator[DataType]:
    """Yield a type and every type inside it."""
    yield data_type
    for _, inner in inside(data_type):
        yield from parts(inner)


@lru_cache(maxsize=4096)
def first_unsupported(data_type: DataType) -> UnsupportedType | None:
    """Return the first part of a type that the engine does not manage, or None."""
    for part in parts(data_type):
        match part:
            case UnsupportedType():
                return part
            case StructType(fields):
                for field in fields:
                    if not _is_utf8(field.name + field.comment):
                        return UnsupportedType(
                            f"struct<{field.name}: …>",
                            "the name of a field contains a surrogate",
                        )
    return None


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # an unpaired surrogate
        return False
    return True


def uses_type(data_type: DataType, name: str) -> bool:
    """Whether a type without parameters occurs anywhere in a type."""
    return any(part == AtomicType(name) for part in parts(data_type))


def is_same_type(data_type: DataType, other: DataType) -> bool:
    """Whether two types are equal; names of struct fields compare without case, as in Spark."""
    return data_type == other or _folded(data_type) == _folded(other)


def _folded(data_type: DataType) -> DataType:
    folded = rebuilt(data_type, [_folded(inner) for _, inner in inside(data_type)])
    if isinstance(folded, StructType):
        return StructType(tuple(replace(field, name=field.name.lower()) for field in folded.fields))
    return folded
