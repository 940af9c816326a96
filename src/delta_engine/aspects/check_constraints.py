"""Check constraints, compared by name and normalized expression. A check that no model ever named is unmanaged.

A check blocks changes to the columns that it reads (`DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE`). The plan drops it
before such a change and adds it again after it, or drops it for good, with consent, if it no longer fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, TypeAlias

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    ConstraintAdd,
    ConstraintDrop,
    RenderContext,
    takes_ownership,
)
from delta_engine.aspects.comparison import Comparison, lost_places, retyped_places
from delta_engine.aspects.facet import Facet, Form
from delta_engine.models import CheckConstraint, Part, Table
from delta_engine.models.nested_types import Path
from delta_engine.sql.constraints import sql_add_check, sql_drop_constraint
from delta_engine.sql.expressions import is_same_expression, reads
from delta_engine.state.states import TableState


class CheckAdd(ConstraintAdd[CheckConstraint, str]):
    """Add a check, which reads every row; `replaced` is the expression of the former check of that name."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.ADD_CHECKS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.SCANS_DATA, Hazard.LOCKS)


class CheckDrop(ConstraintDrop[CheckConstraint]):
    """Drop a check."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.DROP_CHECKS


_Action: TypeAlias = CheckAdd | CheckDrop


def _diff(comparison: Comparison) -> Iterable[_Action]:
    """Yield the checks to drop and to add, and those that block changes of columns."""
    if not comparison.observed.checks and not comparison.desired.checks:
        return
    touched = (*lost_places(comparison), *retyped_places(comparison))
    for observed, desired in _pairs(comparison):
        is_different = _differ(observed, desired)
        is_blocking = observed is not None and _reads_any(observed, touched)
        if observed and (is_different or is_blocking):
            yield _drop(comparison, observed, is_remade=desired is not None)
        if desired and (is_different or is_blocking):
            yield CheckAdd(desired)
    yield from _blocking_others(comparison, touched)


def _differences(comparison: Comparison) -> Iterable[_Action]:
    """Yield one action with both sides per name that differs."""
    for observed, desired in _pairs(comparison):
        if not _differ(observed, desired):
            continue
        if desired:
            yield CheckAdd(desired, replaced=observed.expression if observed else None)
        elif observed:
            yield _drop(comparison, observed, is_remade=False)


def _render(actions: Sequence[_Action], context: RenderContext) -> Iterable[str]:
    for action in actions:
        if isinstance(action, CheckAdd):
            yield sql_add_check(context.table, action.desired.name, action.desired.expression)
        else:
            yield sql_drop_constraint(context.table, action.observed.name)


def _explain(action: _Action) -> Iterable[Change]:
    if isinstance(action, CheckAdd):
        yield Change(f"check {action.desired.name}", action.replaced, action.desired.expression)
    else:
        yield Change(f"check {action.observed.name}", observed=action.observed.expression)


def _accept(model: Table, observed: TableState, action: _Action) -> Table:
    name = (action.desired if isinstance(action, CheckAdd) else action.observed).name.lower()
    of_that_name = [check for check in observed.checks if check.name.lower() == name]
    kept = [check for check in model.checks if check.name.lower() != name]
    return replace(model, checks=(*kept, *of_that_name))


def _pairs(comparison: Comparison) -> Iterator[tuple[CheckConstraint | None, CheckConstraint | None]]:
    observed = {check.name.lower(): check for check in comparison.observed.checks}
    desired = {check.name.lower(): check for check in comparison.desired.checks}
    for name in sorted({*observed, *desired}):
        if name in desired or comparison.may_remove(partial(_names, name=name)):
            yield observed.get(name), desired.get(name)


def _blocking_others(comparison: Comparison, touched: Iterable[Path]) -> Iterator[_Action]:
    handled = {observed.name.lower() for observed, _ in _pairs(comparison) if observed}
    lost = tuple(lost_places(comparison))
    for check in comparison.observed.checks:
        if check.name.lower() in handled or not _reads_any(check, touched):
            continue
        is_fit = not _reads_any(check, lost)
        yield CheckDrop(check, is_remade=is_fit, is_ours=False)
        if is_fit:
            yield CheckAdd(check)


def _drop(comparison: Comparison, observed: CheckConstraint, *, is_remade: bool) -> CheckDrop:
    is_ours = is_remade or comparison.is_ours(partial(_names, name=observed.name))
    return CheckDrop(observed, is_remade=is_remade, is_ours=is_ours)


def _reads_any(check: CheckConstraint, places: Iterable[Path]) -> bool:
    return any(reads(check.expression, place) for place in places)


def _names(model: Table, name: str) -> bool:
    return any(check.name.lower() == name.lower() for check in model.checks)


def _differ(observed: CheckConstraint | None, desired: CheckConstraint | None) -> bool:
    if observed is None or desired is None:
        return True
    return not is_same_expression(observed.expression, desired.expression)


def _expressions(checks: Iterable[CheckConstraint]) -> dict[str, str]:
    return {check.name: check.expression for check in checks}


FACET: Facet[Table, TableState, tuple[CheckConstraint, ...]] = Facet(
    key="checks",
    declared=lambda model: model.checks,
    observed=lambda state: state.checks,
    absent=(),
    form=Form(
        recorded_type=dict[str, str],
        encode=_expressions,
        decode=lambda checks: tuple(CheckConstraint(*check) for check in checks.items()),
        written_type=dict[str, str],
        read=lambda _place, checks: tuple(CheckConstraint(*check) for check in checks.items()),
        write=_expressions,
        words="mapping",
    ),
    meaning="[conditions](#checks) that every row has to meet, by name",
    entry="check",
    constructor="CheckConstraint",
    part=Part.CONSTRAINTS,
    title="checks",
)

ASPECT: Aspect[_Action] = Aspect(
    name="check constraints",
    part=Part.CONSTRAINTS,
    actions={
        CheckAdd: takes_ownership("ADD CONSTRAINT … CHECK"),
        CheckDrop: takes_ownership("DROP CONSTRAINT (a CHECK)"),
    },
    diff=_diff,
    differences=_differences,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.CHECK,
    completes_create=True,  # Delta takes no checks in CREATE TABLE
)
