"""The deployment state and its lock in an S3 bucket, or on a server with S3's conditional writes.

A save compares the object's ETag. Identical bytes have identical ETags: the fresh write id in every document makes
the comparison safe.
"""

from __future__ import annotations

from delta_engine.deployment.lock_record import LockRecord, decode_lock_record, encode_lock_record
from delta_engine.deployment.ports import Identity, StoredDocument
from delta_engine.deployment.stores.files import FileJournals, FileVersions
from delta_engine.deployment.stores.s3_folder import S3Folder


class S3StateStore:
    """Keeps `<environment>.state.json`, and the versions in `<environment>.versions` beside it."""

    def __init__(self, folder: S3Folder, environment: str) -> None:
        self._folder = folder
        self._document = f"{environment}.state.json"
        self.versions = FileVersions(folder, f"{environment}.versions")

    @property
    def location(self) -> str:
        """The document's place."""
        return self._folder.location(self._document)

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        """Return the document; there is no cache."""
        found = self._folder.get(self._document)
        return None if found is None else StoredDocument(data=found.data, token=found.etag)

    def replace(self, data: bytes, identity: Identity, expected: StoredDocument | None) -> StoredDocument:
        """Write the document if its ETag is still the expected one; the metadata shows state id and serial."""
        metadata = {"state-id": identity.state_id, "serial": str(identity.serial)}
        etag = self._folder.replace(self._document, data, expected.token if expected else None, metadata)
        return StoredDocument(data=data, token=etag)


def s3_journals(folder: S3Folder, environment: str) -> FileJournals:
    """Return the journals in `<environment>.journal`."""
    return FileJournals(folder, f"{environment}.journal")


class S3LockRecords:
    """Keeps the lock's record in `<environment>.lock.json`, overwritten and never deleted.

    Some servers ignore conditions on DELETE, others refuse to create an object again after its deletion.
    """

    def __init__(self, folder: S3Folder, environment: str) -> None:
        self._folder = folder
        self._name = f"{environment}.lock.json"

    @property
    def location(self) -> str:
        """The record's place."""
        return self._folder.location(self._name)

    def read(self) -> tuple[LockRecord, str] | None:
        """Return the record and its ETag."""
        found = self._folder.get(self._name)
        if found is None:
            return None
        return decode_lock_record(found.data, where=self.location, token=found.etag), found.etag

    def replace(self, record: LockRecord, expected: str | None) -> str:
        """Write a record if the ETag is still the expected one; return its new ETag."""
        return self._folder.replace(self._name, encode_lock_record(record), expected)
