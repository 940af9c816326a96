"""What can be wrong with a plan file. Whatever it is, nothing was changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from delta_engine.errors import RefusedError, SourceLocation


class PlanFileError(RefusedError):
    """A plan file that cannot be used, or not here.

    Args:
        reason: what is wrong with it.
        where: the file, as the user named it.
        way_out: what the user can do about it.
    """

    def __init__(self, reason: str, *, where: str, way_out: str) -> None:
        super().__init__(reason, location=SourceLocation(where), way_out=way_out)


class MoveKind(Enum):
    """What became of something that a plan was made from."""

    TABLE_ALTERED = "table {} was altered"
    TABLE_DROPPED = "table {} was dropped"
    TABLE_RECREATED = "table {} was dropped and created again"
    TABLE_APPEARED = "table {} has appeared"
    SCHEMA_ALTERED = "schema {} was altered"
    SCHEMA_DROPPED = "schema {} was dropped"
    SCHEMA_APPEARED = "schema {} has appeared"
    MODEL_CHANGED = "the model of {} was changed"
    MODEL_ADDED = "the model of {} is new"
    MODEL_REMOVED = "the model of {} is gone"
    POLICY_CHANGED = "policy.{} was changed"
    DEPLOYMENT_STATE_MOVED = "the deployment state has moved: {}"
    STATEMENTS_CHANGED = "the engine would run other statements by now: {}"


@dataclass(frozen=True, slots=True)
class Move:
    """One thing that is not what it was.

    Args:
        kind: what became of it.
        name: what it is.
        note: more about it, such as who did it and when.
    """

    kind: MoveKind
    name: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value.format(self.name)}{f' ({self.note})' if self.note else ''}"


class StalePlanError(PlanFileError):
    """A plan file of a world that is gone.

    Args:
        moves: what has moved since, at least one.
        where: the file.
        way_out: how to make it anew.
        note: what there is to say besides, such as that an earlier apply was cut short.
    """

    def __init__(self, moves: Sequence[Move], *, where: str, way_out: str, note: str = "") -> None:
        self.moves = tuple(moves)
        lines = "".join(f"\n  {move}" for move in self.moves)
        reason = f"the plan is stale{f': {note}' if note else ''}. Since it was made:{lines}\nNothing was run"
        super().__init__(reason, where=where, way_out=way_out)
