"""S3: documents, journals and reports in a folder of a bucket, which is probed before its first conditional write."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

from delta_engine.deployment.errors import ConflictError, StoreError, UnansweredError, UncertainWriteError
from delta_engine.deployment.locks.records import decode_lock_record, encode_lock_record
from delta_engine.deployment.stored import DocumentIdentity, LockRecord, StoredDocument, StoredFile
from delta_engine.deployment.stores.aws import UNKNOWN_WRITE, AwsClient, RequestKind, StorePlace
from delta_engine.deployment.stores.files import FileJournals, FileVersions

MARKER_NAME: Final = ".delta-engine-endpoint.json"

_CONTENT_TYPES: Final = {
    ".gz": "application/gzip",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
}
_NO_METADATA: Final[Mapping[str, str]] = MappingProxyType({})
_PARALLEL_DELETES: Final = 8


class S3Folder:
    """A folder of a bucket, or the bucket itself. Threads may share it. Implements `JournalFiles`.

    All methods raise as `AwsClient.request`.
    """

    def __init__(self, client: AwsClient, bucket: str, prefix: str) -> None:
        self.endpoint = client.endpoint
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/".lstrip("/")
        self._place = StorePlace(
            name=f"the bucket {bucket!r} at {client.endpoint}",
            when_missing="Create it, or correct bucket, region and endpoint_url.",
            permissions="s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject and s3:DeleteObject "
            "on its objects",
        )
        self.probe = EndpointProbe(self)

    def location(self, name: str) -> str:
        """Return an object's place, for messages."""
        return f"s3://{self._bucket}/{self._prefix}{name} at {self.endpoint}"

    def get(self, name: str) -> tuple[bytes, str] | None:
        """Return an object's bytes, and the ETag to replace it with; None if it does not exist."""
        with self._client.request(self._place, RequestKind.READ):
            try:
                return self._get_whole(self._prefix + name)
            except self._client.raw.exceptions.NoSuchKey:
                return None

    def read(self, name: str) -> bytes | None:
        """Return an object's bytes."""
        file = self.get(name)
        return None if file is None else file[0]

    def write(self, name: str, data: bytes) -> str:
        """Write or replace an object; return its place."""
        self.put(name, data)
        return self.location(name)

    def create(self, name: str, data: bytes) -> None:
        """Write an object unless it exists."""
        try:
            self.replace(name, data, None)
        except ConflictError:
            # S3 also answers 409 to one of two simultaneous writers.
            if self.get(name) is None:
                raise

    def replace(
        self, name: str, data: bytes, expected: str | None, metadata: Mapping[str, str] = _NO_METADATA
    ) -> str:
        """Write an object if its ETag is still the expected one (None: no object); return its new ETag."""
        self.probe.require()
        return self.put(name, data, condition_for(expected), metadata)

    def put(
        self,
        name: str,
        data: bytes,
        condition: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] = _NO_METADATA,
    ) -> str:
        """Write an object, optionally under a condition of `condition_for`; return its new ETag."""
        kind = RequestKind.WRITE if condition is None else RequestKind.CONDITIONAL_WRITE
        content_type = _CONTENT_TYPES.get(PurePosixPath(name).suffix, "application/octet-stream")
        with self._client.request(self._place, kind):
            answer = self._client.raw.put_object(
                Bucket=self._bucket,
                Key=self._prefix + name,
                Body=data,
                ContentType=content_type,
                Metadata=dict(metadata),
                **(condition or {}),
            )
        etag = answer.get("ETag")
        if not etag:
            raise UncertainWriteError(f"{self._place.not_answered_by('S3')} {UNKNOWN_WRITE}")
        return str(etag)

    def list(self, folder: str) -> Sequence[StoredFile]:
        """Return all objects below a folder."""
        return self.beginning_with(f"{folder}/")

    def beginning_with(self, beginning: str) -> Sequence[StoredFile]:
        """Return the objects with a name prefix, from all pages of the listing."""
        with self._client.request(self._place, RequestKind.READ):
            paginator = self._client.raw.get_paginator("list_objects_v2")
            pages = paginator.paginate(Bucket=self._bucket, Prefix=self._prefix + beginning)
            return [
                StoredFile(
                    name=entry["Key"][len(self._prefix) :],
                    size=entry["Size"],
                    modified_at=entry["LastModified"],
                )
                for page in pages
                for entry in page.get("Contents", ())
            ]

    def delete(self, name: str) -> None:
        """Delete an object; a missing object is not an error."""
        with self._client.request(self._place, RequestKind.WRITE):
            try:
                self._client.raw.delete_object(Bucket=self._bucket, Key=self._prefix + name)
            except self._client.raw.exceptions.NoSuchKey:
                return

    def delete_folder(self, folder: str) -> None:
        """Delete all objects below a folder in parallel: a journal has an object per table."""
        with ThreadPoolExecutor(_PARALLEL_DELETES) as threads:
            list(threads.map(self.delete, [file.name for file in self.list(folder)]))

    def _get_whole(self, key: str) -> tuple[bytes, str]:
        """Read an object to its end, with retries: botocore retries failures before the body, not within it."""
        from botocore.exceptions import HTTPClientError, IncompleteReadError

        attempt = 1
        while True:
            answer: Mapping[str, Any] = self._client.raw.get_object(Bucket=self._bucket, Key=key)
            etag = answer.get("ETag")
            if not etag:
                raise StoreError(self._place.not_answered_by("S3"))
            try:
                return answer["Body"].read(), str(etag)
            except (HTTPClientError, IncompleteReadError):
                if attempt == self._client.limits.attempts:
                    raise
            time.sleep(random.uniform(0, 0.05 * 2**attempt))
            attempt += 1


class EndpointProbe:
    """Verifies once per folder and probe version that the endpoint honours conditional writes."""

    def __init__(self, folder: S3Folder) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._has_passed = False

    def require(self) -> None:
        """Probe the endpoint once per version and folder; raise `StoreError` if it ignores conditions."""
        with self._guard:
            if self._has_passed:
                return
            marker = json.dumps({"endpoint": self._folder.endpoint, "probe": PROBE_VERSION}).encode()
            marker_file = self._folder.get(MARKER_NAME)
            if marker_file is None or marker_file[0] != marker:
                ignored = self.ignored_condition()
                if ignored:
                    raise StoreError(
                        f"{self._folder.location('')}: the endpoint does not honour {ignored}, so that two runs "
                        "could overwrite each other's deployment state: it can never be an authoritative store. "
                        "Use another endpoint."
                    )
                self._folder.put(MARKER_NAME, marker)
            self._has_passed = True

    def ignored_condition(self) -> str | None:
        """Return the condition that the endpoint ignores, None if it honours all; delete the scratch objects."""
        scratch = f".delta-engine-probe-{uuid.uuid4().hex}"
        try:
            return find_ignored_condition(scratch, self._is_accepted, self._folder.get)
        except UncertainWriteError as error:
            # Only a scratch object is uncertain: the write that waits for the probe was not done.
            raise UnansweredError(str(error)) from error
        finally:
            with suppress(StoreError):
                for file in self._folder.beginning_with(scratch):
                    self._folder.delete(file.name)

    def _is_accepted(self, name: str, data: bytes, expected: str | None) -> bool:
        try:
            self._folder.put(name, data, condition_for(expected))
        except ConflictError:
            return False
        return True


def condition_for(expected: str | None) -> Mapping[str, str]:
    """Return the condition that an object's ETag is the expected one (None: that there is no object)."""
    return {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}


PROBE_VERSION: Final = 1
"""The version of the probe; endpoints are probed again after it is raised because the probe detects more."""

_RACERS: Final = 8
_ROUNDS: Final = 3

Write = Callable[[str, bytes, "str | None"], bool]
"""Writes a name's bytes if the ETag is the expected one (None: no object); returns whether it did."""

Read = Callable[[str], "tuple[bytes, str] | None"]
"""Returns a name's bytes and ETag."""


def find_ignored_condition(scratch: str, write: Write, read: Read) -> str | None:
    """Return the header that the endpoint ignores, None if it honours both; `scratch` prefixes all written objects.

    After a lost answer, `write` may report its own write as refused, so only a read afterwards counts.
    """
    name = f"{scratch}-alone"
    write(name, b"first", None)
    if write(name, b"created again", None) or not _holds(name, b"first", read):
        return "If-None-Match"
    _, etag = read(name) or (b"", "")
    write(name, b"second", etag)
    if write(name, b"stale", etag) or not _holds(name, b"second", read):
        return "If-Match"
    for number in range(_ROUNDS):
        name = f"{scratch}-race-{number}"
        if not _has_one_winner(name, None, write, read):
            return "If-None-Match of several writers at once"
        _, etag = read(name) or (b"", "")
        if not _has_one_winner(name, etag, write, read):
            return "If-Match of several writers at once"
    return None


def _holds(name: str, data: bytes, read: Read) -> bool:
    content = read(name)
    return content is not None and content[0] == data


def _has_one_winner(name: str, expected: str | None, write: Write, read: Read) -> bool:
    start = threading.Barrier(_RACERS)

    def race(number: int) -> bytes | None:
        start.wait()
        data = f"{expected} {number}".encode()
        return data if write(name, data, expected) else None

    with ThreadPoolExecutor(_RACERS) as threads:
        winners = [data for data in threads.map(race, range(_RACERS)) if data is not None]
    return len(winners) <= 1 and all(_holds(name, data, read) for data in winners)


class S3StateStore:
    """Keeps `<environment>.state.json`, and the versions in `<environment>.versions` next to it."""

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
        document = self._folder.get(self._document)
        return None if document is None else StoredDocument(data=document[0], token=document[1])

    def replace(
        self, data: bytes, identity: DocumentIdentity, expected: StoredDocument | None
    ) -> StoredDocument:
        """Write the document if its ETag is still the expected one; the metadata shows its identity and origin."""
        metadata = {
            "state-id": identity.state_id,
            "serial": str(identity.serial),
            "deployed-by": quote(identity.updated_by or "", safe="@ .:/+"),  # metadata is ASCII
            "deployed-at": identity.updated_at,
        }
        metadata = {key: value for key, value in metadata.items() if value}
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
        record = self._folder.get(self._name)
        if record is None:
            return None
        data, etag = record
        return decode_lock_record(data, where=self.location, token=etag), etag

    def replace(self, record: LockRecord, expected: str | None) -> str:
        """Write a record if the ETag is still the expected one; return its new ETag."""
        return self._folder.replace(self._name, encode_lock_record(record), expected)
