"""NOT NULL on existing columns: loosening is free, tightening scans the rows.

Columns that could not be tightened have a check that enforces NOT NULL. Delta changes no column that a check names
(`DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE`), so the plan drops it before other changes and adds it again after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, TypeAlias

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, RenderContext, takes_modify, takes_ownership
from delta_engine.aspects.changed_models import with_part
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import FLAG, Facet
from delta_engine.backends.capabilities import TighteningSupport
from delta_engine.models import Column, Part, Table
from delta_engine.models.constraints import build_not_null_check_name
from delta_engine.models.nested_types import Path, apart
from delta_engine.sql.columns import sql_drop_not_null, sql_set_not_null
from delta_engine.sql.constraints import sql_add_check, sql_drop_constraint, sql_not_null_condition
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


_Check: TypeAlias = DropNotNullCheck | AddNotNullCheck


def _diff(comparison: Comparison) -> Iterable[ColumnNullabilityChange]:
    for desired, observed in comparison.differing:
        if desired.is_nullable != observed.is_nullable:
            yield ColumnNullabilityChange(observed.name, make_nullable=desired.is_nullable)
    filled = (*comparison.filled, *(conversion.desired for conversion in comparison.converted))
    tightened = [column for column in filled if not column.is_nullable]
    differing = {observed.key for _, observed in comparison.differing} if tightened else set()
    for column in tightened:
        if column.key not in differing:
            yield ColumnNullabilityChange(column.name, make_nullable=False)
    for pair in comparison.fields:
        if pair.desired and pair.observed and pair.desired.is_nullable != pair.observed.is_nullable:
            yield ColumnNullabilityChange(pair.path[0], pair.desired.is_nullable, pair.path[1:])


def _render(actions: Sequence[ColumnNullabilityChange], context: RenderContext) -> Iterable[str]:
    """Yield one ALTER COLUMN per direction, if columns can share one, and one statement per check."""
    loosened = [(action.name, *action.path) for action in actions if action.make_nullable]
    tightened = [(action.name, *action.path) for action in actions if not action.make_nullable]
    yield from (sql_drop_not_null(context.table, paths) for paths in context.together(apart(loosened)))
    if context.capabilities.tightening is TighteningSupport.SET_NOT_NULL:
        yield from (sql_set_not_null(context.table, paths) for paths in context.together(apart(tightened)))
        return
    # The column was created NOT NULL or tightened by a CHECK; both go, absent ones silently.
    for name, *inside in loosened:
        if not inside:
            yield sql_drop_constraint(context.table, build_not_null_check_name(name), if_exists=True)
    for name, *inside in tightened:
        if not inside:  # a rule refuses fields: nothing could be read back
            yield _added_check(name, context)


def _explain(action: ColumnNullabilityChange) -> Iterable[Change]:
    observed, desired = ("NOT NULL", "NULL") if action.make_nullable else ("NULL", "NOT NULL")
    place = (action.name, *action.path)
    yield Change(f"column {'.'.join(place)} nullability", observed, desired, place=place)


def _accept(model: Table, _observed: TableState, action: ColumnNullabilityChange) -> Table:
    change = partial(replace, is_nullable=not action.make_nullable)
    return with_part(model, action.name, action.path, change)


def _diff_checks(comparison: Comparison) -> Iterable[_Check]:
    """Yield a drop and an add per column that changes otherwise, or only the drop if it becomes nullable."""
    checked = comparison.observed.not_null_checks
    blocking = checked and {*_changed_columns(comparison)} & {*map(str.lower, checked)}
    if not blocking:
        return
    former = comparison.renames.former_names
    converted = {conversion.observed.key for conversion in comparison.converted}
    for desired, observed in comparison.shared:
        if observed.key in blocking:
            yield DropNotNullCheck(former.get(observed.key, observed.name))
            if not desired.is_nullable and observed.key not in converted:
                yield AddNotNullCheck(desired.name)


def _changed_columns(comparison: Comparison) -> Iterator[str]:
    """Yield the columns, in lower case, whose changes a check would block."""
    yield from (new[0].lower() for new in comparison.renames.paths.values())
    yield from (pair.path[0].lower() for pair in comparison.fields if pair.desired is None)
    yield from (pair.path[0].lower() for pair in comparison.types)
    yield from (conversion.observed.key for conversion in comparison.converted)


def _render_checks(actions: Sequence[_Check], context: RenderContext) -> Iterable[str]:
    for action in actions:
        if isinstance(action, DropNotNullCheck):
            name = build_not_null_check_name(action.column)
            yield sql_drop_constraint(context.table, name, if_exists=True)
        else:
            yield _added_check(action.column, context)


def _added_check(column: str, context: RenderContext) -> str:
    name = build_not_null_check_name(column)
    return sql_add_check(context.table, name, sql_not_null_condition(column))


def _explain_check(action: _Check) -> Iterable[Change]:
    subject, condition = f"column {action.column} not null check", f"{action.column} IS NOT NULL"
    if isinstance(action, DropNotNullCheck):
        yield Change(subject, observed=condition)
    else:
        yield Change(subject, desired=condition)


FACET: Facet[Column, Column, bool] = Facet(
    key="nullable",
    argument="is_nullable",
    declared=lambda model: model.is_nullable,
    observed=lambda state: state.is_nullable,
    absent=True,
    form=FLAG,
    meaning="`false` makes the column NOT NULL",
    is_always_recorded=True,
    part=Part.COLUMNS,
)

ASPECT: Aspect[ColumnNullabilityChange] = Aspect(
    name="nullability",
    part=Part.COLUMNS,
    actions={ColumnNullabilityChange: takes_modify("ALTER COLUMN … SET or DROP NOT NULL")},
    diff=_diff,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.COLUMN_NULLABILITY,
    is_of_columns=True,
)

CHECKS_ASPECT: Aspect[_Check] = Aspect(
    name="not null checks",
    part=Part.COLUMNS,
    actions={
        DropNotNullCheck: takes_ownership("DROP CONSTRAINT (NOT NULL on oss)"),
        AddNotNullCheck: takes_ownership("ADD CONSTRAINT … CHECK (NOT NULL on oss)"),
    },
    diff=_diff_checks,
    differences=lambda _comparison: (),
    render=_render_checks,
    explain=_explain_check,
    drift_kind=lambda _action: DriftKind.COLUMN_NULLABILITY,
    is_of_columns=True,
)
