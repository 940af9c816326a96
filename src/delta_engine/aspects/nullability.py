"""NOT NULL on existing columns: loosening is free, tightening scans the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import assert_never

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    Comparison,
    RenderContext,
    Sign,
    with_column,
    with_type,
)
from delta_engine.aspects.facet import FLAG, Facet
from delta_engine.aspects.rights import takes_modify
from delta_engine.backends.capabilities import TighteningSupport
from delta_engine.models import Column, Part, Table
from delta_engine.models.constraints import build_not_null_check_name
from delta_engine.models.nested_types import Path, apart, with_field_at
from delta_engine.sql.columns import sql_drop_not_null, sql_set_not_null
from delta_engine.sql.constraints import sql_add_not_null_check, sql_drop_constraint
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class ColumnNullabilityChange:
    """Make a column, or the field at `path` inside it, nullable or NOT NULL."""

    phase: ClassVar[Phase] = Phase.CHANGE_NULLABILITY
    name: str
    make_nullable: bool
    path: Path = ()

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """Tightening reads every row to find NULLs."""
        return SAFE if self.make_nullable else (Hazard.SCANS_DATA, Hazard.LOCKS)


def diff(comparison: Comparison) -> Iterable[ColumnNullabilityChange]:
    """Yield a change per shared column or field whose nullability differs."""
    for desired, observed in comparison.differing:
        if desired.is_nullable != observed.is_nullable:
            yield ColumnNullabilityChange(observed.name, make_nullable=desired.is_nullable)
    for pair in comparison.fields:
        if pair.desired and pair.observed and pair.desired.is_nullable != pair.observed.is_nullable:
            yield ColumnNullabilityChange(pair.path[0], pair.desired.is_nullable, pair.path[1:])


def render(actions: Sequence[ColumnNullabilityChange], context: RenderContext) -> Iterable[str]:
    """Yield one ALTER COLUMN per direction, if columns can share one, and one statement per check."""
    loosened = [(action.name, *action.path) for action in actions if action.make_nullable]
    tightened = [(action.name, *action.path) for action in actions if not action.make_nullable]
    match context.capabilities.tightening:
        case TighteningSupport.SET_NOT_NULL:
            yield from (
                sql_drop_not_null(context.table, paths) for paths in context.together(apart(loosened))
            )
            yield from (
                sql_set_not_null(context.table, paths) for paths in context.together(apart(tightened))
            )
        case TighteningSupport.CHECK_CONSTRAINT:
            # The column was created NOT NULL or tightened by a CHECK; both go, absent ones silently.
            yield from (
                sql_drop_not_null(context.table, paths) for paths in context.together(apart(loosened))
            )
            for name, *inside in loosened:
                if not inside:
                    check = build_not_null_check_name(name)
                    yield sql_drop_constraint(context.table, check, if_exists=True)
            for name, *inside in tightened:
                if not inside:  # a rule refuses fields: nothing could be read back
                    yield sql_add_not_null_check(context.table, build_not_null_check_name(name), name)
        case other:
            assert_never(other)


def explain(action: ColumnNullabilityChange) -> Iterable[Change]:
    """Yield both sides in SQL."""
    observed, desired = ("NOT NULL", "NULL") if action.make_nullable else ("NULL", "NOT NULL")
    yield Change(
        sign=Sign.CHANGED,
        subject=f"column {'.'.join((action.name, *action.path))} nullability",
        observed=observed,
        desired=desired,
    )


def accept(model: Table, _observed: TableState, action: ColumnNullabilityChange) -> Table:
    """Return the model with the observed nullability of the column or field."""
    is_nullable = not action.make_nullable
    if action.path:
        return with_type(
            model,
            action.name,
            lambda whole: with_field_at(
                whole, action.path, lambda field: replace(field, is_nullable=is_nullable)
            ),
        )
    return with_column(model, action.name, lambda column: replace(column, is_nullable=is_nullable))


FACET: Facet[Column, Column, bool] = Facet(
    key="nullable",
    argument="is_nullable",
    declared=lambda column: column.is_nullable,
    absent=True,
    form=FLAG,
    meaning="`false` makes the column NOT NULL",
    observed=lambda column: column.is_nullable,
    is_always_recorded=True,
    part=Part.COLUMNS,
)

ASPECT: Aspect[ColumnNullabilityChange] = Aspect(
    name="nullability",
    part=Part.COLUMNS,
    actions={ColumnNullabilityChange: takes_modify("ALTER COLUMN … SET or DROP NOT NULL")},
    diff=diff,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.COLUMN_NULLABILITY,
    is_of_columns=True,
)
