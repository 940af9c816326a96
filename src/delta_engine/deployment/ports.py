"""The ports of the deployment state: stores of documents, journals and locks, and the data that passes through them.

Every implementation serves one environment. A store moves bytes and compares tokens; it does not interpret
documents. It reports a write as done, refused or unanswered. Its callers (`StateRepository`, `LeaseLock`) resolve
an unanswered write by reading back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import msgspec

from delta_engine.deployment.errors import CorruptStateError
from delta_engine.models.open_struct import Moment
from delta_engine.telemetry.context import command
from delta_engine.telemetry.visible import shown_moment

if TYPE_CHECKING:
    from delta_engine.deployment.stores.files import FileVersions


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What distinguishes one saved document from every other: one state_id per environment, one write_id per save.

    Its parts are empty where a damaged document lacks them. `updated_at` and `updated_by` say when and by whom it was
    saved, for users; a store that does not need them leaves them out.
    """

    state_id: str = ""
    serial: int = 0
    write_id: str = ""
    updated_at: str = ""
    updated_by: str | None = None

    @property
    def version_id(self) -> str:
        """The name of this document among the kept versions; sorts by serial."""
        return f"{self.serial:08d}-{self.write_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A document as its store holds it.

    Args:
        token: what the store compares before it replaces the document; opaque.
        identity: the store's own record of the identity; None if only the bytes hold it.
    """

    data: bytes
    token: str
    identity: Identity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVersion:
    """A kept version.

    Args:
        saved_at: when the store received it, UTC.
        size: in bytes, as stored.
        is_replaced: whether a later document replaced it; False if the store cannot tell.
    """

    version_id: str
    saved_at: datetime
    size: int
    is_replaced: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file in a listing; the name is relative to the listed folder's root, the time is UTC."""

    name: str
    size: int
    modified_at: datetime


class LockHolder(msgspec.Struct, frozen=True, kw_only=True):
    """The run that holds a lock.

    Args:
        who: the user or service principal.
        since: when the run acquired the lock, by its own clock.
        operation: what it does, such as `sync`.
        run_url: where to watch it; empty if unknown.
    """

    who: str
    host: str
    pid: int
    since: Moment
    operation: str
    run_url: str = ""

    def __str__(self) -> str:
        watch = f", {self.run_url}" if self.run_url else ""
        since = shown_moment(self.since)
        return f"{self.who} on {self.host} (process {self.pid}), {self.operation} since {since}{watch}"


class LockRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a lock. It is overwritten, never deleted.

    Args:
        lock_id: unique per acquisition.
        fence: counts the holders; survives releases.
        beat: counts the renewals of this holder.
        lease_seconds: how long a beat is valid.
        holder: the current holder, or the last one.
    """

    lock_id: str
    fence: int
    beat: int
    lease_seconds: float
    released: bool
    holder: LockHolder


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


def encode_lock_record(record: LockRecord) -> bytes:
    """Return a record as JSON."""
    return msgspec.json.encode(record)


def decode_lock_record(data: bytes, *, where: str, token: str) -> LockRecord:
    """Parse a record.

    Raises:
        UnreadableLockError: it is malformed; carries `token`, which replaces it.
    """
    try:
        return msgspec.json.decode(data, type=LockRecord)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableLockError(str(error), where=where, token=token) from None


def released_anew(now: Moment) -> LockRecord:
    """Return a record for a lock whose own is unreadable: free, with a fence above any count."""
    return LockRecord(
        lock_id="broken",
        fence=int(now.timestamp()),
        beat=0,
        lease_seconds=0,
        released=True,
        holder=LockHolder(who="none", host="", pid=0, since=now, operation="state unlock"),
    )


class Files(Protocol):
    """A folder of files, or of objects with a common prefix. Names are relative, with `/` between folders.

    Every method raises `StoreError` if the store refuses, and `UncertainWriteError` if a write got no answer.
    """

    def location(self, name: str) -> str:
        """Return a file's place for messages, without credentials."""

    def read(self, name: str) -> bytes | None:
        """Return a file's bytes; None if it does not exist."""

    def write(self, name: str, data: bytes) -> str:
        """Write or replace a file; return its place."""

    def create(self, name: str, data: bytes) -> None:
        """Write a file unless it exists."""

    def list(self, folder: str) -> Sequence[StoredFile]:
        """Return all files below a folder; empty if the folder does not exist."""

    def delete(self, name: str) -> None:
        """Delete a file; a missing file is no error."""


class JournalFiles(Files, Protocol):
    """Files whose folders can be deleted as a whole."""

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with all its files; a missing folder is no error."""


class ReportFiles(Protocol):
    """Keeps the latest report of each kind beside the documents."""

    def write(self, name: str, data: bytes) -> str:
        """Write or replace a report such as `prod.drift.html`; return its place."""


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

    def replace(self, data: bytes, identity: Identity, expected: StoredDocument | None) -> StoredDocument:
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
        """Remove a run's journal; a missing journal is no error."""


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
