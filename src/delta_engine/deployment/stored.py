"""What stores hold: documents with their identities, versions, files, and the record of a lock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from delta_engine.models.open_struct import Moment, Struct
from delta_engine.telemetry.visible import shown_moment


class DocumentIdentity(Struct, frozen=True, kw_only=True):
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
    identity: DocumentIdentity | None = None


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


class LockRecord(Struct, frozen=True, kw_only=True):
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
