"""The record of a lock as an item of a DynamoDB table. It is overwritten, never deleted.

The attributes are for people who look at the table; the engine reads `Record`. There is no time to live:
DynamoDB removes such items days late, and with them the fence.
"""

from __future__ import annotations

from typing import Final

from delta_engine.deployment.aws.clients import DynamoDBClient
from delta_engine.deployment.lock_record import LockRecord, decode_lock_record, encode_lock_record

_KEY: Final = "LockID"
_RECORD: Final = "Record"


class DynamoDBLockRecords:
    """Keeps the record of one lock.

    Args:
        client: the client.
        table: the table's name. Its key is the string LockID.
        lock_id: the item's key: every environment that shares the table needs its own.
    """

    def __init__(self, client: DynamoDBClient, table: str, lock_id: str) -> None:
        self._client = client
        self._table = table
        self._lock_id = lock_id

    @property
    def location(self) -> str:
        """Where the record is."""
        return f"the item {self._lock_id!r} of the DynamoDB table {self._table!r} at {self._client.endpoint}"

    def read(self) -> tuple[LockRecord, str] | None:
        """Return the record and its JSON, by which it is compared."""
        item = self._client.get(self._table, {_KEY: self._lock_id})
        if item is None:
            return None
        found = str(item.get(_RECORD, {}).get("S", ""))
        return decode_lock_record(found.encode(), where=self.location, token=found), found

    def replace(self, record: LockRecord, expected: str | None) -> str:
        """Write a record if the one that is there is the expected one, to the letter; return its JSON."""
        token = encode_lock_record(record).decode()
        self._client.replace(
            self._table,
            self._item(record, token),
            key=_KEY,
            expected=None if expected is None else {_RECORD: expected},
        )
        return token

    def _item(self, record: LockRecord, token: str) -> dict[str, str | int | float | bool]:
        holder = record.holder
        return {
            _KEY: self._lock_id,
            "AcquiredBy": holder.who,
            "AcquiredAt": holder.since.isoformat(timespec="seconds"),
            "Host": holder.host,
            "Pid": holder.pid,
            "Operation": holder.operation,
            "RunURL": holder.run_url,
            "Fence": record.fence,
            "Beat": record.beat,
            "LeaseSeconds": record.lease_seconds,
            "Released": record.released,
            _RECORD: token,
        }
