"""Deployment states and locks on Databricks: documents in a volume, heads and locks in small Delta tables.

A volume has no compare-and-swap. A Delta commit has one, but must not carry megabytes. So every document is an
immutable file, and the head, one row per environment, names the current one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256

from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.deployment.codec import restore_hint
from delta_engine.deployment.errors import ConflictError, CorruptStateError, StoreError, UncertainWriteError
from delta_engine.deployment.locks.records import decode_lock_record, encode_lock_record
from delta_engine.deployment.stored import DocumentIdentity, LockRecord, StoredDocument
from delta_engine.deployment.stores.delta_row import DeltaRow, Value
from delta_engine.deployment.stores.files import FileVersions, compressed, decompressed
from delta_engine.deployment.stores.volume_files import VolumeFiles, upload_verified
from delta_engine.telemetry.context import utc_now

HEADS = "deployment_heads"
LOCKS = "deployment_locks"

_HEAD_COLUMNS: Mapping[str, type] = {
    "state_id": str,
    "serial": int,
    "write_id": str,
    "sha256": str,
    "size": int,
    "blob": str,
    "saved_at": str,
}
_IDENTITY = ("state_id", "serial", "write_id")
_HEADS_COMMENT = "Delta Engine: which document of each environment is current. Changed by the engine alone."
_ONE_OF_SEVERAL_HEADS = (
    "Keep the row of the highest serial; of equal ones, that of the run that succeeded. Delete each other one, adding "
    "`AND write_id = '…'` with its own write_id:"
)

_LOCK_COLUMNS: Mapping[str, type] = {
    "who": str,
    "host": str,
    "operation": str,
    "since": str,
    "released": bool,
    "fence": int,
    "beat": int,
    "record": str,
}
_LOCKS_COMMENT = (
    "Delta Engine: which run holds the lock of each environment. Changed by the engine alone; "
    "see `delta-engine -e ENV state unlock`."
)
_ONE_OF_SEVERAL_LOCKS = "Make sure that no run works on the environment, and free the lock:"


class DatabricksStateStore:
    """Keeps the documents of one environment in `<volume>/<environment>/documents`; `heads` is the table's SQL.

    A load is one SELECT, a save is one UPDATE.
    """

    def __init__(self, runner: SqlRunner, files: VolumeFiles, *, heads: str, environment: str) -> None:
        self._files = files
        self._head = DeltaRow(
            runner, heads, environment, _HEAD_COLUMNS, _HEADS_COMMENT, one_of_several=_ONE_OF_SEVERAL_HEADS
        )
        self.versions = FileVersions(files, "documents", current=self._current)

    @property
    def location(self) -> str:
        """The head's row."""
        return self._head.location

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        """Return the document that the head names; see `StateStore.read`."""
        head = self._head.read()
        if head is None:
            return None
        blob = str(head["blob"])
        data = self._files.read(blob)
        remains = StoredDocument(data=data or b"", token=_token(head), identity=_identity(head))
        if data is None or sha256(data).hexdigest() != head["sha256"]:
            what = "is gone" if data is None else "does not match the head's checksum"
            raise CorruptStateError(
                f"the document {blob} {what}", where=self.location, way_out=restore_hint(), stored=remains
            )
        return StoredDocument(data=decompressed(data, blob, remains), token=remains.token)

    def replace(
        self, data: bytes, identity: DocumentIdentity, expected: StoredDocument | None
    ) -> StoredDocument:
        """Upload the document and move the head if it is still the expected one; see `StateStore.replace`."""
        blob = compressed(data)
        name = self.versions.name(identity.version_id)
        head: dict[str, Value] = {
            "state_id": identity.state_id,
            "serial": identity.serial,
            "write_id": identity.write_id,
            "sha256": sha256(blob).hexdigest(),
            "size": len(blob),
            "blob": self._files.location(name),
            "saved_at": utc_now().isoformat(timespec="seconds"),
        }
        try:
            upload_verified(self._files, name, blob)
            self._head.replace(head, None if expected is None else _head_of(expected))
        except UncertainWriteError:
            raise
        except StoreError:
            self._delete_unless_current(name)
            raise
        return StoredDocument(data=data, token=_token(head))

    def _current(self) -> DocumentIdentity | None:
        head = self._head.read()
        return None if head is None else _identity(head)

    def _delete_unless_current(self, name: str) -> None:
        """Delete a document that no head got; after a failure it remains as a file that no head names."""
        with suppress(StoreError, CorruptStateError):
            head = self._head.read()
            if head is None or head["blob"] != self._files.location(name):
                self._files.delete(name)


class DeltaLockRecords:
    """Keeps the record of one environment's lock; the columns besides `record` are for users."""

    def __init__(self, runner: SqlRunner, table: str, environment: str) -> None:
        self._row = DeltaRow(
            runner, table, environment, _LOCK_COLUMNS, _LOCKS_COMMENT, one_of_several=_ONE_OF_SEVERAL_LOCKS
        )

    @property
    def location(self) -> str:
        """The record's place."""
        return self._row.location

    def read(self) -> tuple[LockRecord, str] | None:
        """Return the record, and its JSON as the token."""
        row = self._row.read()
        if row is None:
            return None
        text = str(row["record"])
        return decode_lock_record(text.encode(), where=self.location, token=text), text

    def replace(self, record: LockRecord, expected: str | None) -> str:
        """Write a record if the stored JSON is exactly the expected one; return the new JSON."""
        token = encode_lock_record(record).decode()
        values: dict[str, Value] = {
            "who": record.holder.who,
            "host": record.holder.host,
            "operation": record.holder.operation,
            "since": record.holder.since.isoformat(timespec="seconds"),
            "released": record.released,
            "fence": record.fence,
            "beat": record.beat,
            "record": token,
        }
        self._row.replace(values, None if expected is None else {"record": expected})
        return token


def _head_of(document: StoredDocument) -> Mapping[str, Value]:
    """Return what the head says of a document; ConflictError if its token is of something else."""
    try:
        head: Mapping[str, Value] = json.loads(document.token)
    except ValueError as error:
        raise ConflictError("the document is not what was read") from error
    return head


def _token(head: Row | Mapping[str, Value]) -> str:
    return json.dumps({name: head[name] for name in _IDENTITY})


def _identity(head: Row) -> DocumentIdentity:
    return DocumentIdentity(
        state_id=str(head["state_id"]), serial=int(str(head["serial"])), write_id=str(head["write_id"])
    )
