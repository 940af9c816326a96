"""What the fake catalog stores, and how its parts find each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sqlglot
from sqlglot import exp

from delta_engine.models import Column, QualifiedName
from delta_engine.models.types import ArrayType, DataType, MapType, StructField, StructType
from delta_engine.sql.expressions import databricks_dialect
from delta_engine.state.states import TableState
from tests.fakes.unity_catalog.refusals import Refusal, require

MAPPED = ("name", "id")
BINARY = "UTF8_BINARY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A table in the fake catalog.

    Args:
        name: its name, in lower case.
        state: what it is, as it was written: `spelling` makes of it what a reader sees.
        nulls: how many rows have NULL there, by column in lower case.
        governed_tags: the tags that block the drop of a column that has them.
        former_location: of an external table that became a managed one.
        collation: the default collation of new columns.
    """

    name: QualifiedName
    state: TableState
    nulls: Mapping[str, int] = field(default_factory=dict)
    governed_tags: frozenset[str] = frozenset()
    former_location: str | None = None
    collation: str = BINARY

    def with_state(self, **changes: Any) -> Stored:
        return replace(self, state=replace(self.state, **changes))

    def with_column(self, known_as: str, **changes: Any) -> Stored:
        changed = replace(self.column(known_as), **changes)
        return self.with_state(
            columns=tuple(
                changed if column.key == known_as.lower() else column for column in self.state.columns
            )
        )

    def column(self, name: str) -> Column:
        for column in self.state.columns:
            if column.key == name.lower():
                return column
        raise Refusal("UNRESOLVED_COLUMN.WITH_SUGGESTION", f"{self.name} has no column {name}")

    def value_of(self, key: str) -> str:
        """Return a property's value in lower case, empty for none."""
        return self.state.table_properties.get(key, "").lower()

    @property
    def maps_columns(self) -> bool:
        """Whether columns can be dropped and renamed."""
        return self.value_of("delta.columnMapping.mode") in MAPPED


def keys(names: Iterable[str]) -> list[str]:
    """Return names as they compare."""
    return [name.lower() for name in names]


def columns_in(expression: str) -> set[str]:
    """Return the columns that an expression reads, in lower case."""
    return {place[0] for place in _places_in(expression)}


def _places_in(expression: str) -> Iterator[list[str]]:
    """Yield the columns and fields that an expression reads, in lower case, as far as it says them with dots."""
    tree = sqlglot.parse_one(expression, dialect=databricks_dialect())
    for column in tree.find_all(exp.Column):
        place = keys(part.name for part in column.parts)
        around = column.parent
        while isinstance(around, exp.Dot):
            place.append(around.name.lower())
            around = around.parent
        yield place


def readers_of(stored: Stored, path: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the error condition and the description of every expression that reads a place, or inside or around it."""
    for check in stored.state.checks:
        if _reads(check.expression, path):
            yield "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", f"check {check.name}"
    for column in stored.state.columns:
        if column.generated_as and _reads(column.generated_as, path):
            yield "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE", f"generated column {column.name}"


def _reads(expression: str, path: Sequence[str]) -> bool:
    place = [step for step in keys(path) if step not in ("element", "key", "value")]
    return any(place[: len(read)] == read[: len(place)] for read in _places_in(expression))


def refuse_readers(stored: Stored, path: Sequence[str]) -> None:
    """Refuse a change to a column or field that a check or a generated column reads."""
    for error_class, reader in readers_of(stored, path):
        raise Refusal(error_class, f"{reader} of {stored.name} reads {'.'.join(path)}")


def changed_type(
    data_type: DataType, path: tuple[str, ...], change: Callable[[DataType], DataType]
) -> DataType:
    """Return a type with what stands at a path inside it changed; `element`, `key`, `value` are steps too."""
    if not path:
        return change(data_type)
    step, rest = path[0].lower(), path[1:]
    match data_type:
        case ArrayType(element) if step == "element":
            return ArrayType(changed_type(element, rest, change))
        case MapType(key, value) if step == "key":
            return MapType(changed_type(key, rest, change), value)
        case MapType(key, value) if step == "value":
            return MapType(key, changed_type(value, rest, change))
        case StructType(fields) if step in [field.name.lower() for field in fields]:
            return StructType(
                tuple(
                    replace(field, data_type=changed_type(field.data_type, rest, change))
                    if field.name.lower() == step
                    else field
                    for field in fields
                )
            )
    raise Refusal("FIELD_NOT_FOUND", f"there is no {path[0]} in {data_type}")


Fields = tuple[StructField, ...]


def changed_fields(
    data_type: DataType, path: tuple[str, ...], change: Callable[[Fields], Fields]
) -> DataType:
    """Return a type with the fields of the struct at a path inside it changed."""

    def changed(inside: DataType) -> DataType:
        if not isinstance(inside, StructType):
            raise Refusal("FIELD_NOT_FOUND", f"{inside} has no fields")
        return StructType(change(inside.fields))

    return changed_type(data_type, path, changed)


def changed_field(
    data_type: DataType, path: tuple[str, ...], change: Callable[[StructField], StructField | None]
) -> DataType:
    """Return a type with the field at a path inside it changed, or gone where the change returns None."""
    name = path[-1].lower()

    def changed(fields: Fields) -> Fields:
        require(
            name in [field.name.lower() for field in fields],
            "FIELD_NOT_FOUND",
            f"there is no field {path[-1]}",
        )
        changed_fields = (change(field) if field.name.lower() == name else field for field in fields)
        kept = tuple(field for field in changed_fields if field is not None)
        require(kept, "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA", f"{path[-1]} is the only field")
        return kept

    return changed_fields(data_type, path[:-1], changed)
