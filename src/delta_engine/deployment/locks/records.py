"""The record of a lock as JSON."""

from __future__ import annotations

import msgspec

from delta_engine.deployment.errors import UnreadableLockError
from delta_engine.deployment.stored import LockHolder, LockRecord
from delta_engine.models.open_struct import Moment


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


def unlocked_record(now: Moment) -> LockRecord:
    """Return a record for a lock whose own is unreadable: free, with a fence above any count."""
    return LockRecord(
        lock_id="broken",
        fence=int(now.timestamp()),
        beat=0,
        lease_seconds=0,
        released=True,
        holder=LockHolder(who="none", host="", pid=0, since=now, operation="state unlock"),
    )
