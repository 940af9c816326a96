"""The type changes that Delta makes in place, without rewriting data (Delta documentation, "Type widening").

tests/integration/test_type_widening.py tries every pair of the matrix.
"""

from __future__ import annotations

from enum import Enum

from delta_engine.models.types import AtomicType, CharacterType, DataType, DecimalType

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}
"""How many digits before the point a decimal needs to hold an integer."""


class Widening(Enum):
    """The requirements of an in-place type change."""

    NOTHING = "nothing: the file format does not know the difference"
    TYPE_WIDENING = "the table feature typeWidening"
    TIMESTAMP_NTZ = "the table features typeWidening and timestampNtz"
    IMPOSSIBLE = "it cannot be done"


def widening(observed: DataType, desired: DataType) -> Widening:
    """Return the requirements of changing a type that contains no other types."""
    match observed, desired:
        case CharacterType(_, length), CharacterType("varchar", longer) if longer >= length:
            return Widening.NOTHING
        case CharacterType(), AtomicType("string"):
            return Widening.NOTHING
        case AtomicType("date"), AtomicType("timestamp_ntz"):
            return Widening.TIMESTAMP_NTZ
    return Widening.TYPE_WIDENING if _holds_all(observed, desired) else Widening.IMPOSSIBLE


def _holds_all(observed: DataType, desired: DataType) -> bool:
    """Whether a numeric type holds every value of another one, and Delta supports the change."""
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
