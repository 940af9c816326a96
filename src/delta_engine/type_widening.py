"""Which types Delta changes in place, without rewriting data (Delta documentation, "Type widening").

The matrix is pinned by tests/integration/test_type_widening.py, which tries every pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from delta_engine.types import (
    ArrayType,
    AtomicType,
    CharacterType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}
"""How many digits before the point a decimal needs to take an integer in."""


class Widening(Enum):
    """What it takes to change a type in place."""

    NOTHING = "nothing: the file format does not know the difference"
    TYPE_WIDENING = "the table feature typeWidening"
    TIMESTAMP_NTZ = "the table features typeWidening and timestampNtz"
    IMPOSSIBLE = "it cannot be done"


@dataclass(frozen=True, slots=True)
class TypeStep:
    """A change of type at one place of a column.

    Args:
        path: the way into the column: names of fields, and `element`, `key`, `value`; empty for the column itself.
        observed: the type there.
        desired: the type wanted there.
    """

    path: tuple[str, ...]
    observed: DataType
    desired: DataType

    @property
    def widening(self) -> Widening:
        """What it takes."""
        return widening(self.observed, self.desired)


def type_steps(observed: DataType, desired: DataType) -> tuple[TypeStep, ...]:
    """Return where two types differ: the innermost places, or the whole type where its shape differs."""
    steps = _steps((), observed, desired)
    return (TypeStep((), observed, desired),) if steps is None else tuple(steps)


def with_type_at(whole: DataType, path: tuple[str, ...], desired: DataType) -> DataType:
    """Return a type with another one at a place inside it.

    Args:
        whole: the type.
        path: the way into it, as `TypeStep` has it; what it has no such place in stays as it is.
        desired: the type to put there.
    """
    if not path:
        return desired
    step, rest = path[0], path[1:]
    match whole:
        case ArrayType(element):
            return ArrayType(with_type_at(element, rest, desired))
        case MapType(key, value) if step == "key":
            return MapType(with_type_at(key, rest, desired), value)
        case MapType(key, value):
            return MapType(key, with_type_at(value, rest, desired))
        case StructType(fields):
            return StructType(
                tuple(
                    replace(one, data_type=with_type_at(one.data_type, rest, desired))
                    if one.name == step
                    else one
                    for one in fields
                )
            )
    return whole


def widening(observed: DataType, desired: DataType) -> Widening:
    """Return what it takes to change a type that holds no other types."""
    match observed, desired:
        case CharacterType(_, length), CharacterType("varchar", longer) if longer >= length:
            return Widening.NOTHING
        case CharacterType(), AtomicType("string"):
            return Widening.NOTHING
        case AtomicType("date"), AtomicType("timestamp_ntz"):
            return Widening.TIMESTAMP_NTZ
    return Widening.TYPE_WIDENING if _holds_all(observed, desired) else Widening.IMPOSSIBLE


def _holds_all(observed: DataType, desired: DataType) -> bool:
    """Whether a number's type holds every value of another one's, and Delta knows how."""
    match observed, desired:
        case AtomicType(narrow), AtomicType(wide) if narrow in _INTEGERS and wide in _INTEGERS:
            return _INTEGERS.index(narrow) < _INTEGERS.index(wide)
        case AtomicType("tinyint" | "smallint" | "int" | "float"), AtomicType("double"):
            return True
        case AtomicType(narrow), DecimalType(precision, scale) if narrow in _DIGITS:
            return precision - scale >= _DIGITS[narrow]
        case DecimalType(precision, scale), DecimalType(wider, finer):
            return finer >= scale and wider - finer >= precision - scale
    return False


def _steps(path: tuple[str, ...], observed: DataType, desired: DataType) -> Iterator[TypeStep] | None:
    """Return the differing places, or None where the shapes differ."""
    match observed, desired:
        case ArrayType(one), ArrayType(other):
            return _steps((*path, "element"), one, other)
        case MapType(key, value), MapType(other_key, other_value):
            parts = [_steps((*path, "key"), key, other_key), _steps((*path, "value"), value, other_value)]
            return _joined(parts)
        case StructType(fields), StructType(others):
            if [_shape(field) for field in fields] != [_shape(field) for field in others]:
                return None
            pairs = zip(fields, others, strict=True)
            return _joined(
                [_steps((*path, one.name), one.data_type, other.data_type) for one, other in pairs]
            )
    if isinstance(observed, (ArrayType, MapType, StructType)) or isinstance(
        desired, (ArrayType, MapType, StructType)
    ):
        return None
    return iter(() if observed == desired else (TypeStep(path, observed, desired),))


def _joined(parts: list[Iterator[TypeStep] | None]) -> Iterator[TypeStep] | None:
    if any(part is None for part in parts):
        return None
    return (step for part in parts if part is not None for step in part)


def _shape(field: StructField) -> tuple[str, bool, str]:
    return field.name.lower(), field.is_nullable, field.comment
