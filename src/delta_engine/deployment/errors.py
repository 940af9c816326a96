"""Errors of the deployment state. A refused operation changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_engine.errors import DeltaEngineError, RefusedError, SourceLocation

if TYPE_CHECKING:
    from delta_engine.deployment.ports import StoredDocument


class _DocumentRefusedError(RefusedError):
    """A document that is neither used nor changed; `where` is its place in the store."""

    def __init__(self, reason: str, *, where: str = "", way_out: str = "") -> None:
        location = SourceLocation(where) if where else None
        super().__init__(reason, location=location, way_out=way_out)


class CorruptStateError(_DocumentRefusedError):
    """A document that is truncated, malformed or fails its checksum; `stored` is what remains of it."""

    def __init__(
        self, reason: str, *, where: str = "", way_out: str = "", stored: StoredDocument | None = None
    ) -> None:
        self.stored = stored
        super().__init__(reason, where=where, way_out=way_out)


class NewerStateError(_DocumentRefusedError):
    """A document that a newer engine wrote."""


class StateMismatchError(_DocumentRefusedError):
    """A document of another environment, or of another lineage of this one."""


class StaleStateError(DeltaEngineError):
    """Another run saved the deployment state since it was loaded; this save was not done."""


class StoreError(DeltaEngineError):
    """A store cannot be used: missing, access denied, unreachable. The operation was not done."""


class UncertainWriteError(StoreError):
    """A write got no answer and may have been done; reading back resolves it."""


class UnansweredError(StoreError):
    """A read got no usable answer; the stored content is unknown."""


class ConflictError(StoreError):
    """A conditional write was refused: the store holds something else, or this write through a hidden retry."""


class UnsavedStateError(DeltaEngineError):
    """The record of an apply could not be saved; the user restores the document from a file."""


class LockHeld(DeltaEngineError):
    """Another run holds the environment's lock."""


class LockLost(DeltaEngineError):
    """The lock was broken, or its lease expired, while this run held it: the run must stop."""
