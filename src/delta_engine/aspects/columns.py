"""Columns: which there are. Adding is harmless, dropping loses data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    Comparison,
    CreateClauses,
    RenderContext,
    Sign,
    with_column,
)
from delta_engine.capabilities import TighteningSupport
from delta_engine.constraints.naming import build_not_null_check_name
from delta_engine.drift_policy import DriftKind
from delta_engine.models import Column, Part, Table
from delta_engine.sql import (
    sql_add_columns,
    sql_column_definition,
    sql_data_type,
    sql_drop_columns,
    sql_drop_constraint,
)
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class ColumnAdd:
    """Add a column, comment included. It keeps the model's nullability; a rule refuses NOT NULL."""

    phase: ClassVar[Phase] = Phase.ADD_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    desired: Column


@dataclass(frozen=True, slots=True)
class ColumnDrop:
    """Drop a column and its data."""

    phase: ClassVar[Phase] = Phase.DROP_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.LOSES_DATA,)
    observed: Column


def diff(comparison: Comparison) -> Iterable[ColumnAdd | ColumnDrop]:
    """Yield an add per column only the model has, a drop per column only the table has."""
    yield from map(ColumnAdd, comparison.added)
    yield from map(ColumnDrop, comparison.dropped)


def create(desired: Table, _context: RenderContext) -> CreateClauses:
    """Return the column definitions: name, type, nullability and comment."""
    return CreateClauses(columns=tuple(map(_definition, desired.columns)))


def render(actions: Sequence[ColumnAdd | ColumnDrop], context: RenderContext) -> Iterable[str]:
    """Yield one ADD COLUMNS or one DROP COLUMNS, and what stands in a drop's way."""
    added = [action.desired for action in actions if isinstance(action, ColumnAdd)]
    dropped = [action.observed for action in actions if isinstance(action, ColumnDrop)]
    if added:
        yield sql_add_columns(context.table, map(_definition, added))
    if dropped:
        if context.capabilities.tightening is TighteningSupport.CHECK_CONSTRAINT:
            # The CHECK that stands for NOT NULL would block the drop
            # (DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE).
            for column in dropped:
                if not column.is_nullable:
                    name = build_not_null_check_name(column.name)
                    yield sql_drop_constraint(context.table, name, if_exists=True)
        yield sql_drop_columns(context.table, (column.name for column in dropped))


def explain(action: ColumnAdd | ColumnDrop) -> Iterable[Change]:
    """Yield the column with its type."""
    match action:
        case ColumnAdd(desired):
            yield Change(sign=Sign.ADDED, subject=f"column {desired.name}", desired=_describe(desired))
        case ColumnDrop(observed):
            yield Change(sign=Sign.REMOVED, subject=f"column {observed.name}", observed=_describe(observed))


def accept(model: Table, observed: TableState, action: ColumnAdd | ColumnDrop) -> Table:
    """Return the model without a column that is gone, or with one that is there: after the same neighbour."""
    match action:
        case ColumnAdd(column):
            return replace(model, columns=tuple(one for one in model.columns if one.key != column.key))
        case ColumnDrop(column) if any(one.key == column.key for one in model.columns):
            return with_column(model, column.name, lambda _declared: column)
        case ColumnDrop(column):
            present = [one.key for one in observed.columns]
            before = {*present[: present.index(column.key)]}
            places = [place for place, one in enumerate(model.columns, start=1) if one.key in before]
            place = max(places, default=0)
            return replace(model, columns=(*model.columns[:place], column, *model.columns[place:]))


def drift_kind(action: ColumnAdd | ColumnDrop) -> DriftKind:
    """Return what somebody did: the opposite of what brings it back."""
    return DriftKind.COLUMN_DROPPED if isinstance(action, ColumnAdd) else DriftKind.COLUMN_ADDED


def _definition(column: Column) -> str:
    return sql_column_definition(
        column.name, column.data_type, is_nullable=column.is_nullable, comment=column.comment
    )


def _describe(column: Column) -> str:
    not_null = "" if column.is_nullable else " NOT NULL"
    comment = f" {column.comment!r}" if column.comment else ""
    return f"{sql_data_type(column.data_type)}{not_null}{comment}"


ASPECT: Aspect[ColumnAdd | ColumnDrop] = Aspect(
    name="columns",
    part=Part.COLUMNS,
    action_types=(ColumnAdd, ColumnDrop),
    diff=diff,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=drift_kind,
    create=create,
)
