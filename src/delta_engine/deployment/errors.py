"""What can go wrong with the deployment state. What was refused changed nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_engine.errors import DeltaEngineError, RefusedError, SourceLocation

if TYPE_CHECKING:
    from delta_engine.deployment.ports import StoredDocument


class _DocumentRefusedError(RefusedError):
    """A document that is not used and not touched.

    Args:
        reason: what is wrong with it.
        where: the document, as its store names it.
        way_out: what the user can do about it.
    """

    def __init__(self, reason: str, *, where: str = "", way_out: str = "") -> None:
        location = SourceLocation(where) if where else None
        super().__init__(reason, location=location, way_out=way_out)


class CorruptStateError(_DocumentRefusedError):
    """A document that is truncated, malformed, or does not match its checksum.

    Args:
        reason: what is wrong with it.
        where: the document, as its store names it.
        way_out: what the user can do about it.
        stored: what is left of it, where its store knows that it is damaged: a restored document replaces that.
    """

    def __init__(
        self, reason: str, *, where: str = "", way_out: str = "", stored: StoredDocument | None = None
    ) -> None:
        self.stored = stored
        super().__init__(reason, where=where, way_out=way_out)


class NewerStateError(_DocumentRefusedError):
    """A document that a newer engine wrote."""


class StateMismatchError(_DocumentRefusedError):
    """A document of another environment, or of another life of this one."""


class StaleStateError(DeltaEngineError):
    """Somebody else saved the deployment state since it was loaded: this save was not done."""


class StoreError(DeltaEngineError):
    """A store cannot be used: no such bucket, no access, no answer. What was asked for was not done."""


class UncertainWriteError(StoreError):
    """A write got no answer: it may have been done, or not. Reading back tells."""


class UnansweredError(StoreError):
    """A read got no usable answer: that tells nothing about what is stored."""


class ConflictError(StoreError):
    """A conditional write was refused: something else is there, or this very write by a hidden retry."""


class UnsavedStateError(DeltaEngineError):
    """What was applied could not be recorded. The document lies beside the run, to be restored by hand."""


class LockHeld(DeltaEngineError):
    """Somebody else works on the environment."""


class LockLost(DeltaEngineError):
    """The lock was broken or its lease ran out while this run held it: it may not go on."""
