"""Compares a reviewed plan file with the file that the same command would write now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

import msgspec

from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.errors import DeltaEngineError
from delta_engine.plan_files.document import (
    PlanFile,
    PlanFileError,
    PlannedStatement,
    TouchedResource,
    planned_statements,
    reviewed_changes,
)
from delta_engine.report.planned_actions import PlannedChange
from delta_engine.telemetry.visible import in_one_line, shown_moment


@dataclass(frozen=True, slots=True)
class Move:
    """One change since the review: the name of the table, schema or setting, and what changed."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.text


class StalePlanError(PlanFileError):
    """A plan that differs from its reviewed file, or whose tables, models or records have changed since the review.

    Args:
        moves: the changes.
        note: what is known of an earlier apply.
    """

    topic = "stale-plan"

    def __init__(self, moves: Sequence[Move], *, where: str, way_out: str, note: str = "") -> None:
        self.moves = tuple(moves)
        self.note = note
        lines = "".join(f"\n  {move}" for move in self.moves)
        reason = f"the plan is stale{f': {note}' if note else ''}. Since it was made:{lines}\nNothing was run"
        super().__init__(reason, where=where, way_out=way_out)


class UnreviewedStatementError(DeltaEngineError):
    """A compiled plan that does not have the statements of its plan file; nothing ran."""

    topic = "unreviewed-statement"

    def __init__(self, sql: str) -> None:
        self.sql = sql
        super().__init__(
            "the plan was stopped before it ran: its statements differ from the reviewed plan file, starting with: "
            f"{sql}\nThis is an error of the engine: please report it."
        )


def require_statements(statements: Iterable[PlannedStatement], compiled: CompiledPlan) -> None:
    """Require that a plan has exactly the statements of a file; raise `UnreviewedStatementError` if not."""
    for reviewed, planned in zip_longest(statements, planned_statements(compiled)):
        if reviewed != planned:
            raise UnreviewedStatementError((planned or reviewed).sql)


def moves(reviewed: PlanFile, current: PlanFile) -> tuple[Move, ...]:
    """Return the changes since the review that make the plan stale.

    The first statement that differs is named only if nothing else explains it.
    """
    resources = sorted(
        (*_touched(reviewed, current), *_changes(reviewed, current)), key=lambda move: move.name
    )
    return (*_environment(reviewed, current), *resources) or tuple(_statements(reviewed, current))


_LATER_SETTINGS: Final = ("removed_functions", "removed_policies", "removed_views")
"""Settings that older files lack."""


def _environment(reviewed: PlanFile, current: PlanFile) -> Iterator[Move]:
    """Yield the changes of the policy, and that it is another deployment state; any may follow none."""
    then, now = map(msgspec.structs.asdict, (reviewed.policy, current.policy))
    for field in then:
        if then[field] != now[field] and not (then[field] is None and field in _LATER_SETTINGS):
            before, after = (msgspec.json.encode(policy[field]).decode() for policy in (then, now))
            yield Move(field, f"policy.{field}: was {before}, is now {after}")
    if reviewed.state_id not in (None, current.state_id):
        ids = f"its id was {reviewed.state_id}, is now {current.state_id or 'absent'}"
        yield Move("deployment state", f"the deployment state was exchanged: {ids}")


def _touched(reviewed: PlanFile, current: PlanFile) -> Iterator[Move]:
    """Yield the changes of the tables and schemas in the file, of their models and of their records."""
    for key, then in reviewed.touched.items():
        now, (kind, _, name) = current.touched[key], key.partition(".")
        if then.declared is not None and now.declared is None:
            yield Move(name, f"the model of {name} is gone")  # and the table may not have been read
            continue
        if replaced := _replaced(then, now):
            yield Move(name, f"{kind} {name} was dropped and created again ({replaced})")
        sides = {
            f"the model of {name}": (then.declared, now.declared),
            f"{kind} {name}": (then.observed, then.observed if replaced else now.observed),
            f"the record of {name}": (then.recorded, now.recorded),
        }
        for subject, (before, after) in sides.items():
            if before != after:
                how = "is new" if before is None else "is gone" if after is None else "was changed"
                yield Move(name, f"{subject} {how}")


def _replaced(then: TouchedResource, now: TouchedResource) -> str:
    """Return how another table of the name differs; empty for the same one, and if that is not known."""
    if then.table_id is not None and now.table_id is not None:
        return "" if then.table_id == now.table_id else f"id {then.table_id}, now {now.table_id}"
    if then.created_at in (None, now.created_at) or now.created_at is None:
        return ""
    return f"created {shown_moment(then.created_at)}, now {shown_moment(now.created_at)}"


def _changes(reviewed: PlanFile, current: PlanFile) -> Iterator[Move]:
    """Yield how the changes of the two plans differ."""
    then, now = reviewed_changes(reviewed.plan), reviewed_changes(current.plan)
    for name, subject in dict.fromkeys((*then, *now)):
        pairs = zip_longest(then.get((name, subject), ()), now.get((name, subject), ()))
        lines = (line for before, after in pairs for line in _differences(before, after))
        yield from (Move(name, in_one_line(f"{name}, {line}")) for line in lines)


def _differences(before: PlannedChange | None, after: PlannedChange | None) -> Iterator[str]:
    """Yield what differs between a change of the reviewed plan and the same one of the plan made now."""
    if before is None:
        yield f"planned now: {after}"
    elif after is None:
        yield f"no longer planned: {before}"
    else:
        if before.observed != after.observed:
            yield f"{after.subject}: was {before.observed or 'absent'}, is now {after.observed or 'absent'}"
        if before.desired != after.desired:
            sides = f"{after.desired or 'absent'}, not {before.desired or 'absent'}"
            yield f"{after.subject}: would become {sides}"


def _statements(reviewed: PlanFile, current: PlanFile) -> Iterator[Move]:
    """Yield the first statement that differs."""
    pairs = zip_longest(reviewed.statements, current.statements)
    for number, (then, now) in enumerate(pairs, start=1):
        if then != now:
            before, after = (statement.sql if statement else "nothing" for statement in (then, now))
            sides = f"statement {number} is, in the file: {before}\n    and would be: {after}"
            yield Move(f"statement {number}", f"the engine would run other statements now: {sides}")
            return
