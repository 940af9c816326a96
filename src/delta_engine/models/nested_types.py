"""Types as trees: paths, the differences between two types field by field, and renamed fields.

A path consists of field names, with `element`, `key` and `value` as steps into arrays and maps. Fields compare
without regard to case or order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Generic, TypeAlias, TypeVar

from delta_engine.models.types import (
    ArrayType,
    AtomicType,
    CharacterType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    inside,
    is_same_type,
    parts,
    rebuilt,
)

Path: TypeAlias = tuple[str, ...]

_Side = TypeVar("_Side")

_NESTED = (ArrayType, MapType, StructType)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair(Generic[_Side]):
    """What two types have at a path inside both."""

    path: Path
    desired: _Side
    observed: _Side


class FieldPair(_Pair[StructField | None]):
    """A struct field that differs in comment or nullability, or that one side lacks (None)."""

    __slots__ = ()


class TypePair(_Pair[DataType]):
    """A place where two types differ and have no fields in common; an empty path stands for the whole type."""

    __slots__ = ()


def type_differences(observed: DataType, desired: DataType) -> Iterator[FieldPair | TypePair]:
    """Yield where two types differ.

    If fields of a type with CHAR or VARCHAR inside are added or removed, yield the whole type: Spark loses the lengths
    of the remaining fields (measured on 4.1.1).
    """
    if is_same_type(observed, desired):
        return
    differences = list(all_differences(observed, desired))
    changes_fields = any(isinstance(difference, FieldPair) for difference in differences)
    if changes_fields and (_has_lengths(observed) or _has_lengths(desired)):
        differences = [TypePair(path=(), desired=desired, observed=observed)]
    yield from differences


def all_differences(observed: DataType, desired: DataType) -> Iterator[FieldPair | TypePair]:
    """Yield where two types differ, whether or not the platform can change only that."""
    yield from _differences((), observed, desired)


def paths_inside(whole: DataType, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of everything inside a type, as the type spells them."""
    for step, data_type in inside(whole):
        yield (*path, step)
        yield from paths_inside(data_type, (*path, step))


def lengths_inside(data_type: DataType, path: Path) -> Iterator[tuple[Path, CharacterType]]:
    """Yield each CHAR and VARCHAR inside a type, with its place."""
    for step, inner in inside(data_type):
        if isinstance(inner, CharacterType):
            yield (*path, step), inner
        yield from lengths_inside(inner, (*path, step))


def field_renames(
    renamed_fields: Mapping[str, tuple[str, ...]], observed: DataType, desired: DataType
) -> Iterator[tuple[Path, Path, bool]]:
    """Yield the former and the new path of each field that a type still has under a former name, outer fields first.

    Both name the outer fields as desired. A third value is True if both exist: the data of one would be lost.

    Args:
        renamed_fields: as in `Column`.
    """
    if _has_lengths(observed):
        return
    for text, names in sorted(renamed_fields.items(), key=lambda item: (item[0].count("."), item[0])):
        place = place_of(desired, text.split("."))
        struct = place and type_at(observed, place[:-1])
        if not place or not isinstance(struct, StructType):
            continue
        present = {field.name.lower(): field.name for field in struct.fields}
        former = next((present[name.lower()] for name in names if name.lower() in present), None)
        if former is None:
            continue
        path, both_exist = (*place[:-1], former), place[-1].lower() in present
        yield path, place, both_exist
        if not both_exist:
            observed = with_field_renamed(observed, path, place[-1])


def with_field_renamed(whole: DataType, path: Path, name: str) -> DataType:
    """Return a type in which a field has its new name."""
    return with_field_at(whole, path, lambda field: replace(field, name=name))


def place_of(whole: DataType, steps: Sequence[str]) -> Path | None:
    """Return the path that steps lead to, as the type spells it; None unless they end at a struct field."""
    path: Path = ()
    for step in steps:
        names = (name for name, _ in inside(type_at(whole, path)) if name.lower() == step.lower())
        spelled = next(names, None)
        if spelled is None:
            return None
        path = (*path, spelled)
    return path if path and isinstance(type_at(whole, path[:-1]), StructType) else None


def place_named(name: str, fields: Sequence[tuple[str, DataType]]) -> Path | None:
    """Return the path through structs that a dotted name stands for, as the fields spell it; None without such a place.

    The name of a field may have dots itself: a field of the whole name comes first.
    """
    for field, _ in fields:
        if field.lower() == name.lower():
            return (field,)
    for field, data_type in fields:
        if isinstance(data_type, StructType) and name.lower().startswith(f"{field.lower()}."):
            within = [(nested.name, nested.data_type) for nested in data_type.fields]
            if place := place_named(name[len(field) + 1 :], within):
                return (field, *place)
    return None


def lower_path(path: Path) -> Path:
    """Return a path in lower case, by which paths compare."""
    return tuple(map(str.lower, path))


def type_at(whole: DataType, path: Path) -> DataType | None:
    """Return the type at a place; None if the type has no such place."""
    data_type: DataType | None = whole
    for step in path:
        data_type = next((inner for name, inner in inside(data_type) if name.lower() == step.lower()), None)
    return data_type


def within_structs(whole: DataType, path: Path) -> Path:
    """Return the leading part of a path that passes through structs alone, which SQL addresses with dots."""
    for length, step in enumerate(path):
        if not isinstance(whole, StructType):
            return path[:length]
        whole = next((field.data_type for field in whole.fields if _is(field, step)), whole)
    return path


def with_type_at(whole: DataType, path: Path, desired: DataType) -> DataType:
    """Return a type with the type at a place replaced; unchanged if it has no such place."""
    return changed_at(whole, path, lambda _observed: desired)


def with_field_at(whole: DataType, path: Path, change: Callable[[StructField], StructField]) -> DataType:
    """Return a type with a field changed; unchanged if it has no such field."""
    return _with_fields(
        whole, path, lambda fields: [change(field) if _is(field, path[-1]) else field for field in fields]
    )


def without_field(whole: DataType, path: Path) -> DataType:
    """Return a type without a field."""
    return _with_fields(whole, path, lambda fields: [field for field in fields if not _is(field, path[-1])])


def with_field(whole: DataType, path: Path, field: StructField) -> DataType:
    """Return a type with a field appended to its struct, or replaced if the name exists."""

    def more(fields: tuple[StructField, ...]) -> Iterable[StructField]:
        is_new = not any(_is(existing, field.name) for existing in fields)
        return (
            *(field if _is(existing, field.name) else existing for existing in fields),
            *([field] if is_new else []),
        )

    return _with_fields(whole, path, more)


def _with_fields(
    whole: DataType, path: Path, change: Callable[[tuple[StructField, ...]], Iterable[StructField]]
) -> DataType:
    """Return a type with the fields of the struct around the field at `path` changed; unchanged without a struct."""

    def changed(struct: DataType) -> DataType:
        return StructType(tuple(change(struct.fields))) if isinstance(struct, StructType) else struct

    return changed_at(whole, path[:-1], changed)


def apart(paths: Iterable[Path]) -> list[list[Path]]:
    """Group paths, in as few groups as possible, so that no path of a group is inside another one.

    One ALTER COLUMN cannot change both (`NOT_SUPPORTED_CHANGE_SAME_COLUMN`, measured on Spark 4.1.1).
    """
    groups: list[tuple[dict[Path, None], set[Path]]] = []  # places, and their ancestors
    for path in paths:
        way = {path[:length] for length in range(1, len(path) + 1)}
        for places, ways in groups:
            if path not in ways and not any(place in places for place in way):
                places[path] = None
                ways.update(way)
                break
        else:
            groups.append(({path: None}, way))
    return [list(places) for places, _ in groups]


def changed_at(whole: DataType, path: Path, change: Callable[[DataType], DataType]) -> DataType:
    """Return a type with the type at a place changed; unchanged if it has no such place."""
    if not path:
        return change(whole)
    return rebuilt(
        whole,
        [
            changed_at(inner, path[1:], change) if name.lower() == path[0].lower() else inner
            for name, inner in inside(whole)
        ],
    )


def field_names(data_type: DataType) -> tuple[tuple[Path, str], ...]:
    """Return the names of all fields inside a type, each with the path to its struct."""
    return _field_names(data_type) if isinstance(data_type, _NESTED) else ()


@lru_cache(maxsize=4096)
def _field_names(data_type: DataType) -> tuple[tuple[Path, str], ...]:
    names: list[tuple[Path, str]] = []
    for step, inner in inside(data_type):
        if isinstance(data_type, StructType):
            names.append(((), step))
        names += (((step, *path), name) for path, name in field_names(inner))
    return tuple(names)


@lru_cache(maxsize=4096)
def has_not_null_field(data_type: DataType) -> bool:
    """Whether a field anywhere inside a type is NOT NULL."""
    return any(
        not field.is_nullable
        for part in parts(data_type)
        if isinstance(part, StructType)
        for field in part.fields
    )


def forgotten_clause(data_type: DataType) -> tuple[str, str] | None:
    """Return the (field, clause) of a nested NOT NULL or COMMENT that would be lost, or None.

    Delta refuses NOT NULL within arrays and maps (`DELTA_NESTED_NOT_NULL_CONSTRAINT`). Spark loses NOT NULL and
    comments of nested fields in a column that has CHAR or VARCHAR inside (measured on 4.1.1).
    """
    return _forgotten_clause(data_type) if isinstance(data_type, _NESTED) else None


@lru_cache(maxsize=4096)
def _forgotten_clause(data_type: DataType) -> tuple[str, str] | None:
    has_lengths = _has_lengths(data_type)
    return _forgotten(data_type, not_null=has_lengths, comments=has_lengths)


def _differences(path: Path, observed: DataType, desired: DataType) -> Iterator[FieldPair | TypePair]:
    if isinstance(observed, StructType) and isinstance(desired, StructType):
        yield from _field_differences(path, observed, desired)
    elif inside(observed) and type(observed) is type(desired):
        for (step, inner), (_, other) in zip(inside(observed), inside(desired), strict=True):
            yield from _differences((*path, step), inner, other)
    elif observed != desired:
        yield TypePair(path=path, desired=desired, observed=observed)


def _field_differences(
    path: Path, observed: StructType, desired: StructType
) -> Iterator[FieldPair | TypePair]:
    present = {field.name.lower(): field for field in observed.fields}
    desired_names = {field.name.lower() for field in desired.fields}
    for field in desired.fields:
        other = present.get(field.name.lower())
        if other is None:
            yield FieldPair(path=(*path, field.name), desired=field, observed=None)
            continue
        place = (*path, other.name)
        if (field.is_nullable, field.comment) != (other.is_nullable, other.comment):
            yield FieldPair(path=place, desired=field, observed=other)
        yield from _differences(place, other.data_type, field.data_type)
    for field in observed.fields:
        if field.name.lower() not in desired_names:
            yield FieldPair(path=(*path, field.name), desired=None, observed=field)


def _has_lengths(data_type: DataType) -> bool:
    return any(isinstance(part, CharacterType) for part in parts(data_type))


def _is(field: StructField, name: str) -> bool:
    return field.name.lower() == name.lower()


def _forgotten(data_type: DataType, *, not_null: bool, comments: bool) -> tuple[str, str] | None:
    fields = data_type.fields if isinstance(data_type, StructType) else (None, None)
    for field, (_, inner) in zip(fields, inside(data_type), strict=False):
        if field and not_null and not field.is_nullable:
            return field.name, "NOT NULL"
        if field and comments and field.comment:
            return field.name, "COMMENT"
        if forgotten := _forgotten(inner, not_null=not_null or field is None, comments=comments):
            return forgotten
    return None


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
        case AtomicType("void"), _:  # it holds no values (Databricks documentation, "Type widening")
            return Widening.NOTHING
        case CharacterType(_, length), CharacterType("varchar", longer) if longer >= length:
            return Widening.NOTHING
        case CharacterType(), AtomicType("string"):
            return Widening.NOTHING
        case AtomicType("date"), AtomicType("timestamp_ntz"):
            return Widening.TIMESTAMP_NTZ
    return Widening.TYPE_WIDENING if _holds_all(observed, desired) else Widening.IMPOSSIBLE


def is_widened_by_iceberg(observed: DataType, desired: DataType) -> bool:
    """Whether Iceberg, too, has a widening of Delta's; tables that it reads take no others.

    Measured on Delta 4.3.1 with `delta.enableIcebergCompatV1` and `V2`
    (DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_TYPE_WIDENING).
    """
    match observed, desired:
        case AtomicType("date"), _:
            return False
        case AtomicType(narrow), AtomicType("double"):
            return narrow == "float"
        case AtomicType(), DecimalType():
            return False
        case DecimalType(_, scale), DecimalType(_, finer):
            return scale == finer
    return True


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
