"""The ports of the deployment state: where documents, journals and locks live.

Stores move bytes and compare; they know nothing of what a document says. All of them are for one
environment. What a lost answer means is decided by their callers, who read back (`StateRepository`,
`LeaseLock`): a store only says which of three things happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from delta_engine.deployment.lock_record import LockHolder, LockRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What makes one saved document different from every other.

    Args:
        state_id: the document's identity through all its saves.
        serial: counts the saves.
        write_id: made anew for every save.
    """

    state_id: str
    serial: int
    write_id: str

    @property
    def version_id(self) -> str:
        """The name under which this document is kept among the versions; sorts by serial."""
        return f"{self.serial:08d}-{self.write_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A document as a store has it.

    Args:
        data: its bytes, as they were saved.
        token: what the store compares before it replaces it; opaque.
        identity: what the store itself notes of it; None where only its bytes say that.
    """

    data: bytes
    token: str
    identity: Identity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVersion:
    """A kept version.

    Args:
        version_id: names it for `restore` and `diff`.
        saved_at: when the store got it, UTC.
        size: in bytes, as stored.
        is_replaced: whether a later document replaced it; False if the store cannot tell.
    """

    version_id: str
    saved_at: datetime
    size: int
    is_replaced: bool = True


class StateStore(Protocol):
    """Keeps the document of one environment, and its earlier versions."""

    @property
    def location(self) -> str:
        """Where the document is, for messages; without credentials."""
        ...

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        """Return the document; None if there is none yet.

        Args:
            allow_cached: whether a recent copy will do. Never for a run that holds the lock.

        Raises:
            StoreError: it cannot be read.
            CorruptStateError: what is there does not match the store's own checksum; it carries what is there.
        """
        ...

    def replace(self, data: bytes, identity: Identity, expected: StoredDocument | None) -> StoredDocument:
        """Write a document, if what is there is still what was read (None: if nothing is there).

        Returns:
            What is there now.

        Raises:
            ConflictError: something else is there; it may be this very write, by a hidden retry.
            UncertainWriteError: there was no answer.
            StoreError: it was not written.
        """
        ...

    def keep_version(self, version_id: str, data: bytes) -> None:
        """Keep a document that is about to be replaced. Keeping it again changes nothing.

        Raises:
            StoreError: it could not be kept.
        """
        ...

    def versions(self) -> Sequence[StateVersion]:
        """Return the kept versions, newest first; the document itself is not among them."""
        ...

    def read_version(self, version_id: str) -> bytes | None:
        """Return a kept version's bytes; None if there is no such version."""
        ...

    def keep_backup(self, name: str, data: bytes) -> str:
        """Keep a copy beside the document, such as `prod.state.v0.backup.json`; return where it is."""
        ...


class JournalStore(Protocol):
    """Keeps the journals of runs: short entries that survive a killed run."""

    def append(self, run_id: str, position: int, entry: bytes) -> None:
        """Add an entry durably.

        Args:
            run_id: the run's; file name characters only.
            position: counts the run's entries from 0.
            entry: one line of JSON.

        Raises:
            StoreError: it could not be added.
        """
        ...

    def read(self) -> Mapping[str, Sequence[bytes]]:
        """Return the entries of every journal that is there, in order, by run."""
        ...

    def remove(self, run_id: str) -> None:
        """Remove a run's journal; no error if there is none."""
        ...


class LockRecords(Protocol):
    """Keeps the one record of a lock, and replaces it only if it is still what was read.

    The record is never deleted: its fence must survive.
    """

    @property
    def location(self) -> str:
        """Where the record is, for messages; without credentials."""
        ...

    def read(self) -> tuple[LockRecord, str] | None:
        """Return the record and the token to replace it with; None if there was never one.

        Raises:
            StoreError: it cannot be read.
        """
        ...

    def replace(self, record: LockRecord, expected: str | None) -> str:
        """Write a record, if the token still fits (None: if there is no record); return its token.

        Raises:
            ConflictError, UncertainWriteError, StoreError: as `StateStore.replace`.
        """
        ...


class LockLease(Protocol):
    """A lock that is held. One process may use it; a forked child may not."""

    @property
    def fence(self) -> int:
        """Counts the holders of this lock, through releases and takeovers."""
        ...

    @property
    def taken_over_from(self) -> LockHolder | None:
        """Whose dead hand it was taken from, if it was not free."""
        ...

    def check(self) -> None:
        """Make sure that the lock is still held; cheap enough for every statement.

        Raises:
            LockLost: it is not.
        """
        ...

    def release(self) -> None:
        """Give it back. Does nothing if it is not held any more, or held by somebody else."""
        ...


class StateLock(Protocol):
    """The lock of one environment."""

    @property
    def location(self) -> str:
        """Where the lock is, for messages."""
        ...

    def acquire(
        self,
        holder: LockHolder,
        *,
        timeout_seconds: float,
        on_wait: Callable[[LockHolder], None] = lambda _holder: None,
    ) -> LockLease:
        """Take the lock, waiting for it if need be.

        Args:
            holder: who takes it.
            timeout_seconds: how long to wait.
            on_wait: called once with the holder that is waited for.

        Raises:
            LockHeld: it is still held after that time; names the holder.
            StoreError: the lock cannot be reached.
        """
        ...

    def holder(self) -> LockHolder | None:
        """Return who holds it; None if nobody does."""
        ...

    def break_lock(self) -> LockHolder | None:
        """Release it by force; return whose it was, None if nobody held it."""
        ...


class ReportFiles(Protocol):
    """Keeps reports beside the documents, where people and tools find the latest of each kind."""

    def write(self, name: str, data: bytes) -> str:
        """Write or replace a file, and return where it is.

        Args:
            name: the file's, such as `prod.drift.html`; its ending says what it is.
            data: its content.

        Raises:
            StoreError: it was not written, or nobody knows.
        """
        ...
