"""The ports of the deployment state: stores of documents, journals and locks.

Every implementation serves one environment. A store moves bytes and compares tokens; it does not interpret
documents. It reports a write as done, refused or unanswered. Its callers (`StateRepository`, `LeaseLock`) resolve
an unanswered write by reading back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from delta_engine.deployment.stored import DocumentIdentity, LockHolder, LockRecord, StoredDocument
from delta_engine.deployment.stores.files import FileVersions


class StateStore(Protocol):
    """Keeps the current document of one environment."""

    @property
    def location(self) -> str:
        """The document's place for messages, without credentials."""

    @property
    def versions(self) -> FileVersions:
        """The earlier documents."""

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        """Return the document; None before the first save. A run that holds the lock accepts no cached copy.

        Raises:
            StoreError: it cannot be read.
            CorruptStateError: it does not match the store's own checksum; the error carries the stored content.
        """

    def replace(
        self, data: bytes, identity: DocumentIdentity, expected: StoredDocument | None
    ) -> StoredDocument:
        """Write a document if the store still holds the expected one (None: no document); return the stored one.

        Raises:
            ConflictError: the store holds another document, or this one through a hidden retry.
            UncertainWriteError: there was no answer.
            StoreError: it was not written.
        """


class JournalStore(Protocol):
    """Keeps the journals of runs: short entries that survive a killed run."""

    def append(self, run_id: str, position: int, entry: bytes) -> None:
        """Add one line of JSON durably, or raise `StoreError`; the position counts the run's entries from 0."""

    def read(self) -> Mapping[str, Sequence[bytes]]:
        """Return the entries of every journal, in order, by run id."""

    def remove(self, run_id: str) -> None:
        """Remove a run's journal; a missing journal is not an error."""


class LockRecords(Protocol):
    """Keeps the single record of a lock, with compare-and-swap; never deletes it, so that the fence survives."""

    @property
    def location(self) -> str:
        """The record's place for messages, without credentials."""

    def read(self) -> tuple[LockRecord, str] | None:
        """Return the record and the token to replace it with; None before the first write.

        Raises:
            StoreError: it cannot be read.
            UnreadableLockError: it is damaged; the error carries its token.
        """

    def replace(self, record: LockRecord, expected: str | None) -> str:
        """Write a record if the token still fits (None: no record); return the new token. See `StateStore.replace`."""


class LockLease(Protocol):
    """A held lock. Only the process that acquired it may use it, not its forked children."""

    @property
    def fence(self) -> int:
        """The count of this lock's holders, through releases and takeovers."""

    @property
    def taken_over_from(self) -> LockHolder | None:
        """The dead holder that this lease replaced; None if the lock was free."""

    def check(self) -> None:
        """Raise `LockLost` if the lock is no longer held; cheap enough for every statement."""

    def release(self) -> None:
        """Release the lock; does nothing if this lease no longer holds it.

        Raises:
            StoreError: the release is not recorded. The lock is free, or its lease expires.
        """


class StateLock(Protocol):
    """The lock of one environment."""

    @property
    def location(self) -> str:
        """The lock's place for messages."""

    def acquire(
        self,
        holder: LockHolder,
        *,
        timeout_seconds: float,
        on_wait: Callable[[LockHolder], None] = lambda _holder: None,
    ) -> LockLease:
        """Acquire the lock; before a wait, call `on_wait` once with the current holder.

        Raises:
            LockHeld: it is still held after the timeout; the error names the holder.
            StoreError: the lock cannot be reached.
        """

    def holder(self) -> LockHolder | None:
        """Return the current holder; None if the lock is free."""

    def break_lock(self) -> LockHolder | None:
        """Release the lock by force; return its holder, None if it was free."""
