"""Columns and the fields inside them. Adding is harmless, dropping loses data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import ColumnOrder
from delta_engine.aspects.aspect import Aspect, Change, CreateClauses, RenderContext, takes_modify
from delta_engine.aspects.changed_models import with_column, with_type
from delta_engine.aspects.comparison import Comparison, bare_column
from delta_engine.backends.capabilities import TighteningSupport
from delta_engine.models import Column, Part, QualifiedName, Table
from delta_engine.models.constraints import build_not_null_check_name
from delta_engine.models.nested_types import Path, with_field, without_field
from delta_engine.models.types import StructField
from delta_engine.sql.columns import (
    sql_add_columns,
    sql_column_definition,
    sql_default,
    sql_drop_columns,
    sql_generation,
)
from delta_engine.sql.constraints import sql_drop_constraint
from delta_engine.sql.expressions import referenced_columns
from delta_engine.sql.governance import full_function_name, sql_mask
from delta_engine.sql.text import shown_type
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class ColumnAdd:
    """Add a column with its comment, nullable if it is filled afterwards. A rule refuses NOT NULL.

    Args:
        declared_place: the place in the model, if the column is added elsewhere and stays there.
    """

    phase: ClassVar[Phase] = Phase.ADD_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    desired: Column
    declared_place: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ColumnDrop:
    """Drop a column and its data."""

    phase: ClassVar[Phase] = Phase.DROP_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.LOSES_DATA,)
    observed: Column


@dataclass(frozen=True, slots=True)
class FieldAdd:
    """Add a field with its comment to a struct inside an existing column; `path` starts with the column."""

    phase: ClassVar[Phase] = Phase.ADD_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    path: Path
    desired: StructField


@dataclass(frozen=True, slots=True)
class FieldDrop:
    """Drop a field of a struct and its data; `path` starts with the column."""

    phase: ClassVar[Phase] = Phase.DROP_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.LOSES_DATA,)
    path: Path
    observed: StructField


_Drop: TypeAlias = ColumnDrop | FieldDrop
ColumnAction: TypeAlias = ColumnAdd | FieldAdd | _Drop


def _diff(comparison: Comparison) -> Iterable[ColumnAction]:
    """Yield an add per column or field that only the model has, and a drop per one that only the table has."""
    for column in comparison.added:
        place = _declared_place(column, comparison)
        yield ColumnAdd(column if column.using is None else replace(column, is_nullable=True), place)
    yield from map(ColumnDrop, comparison.dropped)
    for pair in comparison.fields:
        if pair.observed is None and pair.desired is not None:
            yield FieldAdd(pair.path, pair.desired)
        elif pair.desired is None and pair.observed is not None:
            yield FieldDrop(pair.path, pair.observed)


def _declared_place(column: Column, comparison: Comparison) -> str:
    """Return the place of a new column in the model; empty if it is added there or moved there.

    ADD COLUMNS puts new columns last (Databricks documentation, "ALTER TABLE … COLUMN clause").
    """
    if comparison.policy.column_order is ColumnOrder.ENFORCE:
        return ""
    declared = [declared_column.key for declared_column in comparison.desired.columns]
    place, added = declared.index(column.key), [added_column.key for added_column in comparison.added]
    former = declared[place - 1] if place else None
    order = added.index(column.key)
    if {*declared[place:]} <= {*added} or (order and former == added[order - 1]):
        return ""
    return "first" if former is None else f"after {comparison.desired.columns[place - 1].name}"


def _create(desired: Table, context: RenderContext) -> CreateClauses:
    """Return the column definitions: name, type, nullability, source of values, comment and mask.

    Types are written without a collation, so strings would inherit that of the schema (docs: "ALTER SCHEMA").
    """
    name = desired.qualified_name
    definitions = tuple(_definition(column) + _mask(column, name) for column in desired.columns)
    return CreateClauses(columns=definitions, clauses=context.collation)


def _render(actions: Sequence[ColumnAction], context: RenderContext) -> Iterable[str]:
    """Yield one ADD COLUMNS or one DROP COLUMNS, preceded by the statements that unblock a drop.

    A dropped column that other dropped columns read needs a later DROP COLUMNS.
    """
    names = {action.desired.key for action in actions if isinstance(action, ColumnAdd)}
    added = [definition for action in actions for definition in _added(action, context.name, names)]
    if added:
        yield sql_add_columns(context.table, added)
    if context.capabilities.tightening is TighteningSupport.CHECK_CONSTRAINT:
        # The CHECK that stands for NOT NULL would block the drop (DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE).
        for action in actions:
            if isinstance(action, ColumnDrop) and not action.observed.is_nullable:
                name = build_not_null_check_name(action.observed.name)
                yield sql_drop_constraint(context.table, name, if_exists=True)
    drops = [action for action in actions if isinstance(action, (ColumnDrop, FieldDrop))]
    for unread in _in_order_of_reading(drops):
        paths = [(drop.observed.name,) if isinstance(drop, ColumnDrop) else drop.path for drop in unread]
        yield sql_drop_columns(context.table, paths)


def _explain(action: ColumnAction) -> Iterable[Change]:
    match action:
        case ColumnAdd(column, place):
            note = f"added last, not {place}: policy.column_order: enforce moves it" if place else ""
            yield replace(_explained((column.name,), desired=column), note=note)
        case ColumnDrop(column):
            yield _explained((column.name,), observed=column)
        case FieldAdd(path, field):
            yield _explained(path, desired=field)
        case FieldDrop(path, field):
            yield _explained(path, observed=field)


def _explained(
    place: Path, observed: Column | StructField | None = None, desired: Column | StructField | None = None
) -> Change:
    return Change(
        f"column {'.'.join(place)}",
        described(observed) if observed else None,
        described(desired) if desired else None,
        place=place,
        types=(observed.data_type if observed else None, desired.data_type if desired else None),
    )


def _accept(model: Table, observed: TableState, action: ColumnAction) -> Table:
    """Return the model without the missing column, or with the observed one after the same neighbour."""
    match action:
        case ColumnAdd(column):
            return replace(
                model, columns=tuple(existing for existing in model.columns if existing.key != column.key)
            )
        case ColumnDrop(column) if any(existing.key == column.key for existing in model.columns):
            return with_column(model, column.name, lambda _declared: column)
        case ColumnDrop(column):
            present = [present_column.key for present_column in observed.columns]
            before = {*present[: present.index(column.key)]}
            places = [
                place for place, existing in enumerate(model.columns, start=1) if existing.key in before
            ]
            place = max(places, default=0)
            return replace(model, columns=(*model.columns[:place], column, *model.columns[place:]))
        case FieldAdd(path):
            return with_type(model, path[0], lambda whole: without_field(whole, path[1:]))
        case FieldDrop(path, field):
            return with_type(model, path[0], lambda whole: with_field(whole, path[1:], field))


def _drift_kind(action: ColumnAction) -> DriftKind:
    """Return the kind of drift: the opposite of the action that reverts it."""
    is_add = isinstance(action, (ColumnAdd, FieldAdd))
    return DriftKind.COLUMN_DROPPED if is_add else DriftKind.COLUMN_ADDED


def values_clause(column: Column) -> str:
    """Return the clause for the source of column values; empty for a column that writers fill."""
    if column.default is not None:
        return sql_default(column.default)
    return sql_generation(column.generated_as, column.identity)


def described(column: Column | StructField, values: str = "") -> str:
    """Return the text of a column or field for reports, without its name; `values` is the source of its values."""
    not_null = "" if column.is_nullable else " NOT NULL"
    comment = f" {column.comment!r}" if column.comment else ""
    return f"{shown_type(column.data_type)}{not_null}{values and f' {values}'}{comment}"


def _added(action: ColumnAction, table: QualifiedName, added: Collection[str]) -> Iterable[str]:
    match action:
        case ColumnAdd(desired):
            yield _definition(bare_column(desired)) + _mask(desired, table, added)
        case FieldAdd(path, field):
            yield sql_column_definition(
                path, field.data_type, is_nullable=field.is_nullable, comment=field.comment
            )


def _mask(column: Column, table: QualifiedName, added: Collection[str] = ()) -> str:
    """Return the MASK clause; empty without a mask or if it reads a column in `added`, which has to exist first."""
    mask = column.mask
    if mask is None or any(name.lower() in added for name in mask.using_columns):
        return ""
    return f" {sql_mask(full_function_name(mask.function, table), mask.using_columns)}"


def _in_order_of_reading(drops: Sequence[_Drop]) -> Iterator[Sequence[_Drop]]:
    """Yield groups of drops: a column whose mask or generation reads another one is dropped first."""
    left = drops
    while left:
        read = {name for drop in left if isinstance(drop, ColumnDrop) for name in _read(drop.observed)}
        held = [drop for drop in left if isinstance(drop, ColumnDrop) and drop.observed.key in read]
        if len(held) == len(left):  # in a cycle, any order is as good
            yield left
            return
        yield [drop for drop in left if drop not in held]
        left = held


def _read(column: Column) -> Iterable[str]:
    masking = map(str.lower, column.mask.using_columns) if column.mask else ()
    return (*masking, *(referenced_columns(column.generated_as) if column.generated_as else ()))


def _definition(column: Column) -> str:
    return sql_column_definition(
        (column.name,),
        column.data_type,
        is_nullable=column.is_nullable,
        extra=values_clause(column),
        comment=column.comment,
    )


ASPECT: Aspect[ColumnAction] = Aspect(
    name="columns",
    part=Part.COLUMNS,
    actions={
        ColumnAdd: takes_modify("ADD COLUMNS"),
        ColumnDrop: takes_modify("DROP COLUMNS"),
        FieldAdd: takes_modify("ADD COLUMNS (fields)"),
        FieldDrop: takes_modify("DROP COLUMNS (fields)"),
    },
    diff=_diff,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=_drift_kind,
    is_of_columns=True,
    create=_create,
)
