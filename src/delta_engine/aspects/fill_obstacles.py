"""Obstacles to computing values with `using`, as far as models and catalog show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.conversions import Conversion, ConversionStage, new_name
from delta_engine.aspects.protection import write_obstacle
from delta_engine.models import Column
from delta_engine.models.constraints import MAX_NAME_LENGTH
from delta_engine.models.types import CharacterType, DataType, MapType, is_same_type, parts, uses_type
from delta_engine.sql.expressions import reads, referenced_columns
from delta_engine.sql.text import shown_type
from delta_engine.state.states import TableState

_IN_TWO_SYNCS = "Do it in two syncs."
_BY_HAND = "Add a column of the new type, fill it, and drop this column when nothing reads it any more."


class Obstacle(NamedTuple):
    """Why a column cannot get its values, and the way out."""

    column: str
    reason: str
    way_out: str


def obstacles(comparison: Comparison) -> Iterator[Obstacle]:
    """Yield the obstacles of all columns that get values from `using`."""
    renamed = [
        conversion for conversion in comparison.conversions if _is_begun_and_renamed(conversion, comparison)
    ]
    yield from map(_renamed_meanwhile, renamed)
    others = [conversion for conversion in comparison.conversions if conversion not in renamed]
    going_on = [conversion for conversion in others if not (conversion.is_abandoned or _is_left(conversion))]
    filled = [*comparison.filled, *(conversion.desired for conversion in going_on)]
    if filled and (problem := write_obstacle(comparison)):
        yield from (Obstacle(column.name, *problem) for column in filled)
        return
    for column in filled:
        yield from _of_expression(column, comparison, [filled_column.key for filled_column in filled])
    for conversion in going_on:
        yield from _of_conversion(conversion, comparison)
    yield from map(_unfinished, filter(_is_left, others))


def _is_begun_and_renamed(conversion: Conversion, comparison: Comparison) -> bool:
    """Whether an earlier run has begun a conversion under the column's former name."""
    is_begun = conversion.progress.stage is not ConversionStage.NOT_BEGUN
    return is_begun and conversion.desired.key in comparison.renames.former_names


def _renamed_meanwhile(conversion: Conversion) -> Obstacle:
    return Obstacle(
        conversion.desired.name,
        "an earlier run began to convert it under its old name",
        "Declare its old name, and sync once more. Rename it afterwards.",
    )


def _is_left(conversion: Conversion) -> bool:
    """Whether a conversion is swapped, and its model does not declare it any more."""
    desired, observed = conversion.desired, conversion.observed
    is_declared = desired.using is not None and is_same_type(desired.data_type, observed.data_type)
    return not conversion.is_pending and not is_declared


def _unfinished(conversion: Conversion) -> Obstacle:
    return Obstacle(
        conversion.observed.name,
        "an earlier run converted it, but did not drop the old column yet",
        f"Declare it as {shown_type(conversion.observed.data_type)} with its using, and sync once more.",
    )


def _of_expression(column: Column, comparison: Comparison, filled: Iterable[str]) -> Iterator[Obstacle]:
    if column.using is None:
        yield Obstacle(
            column.name,
            "an earlier run began to convert it, but the model no longer declares how",
            "Declare its using again, or its old type.",
        )
        return
    there = {present.key: present for present in comparison.observed.columns}
    renamed = _renamed(comparison)
    retyped = {pair.path[0].lower() for pair in comparison.types}
    own = {column.key} if _is_converted(column, comparison) else set()
    for name in sorted(referenced_columns(column.using.expression) - own):
        if name in renamed:
            yield Obstacle(column.name, f"its using reads {name}, which the same plan renames", _IN_TWO_SYNCS)
        elif name not in there:
            yield Obstacle(
                column.name,
                f"its using reads {name}, which the table does not have",
                "Use the names of the columns before the change.",
            )
        elif name in retyped or (name in filled and name != column.key):
            yield Obstacle(column.name, f"its using reads {name}, which the same plan changes", _IN_TWO_SYNCS)


def _is_converted(column: Column, comparison: Comparison) -> bool:
    return any(conversion.desired.key == column.key for conversion in comparison.conversions)


def _of_conversion(conversion: Conversion, comparison: Comparison) -> Iterator[Obstacle]:
    desired, observed = conversion.desired, conversion.observed
    name = observed.name
    for kind in (desired.data_type, observed.data_type):
        if _has_no_comparison(kind):
            reason = f"values of type {shown_type(kind)} cannot be compared, so a fill could not be verified"
            yield Obstacle(name, reason, _BY_HAND)
            return
    if len(new_name(name)) > MAX_NAME_LENGTH:
        yield Obstacle(name, f"its name and {new_name('')!r} are longer than 255 characters", _BY_HAND)
    if name.lower() in _renamed(comparison):
        yield Obstacle(name, "it, or a field inside it, is renamed in the same plan", _IN_TWO_SYNCS)
    if not conversion.is_pending:
        return
    if observed.default is not None and desired.default is None:
        reason = f"it has a default that the model does not declare ({observed.default})"
        yield Obstacle(name, reason, "Declare a default that fits the new type, or drop the default first.")
    if unique := ", ".join(comparison.observed.unique_constraints):
        reason = f"the table has UNIQUE constraints ({unique}) whose columns no view shows, possibly over this column"
        yield Obstacle(name, reason, "Drop them first, and add them again after the sync.")
    for dependent in _dependents(name, comparison.observed):
        yield Obstacle(
            name,
            f"{dependent} depends on it",
            f"Drop the dependent first, and declare it again afterwards. {_BY_HAND}",
        )


def _renamed(comparison: Comparison) -> set[str]:
    """Return the former and new names of renamed columns, and the columns of renamed fields, in lower case."""
    former = {name.lower() for name in comparison.renames.columns}
    return former | {new[0].lower() for new in comparison.renames.paths.values()}


def _dependents(name: str, observed: TableState) -> Iterator[str]:
    """Yield what fixes a column, apart from the checks and the primary key that the plan makes again."""
    key = name.lower()
    yield from (
        f"foreign key {foreign_key.name}"
        for foreign_key in observed.foreign_keys
        if key in _lower(foreign_key.columns)
    )
    if observed.primary_key is not None and key in _lower(observed.primary_key.columns):
        yield from (
            f"foreign key {reference.name} of {reference.table}" for reference in observed.referenced_by
        )
    if key in {path.split(".")[0] for path in _lower(observed.cluster_by)}:
        yield "the clustering"
    if key in _lower(observed.partitioned_by):
        yield "the partitioning"
    for column in observed.columns:
        if column.key == key and (column.generated_as is not None or column.identity is not None):
            yield "the generation of its values"
        elif column.generated_as is not None and reads(column.generated_as, [name]):
            yield f"generated column {column.name}"


def _lower(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]


def _has_no_comparison(data_type: DataType) -> bool:
    """Whether `<=>` does not compare values of a type, or not without the blanks of CHAR (measured on 4.1.1)."""
    has_maps = any(isinstance(part, MapType) for part in parts(data_type))
    has_blanks = any(isinstance(part, CharacterType) and part.name == "char" for part in parts(data_type))
    return has_maps or has_blanks or uses_type(data_type, "variant")
