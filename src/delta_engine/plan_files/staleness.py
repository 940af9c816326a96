"""Compares a reviewed plan file with the file that the same command would write now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest

import msgspec

from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.errors import DeltaEngineError
from delta_engine.plan_files.document import (
    DeploymentFingerprint,
    PlanFile,
    PlanFileError,
    PlannedStatement,
    TableFingerprint,
    planned_statements,
)
from delta_engine.telemetry.visible import shown_moment


class MoveKind(Enum):
    """How an input of a plan has changed."""

    TABLE_ALTERED = "table {} was altered"
    TABLE_DROPPED = "table {} was dropped"
    TABLE_RECREATED = "table {} was dropped and created again"
    TABLE_APPEARED = "table {} has appeared"
    SCHEMA_ALTERED = "schema {} was altered"
    SCHEMA_DROPPED = "schema {} was dropped"
    SCHEMA_APPEARED = "schema {} has appeared"
    MODEL_CHANGED = "the model of {} was changed"
    MODEL_ADDED = "the model of {} is new"
    MODEL_REMOVED = "the model of {} was removed"
    RECORD_CHANGED = "the record of {} was changed"
    RECORD_ADDED = "the record of {} is new"
    RECORD_REMOVED = "the record of {} was removed"
    POLICY_CHANGED = "policy.{} was changed"
    DEPLOYMENT_STATE_MOVED = "the deployment state has changed: {}"
    STATEMENTS_CHANGED = "the engine would run other statements now: {}"


_Kinds = tuple[MoveKind, MoveKind, MoveKind]
_SCHEMA: _Kinds = (MoveKind.SCHEMA_APPEARED, MoveKind.SCHEMA_DROPPED, MoveKind.SCHEMA_ALTERED)
_MODEL: _Kinds = (MoveKind.MODEL_ADDED, MoveKind.MODEL_REMOVED, MoveKind.MODEL_CHANGED)
_RECORD: _Kinds = (MoveKind.RECORD_ADDED, MoveKind.RECORD_REMOVED, MoveKind.RECORD_CHANGED)
_OF_THE_ENVIRONMENT = (MoveKind.POLICY_CHANGED, MoveKind.DEPLOYMENT_STATE_MOVED)
"""Changes that make every plan stale."""


@dataclass(frozen=True, slots=True)
class Move:
    """One change since the review; `note` has details, such as both values."""

    kind: MoveKind
    name: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value.format(self.name)}{f' ({self.note})' if self.note else ''}"


class StalePlanError(PlanFileError):
    """A plan whose models, tables, settings or records have changed since the review.

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
            "the plan was stopped before it ran: its statements are not those of the reviewed plan file, from this one "
            f"on: {sql}\nThis is an error of the engine: please report it."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedPlan:
    """A plan file that is not stale; the deployment state remembers it by its checksum."""

    checksum: str
    statements: tuple[PlannedStatement, ...]

    def require(self, compiled: CompiledPlan) -> None:
        """Require that a plan has exactly the statements of the file; raise `UnreviewedStatementError` if not."""
        for reviewed, planned in zip_longest(self.statements, planned_statements(compiled)):
            if reviewed != planned:
                raise UnreviewedStatementError((planned or reviewed).sql)


def moves(reviewed: PlanFile, current: PlanFile) -> tuple[Move, ...]:
    """Return the changes since the review that make the plan stale.

    These are the changes of what it touches, of the policy, and of the deployment state's identity. If there are none
    and the statements differ, the first such statement follows all other changes, which explain it.
    """
    found, touched = tuple(_inputs(reviewed, current)), reviewed.fingerprints.deployment_state.touched
    stale = tuple(one for one in found if one.kind in _OF_THE_ENVIRONMENT or one.name in touched)
    statements = () if stale else tuple(_statements(reviewed, current))
    return (*found, *statements) if statements else stale


def _inputs(reviewed: PlanFile, current: PlanFile) -> Iterator[Move]:
    then, now = reviewed.fingerprints, current.fingerprints
    declared, declared_now = reviewed.declared_schemas, current.declared_schemas
    yield from _tables(then.tables, now.tables)
    yield from _moved(then.schemas, now.schemas, {*then.schemas} & {*now.schemas}, _SCHEMA)
    yield from _moved(reviewed.models, current.models, {*reviewed.models, *current.models}, _MODEL)
    yield from _moved(declared, declared_now, {*declared, *declared_now}, _MODEL)
    yield from _policy(reviewed, current)
    yield from _deployment_state(then.deployment_state, now.deployment_state)


def _tables(then: Mapping[str, TableFingerprint], now: Mapping[str, TableFingerprint]) -> Iterator[Move]:
    """Yield the changed tables; a table that only one side has read counts as a changed model."""
    for name in sorted({*then} & {*now}):
        before, after = then[name], now[name]
        if before.state is None and after.state is not None:
            yield Move(MoveKind.TABLE_APPEARED, name)
        elif before.state is not None and after.state is None:
            yield Move(MoveKind.TABLE_DROPPED, name)
        elif _is_another(before, after):
            yield Move(MoveKind.TABLE_RECREATED, name, _ids(before, after))
        elif before.state != after.state:
            yield Move(MoveKind.TABLE_ALTERED, name)


def _is_another(before: TableFingerprint, after: TableFingerprint) -> bool:
    """Whether another table has the name now; only facts that both sides know are compared."""
    if before.table_id is not None and after.table_id is not None:
        return before.table_id != after.table_id
    if before.created_at is not None and after.created_at is not None:
        return before.created_at != after.created_at
    return False


def _ids(before: TableFingerprint, after: TableFingerprint) -> str:
    if before.table_id is not None and after.table_id is not None:
        return f"id {before.table_id}, now {after.table_id}"
    moments = (shown_moment(one.created_at) if one.created_at else "unknown" for one in (before, after))
    return f"created {', now '.join(moments)}"


def _moved(
    then: Mapping[str, str | None], now: Mapping[str, str | None], names: Iterable[str], kinds: _Kinds
) -> Iterator[Move]:
    """Yield the names that were added, removed or changed, with one of these kinds in this order."""
    added, removed, changed = kinds
    for name in sorted(names):
        before, after = then.get(name), now.get(name)
        if before != after:
            yield Move(added if before is None else removed if after is None else changed, name)


def _policy(reviewed: PlanFile, current: PlanFile) -> Iterator[Move]:
    then, now = msgspec.structs.asdict(reviewed.policy), msgspec.structs.asdict(current.policy)
    for field in then:
        if then[field] != now[field]:
            yield Move(MoveKind.POLICY_CHANGED, field, f"{_value(then[field])}, now {_value(now[field])}")


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "nothing"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _deployment_state(then: DeploymentFingerprint, now: DeploymentFingerprint) -> Iterator[Move]:
    """Yield the changed records, or only that it is another document; any document may follow none."""
    if then.state_id is not None and now.state_id is None:
        yield Move(MoveKind.DEPLOYMENT_STATE_MOVED, "it does not exist any more")
        return
    if then.state_id not in (None, now.state_id):
        detail = f"its id is {now.state_id} instead of {then.state_id}"
        yield Move(MoveKind.DEPLOYMENT_STATE_MOVED, detail)
        return
    before, after = (
        {key.partition(".")[2]: one for key, one in side.records.items()} for side in (then, now)
    )
    yield from _moved(before, after, before, _RECORD)


def _statements(reviewed: PlanFile, current: PlanFile) -> Iterator[Move]:
    """Yield the first statement that differs."""
    pairs = zip_longest(reviewed.statements, current.statements)
    for number, (then, now) in enumerate(pairs, start=1):
        if then != now:
            before, after = (one.sql if one else "nothing" for one in (then, now))
            detail = f"statement {number} is, in the file: {before}\n    and would be: {after}"
            yield Move(MoveKind.STATEMENTS_CHANGED, detail)
            return
