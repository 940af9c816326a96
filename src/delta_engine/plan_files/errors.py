"""Errors of plan files, each raised before any change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from delta_engine.errors import DeltaEngineError, RefusedError, SourceLocation


class PlanFileError(RefusedError):
    """A plan file that cannot be used, or not in this environment; `where` is the path as the user named it."""

    def __init__(self, reason: str, *, where: str, way_out: str) -> None:
        super().__init__(reason, location=SourceLocation(where), way_out=way_out)


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
    POLICY_CHANGED = "policy.{} was changed"
    DEPLOYMENT_STATE_MOVED = "the deployment state has changed: {}"
    STATEMENTS_CHANGED = "the engine would run other statements now: {}"


@dataclass(frozen=True, slots=True)
class Move:
    """One change since the review; `note` has details, such as both values."""

    kind: MoveKind
    name: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value.format(self.name)}{f' ({self.note})' if self.note else ''}"


class StalePlanError(PlanFileError):
    """A plan file whose models, tables, settings or records have changed since the review, as `moves` lists."""

    def __init__(self, moves: Sequence[Move], *, where: str, way_out: str, note: str = "") -> None:
        self.moves = tuple(moves)
        lines = "".join(f"\n  {move}" for move in self.moves)
        reason = f"the plan is stale{f': {note}' if note else ''}. Since it was made:{lines}\nNothing was run"
        super().__init__(reason, where=where, way_out=way_out)


class UnreviewedStatementError(DeltaEngineError):
    """A compiled plan that does not have the statements of its plan file; nothing ran."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        super().__init__(
            "the plan was stopped before it ran: its statements are not those of the reviewed plan file, from this one "
            f"on: {sql}\nThis is an error of the engine: please report it."
        )
