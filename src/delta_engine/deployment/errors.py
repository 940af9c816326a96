"""Errors of the deployment state. A refused operation changes nothing."""

from __future__ import annotations

from pathlib import Path

from delta_engine.deployment.stored import LockHolder, StoredDocument
from delta_engine.errors import DeltaEngineError, RefusedError, SourceLocation
from delta_engine.telemetry.context import command


class _DocumentRefusedError(RefusedError):
    """A document that is neither used nor changed; `where` is its place in the store."""

    def __init__(self, reason: str, *, where: str = "", way_out: str = "") -> None:
        self.where = where
        location = SourceLocation(where) if where else None
        super().__init__(reason, location=location, way_out=way_out)


class CorruptStateError(_DocumentRefusedError):
    """A document that is truncated, malformed or fails its checksum; `stored` is what remains of it."""

    topic = "unreadable-deployment-state"

    def __init__(
        self, reason: str, *, where: str = "", way_out: str = "", stored: StoredDocument | None = None
    ) -> None:
        self.stored = stored
        super().__init__(reason, where=where, way_out=way_out)


class UnreadableLockError(CorruptStateError):
    """A lock's record that was damaged, or written by hand; `token` replaces it."""

    topic = "unreadable-lock"

    def __init__(self, reason: str, *, where: str, token: str) -> None:
        self.token = token
        super().__init__(
            f"the lock's record is not readable: {reason}",
            where=where,
            way_out=f"Make sure that no run works on the environment; then {command('state unlock')}.",
        )


class NewerStateError(_DocumentRefusedError):
    """A document that a newer engine wrote."""

    topic = "newer-deployment-state"


class StateMismatchError(_DocumentRefusedError):
    """A document of another environment, or of another lineage of this one."""

    topic = "mismatched-deployment-state"


class StaleStateError(DeltaEngineError):
    """Another run saved the deployment state since it was loaded; this save was not done.

    Args:
        where: the document's place.
        reason: what is there now.
    """

    topic = "unrecorded-apply"

    def __init__(self, where: str, reason: str) -> None:
        self.where = where
        self.reason = reason
        self.way_out = "Run again: the other run's records are kept."
        super().__init__(
            f"{where}: the deployment state was saved by another run since it was loaded ({reason}). {self.way_out}"
        )


class StoreError(DeltaEngineError):
    """A store cannot be used: missing, access denied, unreachable. The operation was not done."""

    topic = "unusable-store"


class UncertainWriteError(StoreError):
    """A write got no answer and may have been done; reading back resolves it."""


class UnansweredError(StoreError):
    """A read got no usable answer; the stored content is unknown."""


class ConflictError(StoreError):
    """A conditional write was refused: the store holds something else, or this write through a hidden retry."""


class UnsavedStateError(DeltaEngineError):
    """The record of an apply could not be saved; the user restores the document from a file.

    Args:
        file: the file; None if no file could be written either.
    """

    topic = "unrecorded-apply"

    def __init__(self, message: str, *, file: Path | None) -> None:
        self.message = message
        self.file = file
        super().__init__(message)


class LockHeld(DeltaEngineError):
    """Another run holds the environment's lock.

    Args:
        where: the lock's place.
        holder: the other run; None if it has not recorded its name yet.
    """

    topic = "locked"

    def __init__(self, where: str, holder: LockHolder | None) -> None:
        self.where = where
        self.holder = holder
        self.way_out = ""
        if holder is None:
            reason = "the environment is locked by a process that has not recorded its name yet"
            super().__init__(f"{where}: {reason}")
            return
        self.way_out = (
            "Run the command again: the lock of a killed run expires after its lease. "
            f"If the run is certainly gone, {command('state unlock')} ends its lock."
        )
        super().__init__(f"{where}: the environment is locked by {holder}. {self.way_out}")


class LockLost(DeltaEngineError):
    """The lock was broken, or its lease expired, while this run held it: the run must stop.

    Args:
        where: the lock's place.
        reason: what happened to it.
    """

    topic = "lost-lock"

    def __init__(self, where: str, reason: str) -> None:
        self.where = where
        self.reason = reason
        super().__init__(f"{where}: {reason}")
