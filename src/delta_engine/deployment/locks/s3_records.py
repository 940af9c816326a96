"""The record of a lock as an S3 object. It is overwritten, never deleted.

Some servers ignore conditions on DELETE, some refuse to create an object where one was deleted.
"""

from __future__ import annotations

from delta_engine.deployment.aws.s3_folder import S3Folder
from delta_engine.deployment.lock_record import LockRecord, decode_lock_record, encode_lock_record


class S3LockRecords:
    """Keeps the record of one environment's lock.

    Args:
        folder: where; the store's, so that its endpoint is probed once.
        environment: the environment's name.
    """

    def __init__(self, folder: S3Folder, environment: str) -> None:
        self._folder = folder
        self._name = f"{environment}.lock.json"

    @property
    def location(self) -> str:
        """Where the record is."""
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
