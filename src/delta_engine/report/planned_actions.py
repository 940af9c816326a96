"""The actions of a plan as data: the same in the plan's JSON and in the run report."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from delta_engine import aspects
from delta_engine.actions import (
    Action,
    Align,
    CarriedAction,
    Create,
    Drop,
    SecurableChange,
    TablePlan,
    action_name,
    reversal_of,
)
from delta_engine.aspects.aspect import Change
from delta_engine.drift.drifted_resources import Acceptance, Finding, UndoneDrift, undone_by


class UndoneDriftNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The drift that a change undoes.

    Args:
        severity: high, medium or low.
        by: who made it; None if unknown.
        at: when, ISO 8601; None if unknown.
        accepted: who accepted it, if a principal did.
    """

    severity: str
    by: str | None
    at: str | None
    accepted: Acceptance | None = None


class PlannedChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change of an action.

    Args:
        sign: `+`, `~` or `-`.
        subject: what changes, such as `column id comment`.
        observed: what it was; None for what was not there.
        desired: what it becomes; None for what goes.
        undoes_drift: the drift that it undoes, if it undoes one.
    """

    sign: str
    subject: str
    observed: str | None
    desired: str | None
    undoes_drift: UndoneDriftNote | None = None

    def __str__(self) -> str:
        sides = [side for side in (self.observed, self.desired) if side is not None]
        return f"{self.sign} {self.subject}: {' → '.join(sides)}" if sides else self.subject


class PlannedAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One action of a plan.

    Args:
        phase: when it runs, among the actions of its table; not for the creation or the drop of a whole.
        action: its kind, such as `SetTableComment`.
        hazards: what it risks.
        undo: how it can be undone: by statements, by restore, or not.
        changes: what it changes; empty for the creation or the drop of a whole.
    """

    phase: str | None = None
    action: str
    hazards: tuple[str, ...]
    undo: str
    changes: tuple[PlannedChange, ...] = msgspec.field(default=())


def other_changes(plan: TablePlan) -> Iterator[SecurableChange]:
    """Yield what is created, changed or dropped besides tables, by kind."""
    for kind in aspects.KINDS:
        if kind.word != "table":
            for change in (Create, Align, Drop):
                yield from plan.of_kind(change, kind.word)


def planned_actions(
    actions: tuple[Action, ...], resource: str, undone: UndoneDrift, shown: Callable[[str], str] = str
) -> Iterator[PlannedAction]:
    """Yield the actions of an alignment, in order.

    Args:
        resource: the key of the securable.
        shown: replaces the texts of changes, for example to hide secrets.
    """
    for action in actions:
        changes = tuple(
            planned_change(change, undone_by(resource, action, change, undone), shown)
            for change in aspects.explain([action])
        )
        yield planned_action(action, action.phase.value, changes)


def planned_change(
    change: Change, undoes: Finding | None = None, shown: Callable[[str], str] = str
) -> PlannedChange:
    """Return a change as data, with the drift that it undoes."""
    return PlannedChange(
        sign=change.sign.value,
        subject=shown(change.subject),
        observed=None if change.observed is None else shown(change.observed),
        desired=None if change.desired is None else shown(change.desired),
        undoes_drift=undone_drift_note(undoes),
    )


def planned_action(
    action: CarriedAction, phase: str | None = None, changes: tuple[PlannedChange, ...] = ()
) -> PlannedAction:
    """Return an action as data; without phase and changes for the creation or the drop of a securable."""
    return PlannedAction(
        phase=phase,
        action=action_name(action),
        hazards=tuple(hazard.value for hazard in action.hazards),
        undo=reversal_of(action).value,
        changes=changes,
    )


def undone_drift_note(finding: Finding | None) -> UndoneDriftNote | None:
    """Return the drift of a finding as data."""
    if finding is None:
        return None
    by, at = (finding.changed.who, finding.changed.at) if finding.changed else (None, None)
    return UndoneDriftNote(
        severity=finding.severity.value, by=by, at=at.isoformat() if at else None, accepted=finding.accepted
    )
