"""The record of a lock and its holder."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from delta_engine.deployment.errors import CorruptStateError
from delta_engine.telemetry.context import command

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A point in time; in documents always UTC."""


class LockHolder(msgspec.Struct, frozen=True, kw_only=True):
    """The run that holds a lock.

    Args:
        who: the user or service principal.
        host: the machine.
        pid: the process on it.
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
        since = self.since.isoformat(timespec="seconds")
        return f"{self.who} on {self.host} (process {self.pid}), {self.operation} since {since}{watch}"


class LockRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a lock. It is overwritten, never deleted.

    Args:
        lock_id: unique per acquisition.
        fence: counts the holders; survives releases.
        beat: counts the renewals of this holder.
        lease_seconds: how long a beat is valid.
        released: whether the holder released the lock.
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
