"""NOT NULL on existing columns: loosening is free, tightening scans the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import assert_never

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.aspects.aspect import Aspect, Change, Comparison, RenderContext, Sign, with_column
from delta_engine.capabilities import TighteningSupport
from delta_engine.constraints.naming import build_not_null_check_name
from delta_engine.drift_policy import DriftKind
from delta_engine.models import Part, Table
from delta_engine.sql import (
    sql_add_not_null_check,
    sql_drop_constraint,
    sql_drop_not_null,
    sql_set_not_null,
)
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class ColumnNullabilityChange:
    """Make a column nullable, or NOT NULL."""

    phase: ClassVar[Phase] = Phase.CHANGE_NULLABILITY
    name: str
    make_nullable: bool

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """Tightening reads every row to find NULLs."""
        return SAFE if self.make_nullable else (Hazard.SCANS_DATA, Hazard.LOCKS)


def diff(comparison: Comparison) -> Iterable[ColumnNullabilityChange]:
    """Yield a change per shared column whose nullability differs."""
    for desired, observed in comparison.shared:
        if desired.is_nullable != observed.is_nullable:
            yield ColumnNullabilityChange(observed.name, make_nullable=desired.is_nullable)


def render(actions: Sequence[ColumnNullabilityChange], context: RenderContext) -> Iterable[str]:
    """Yield one ALTER COLUMN per direction; checks, where the platform needs them, one by one."""
    loosened = [action.name for action in actions if action.make_nullable]
    tightened = [action.name for action in actions if not action.make_nullable]
    match context.capabilities.tightening:
        case TighteningSupport.SET_NOT_NULL:
            if loosened:
                yield sql_drop_not_null(context.table, loosened)
            if tightened:
                yield sql_set_not_null(context.table, tightened)
        case TighteningSupport.CHECK_CONSTRAINT:
            if loosened:
                # The column was created NOT NULL or tightened by a CHECK; both go, absent ones silently.
                yield sql_drop_not_null(context.table, loosened)
                for name in loosened:
                    check = build_not_null_check_name(name)
                    yield sql_drop_constraint(context.table, check, if_exists=True)
            for name in tightened:
                yield sql_add_not_null_check(context.table, build_not_null_check_name(name), name)
        case other:
            assert_never(other)


def explain(action: ColumnNullabilityChange) -> Iterable[Change]:
    """Yield both sides in SQL's words."""
    observed, desired = ("NOT NULL", "NULL") if action.make_nullable else ("NULL", "NOT NULL")
    yield Change(
        sign=Sign.CHANGED,
        subject=f"column {action.name} nullability",
        observed=observed,
        desired=desired,
    )


def accept(model: Table, _observed: TableState, action: ColumnNullabilityChange) -> Table:
    """Return the model with the column's nullability as it is."""
    return with_column(
        model, action.name, lambda column: replace(column, is_nullable=not action.make_nullable)
    )


ASPECT: Aspect[ColumnNullabilityChange] = Aspect(
    name="nullability",
    part=Part.COLUMNS,
    action_types=(ColumnNullabilityChange,),
    diff=diff,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.COLUMN_NULLABILITY,
)
