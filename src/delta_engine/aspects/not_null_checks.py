"""The checks that enforce NOT NULL on columns that could not be tightened, dropped and added around other changes.

Delta changes no column that a check names (`DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE`). `nullability` decides which
columns are NOT NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, Comparison, RenderContext, Sign
from delta_engine.aspects.rights import takes_ownership
from delta_engine.models import Part
from delta_engine.models.constraints import build_not_null_check_name
from delta_engine.sql.constraints import sql_add_not_null_check, sql_drop_constraint


@dataclass(frozen=True, slots=True)
class DropNotNullCheck:
    """Drop the check that enforces NOT NULL, by the column's present name."""

    phase: ClassVar[Phase] = Phase.DROP_CHECKS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    column: str


@dataclass(frozen=True, slots=True)
class AddNotNullCheck:
    """Add the check that enforces NOT NULL again, under the column's new name."""

    phase: ClassVar[Phase] = Phase.ADD_CHECKS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.SCANS_DATA, Hazard.LOCKS)
    column: str


def diff(comparison: Comparison) -> Iterable[DropNotNullCheck | AddNotNullCheck]:
    """Yield a drop and an add per column that changes otherwise, or only the drop if it becomes nullable."""
    in_the_way = {*changed_columns(comparison)} & {*map(str.lower, comparison.observed.not_null_checks)}
    if not in_the_way:
        return
    former = {name.lower(): former for former, name in comparison.renames.columns}
    for desired, observed in comparison.shared:
        if observed.key in in_the_way:
            yield DropNotNullCheck(former.get(observed.key, observed.name))
            if not desired.is_nullable:
                yield AddNotNullCheck(desired.name)


def render(actions: Sequence[DropNotNullCheck | AddNotNullCheck], context: RenderContext) -> Iterable[str]:
    """Yield a statement per check."""
    for action in actions:
        name = build_not_null_check_name(action.column)
        match action:
            case DropNotNullCheck():
                yield sql_drop_constraint(context.table, name, if_exists=True)
            case AddNotNullCheck(column):
                yield sql_add_not_null_check(context.table, name, column)


def explain(action: DropNotNullCheck | AddNotNullCheck) -> Iterable[Change]:
    """Yield the check."""
    subject, condition = f"column {action.column} not null check", f"{action.column} IS NOT NULL"
    match action:
        case DropNotNullCheck():
            yield Change(sign=Sign.REMOVED, subject=subject, observed=condition)
        case AddNotNullCheck():
            yield Change(sign=Sign.ADDED, subject=subject, desired=condition)


def changed_columns(comparison: Comparison) -> Iterable[str]:
    """Yield the columns, in lower case, whose changes a check would block."""
    yield from (name.lower() for _, name in comparison.renames.columns)
    yield from (rename.path[0].lower() for rename in comparison.renames.fields)
    yield from (pair.path[0].lower() for pair in comparison.fields if pair.desired is None)
    yield from (pair.path[0].lower() for pair in comparison.types)


ASPECT: Aspect[DropNotNullCheck | AddNotNullCheck] = Aspect(
    name="not null checks",
    part=Part.COLUMNS,
    actions={
        DropNotNullCheck: takes_ownership("DROP CONSTRAINT (NOT NULL on oss)"),
        AddNotNullCheck: takes_ownership("ADD CONSTRAINT … CHECK (NOT NULL on oss)"),
    },
    diff=diff,
    differences=lambda _comparison: (),
    render=render,
    explain=explain,
    drift_kind=lambda _action: DriftKind.COLUMN_NULLABILITY,
    is_of_columns=True,
)
