"""A folder of an S3 bucket, in which nothing is written on a condition before its endpoint has been probed."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

from delta_engine.deployment.aws.clients import ListedObject, S3Client, S3Object
from delta_engine.deployment.aws.s3_probe import PROBE_VERSION, find_ignored_condition
from delta_engine.deployment.errors import ConflictError, StoreError, UnansweredError, UncertainWriteError

JSON_TYPE: Final = "application/json"
MARKER_NAME: Final = ".delta-engine-endpoint.json"

_AT_ONCE: Final = 8

Item = TypeVar("Item")
Result = TypeVar("Result")


class S3Folder:
    """The objects of a bucket under a prefix. Threads may share a folder, and so do the store and the lock.

    Args:
        client: the client.
        bucket: the bucket's name.
        prefix: the folder's name; empty for the bucket itself.

    All methods raise as those of `S3Client`.
    """

    def __init__(self, client: S3Client, bucket: str, prefix: str) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix.strip("/")
        self._probing = threading.Lock()
        self._was_probed = False

    def location(self, name: str) -> str:
        """Return where an object is, for messages."""
        return f"s3://{self._bucket}/{self._key(name)} at {self._client.endpoint}"

    def get(self, name: str) -> S3Object | None:
        """Return an object; None if there is none of that name."""
        return self._client.get(self._bucket, self._key(name))

    def get_all(self, names: Iterable[str]) -> Sequence[S3Object | None]:
        """Return several objects, in the order of their names."""
        return _at_once(self.get, names)

    def list_objects(self, beginning: str) -> Sequence[ListedObject]:
        """Return the objects whose names begin so; their keys come without the prefix."""
        skipped = len(self._key(""))
        return [
            ListedObject(found.key[skipped:], found.size, found.modified_at)
            for found in self._client.list_objects(self._bucket, self._key(beginning))
        ]

    def put(self, name: str, data: bytes, *, content_type: str = JSON_TYPE) -> None:
        """Write an object, whatever is there."""
        self._client.put(self._bucket, self._key(name), data, content_type=content_type)

    def replace(
        self,
        name: str,
        data: bytes,
        expected: str | None,
        *,
        content_type: str = JSON_TYPE,
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        """Write an object if its ETag is still the expected one (None: if there is no object).

        Returns:
            Its new ETag.

        Raises:
            StoreError: also where the endpoint does not honour conditions.
        """
        with self._probing:
            if not self._was_probed:
                self._probe()
                self._was_probed = True
        return self._replace(name, data, expected, content_type=content_type, metadata=metadata)

    def ignored_condition(self) -> str | None:
        """Return the condition that the endpoint does not honour; None if it honours all. Scratch objects are deleted.

        Raises:
            UnansweredError: the endpoint gave no usable answer.
        """
        scratch = f".delta-engine-probe-{uuid.uuid4().hex}"
        try:
            return find_ignored_condition(scratch, self._is_accepted, self._read)
        except UncertainWriteError as error:
            # Of a scratch object: the write that waits for the probe was certainly not done.
            raise UnansweredError(str(error)) from error
        finally:
            with suppress(StoreError):
                self.delete_all(found.key for found in self.list_objects(scratch))

    def delete_all(self, names: Iterable[str]) -> None:
        """Delete objects; no error for those that are not there."""
        _at_once(lambda name: self._client.delete(self._bucket, self._key(name)), names)

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _replace(
        self,
        name: str,
        data: bytes,
        expected: str | None,
        *,
        content_type: str = JSON_TYPE,
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        return self._client.replace(
            self._bucket,
            self._key(name),
            data,
            expected=expected,
            content_type=content_type,
            metadata=metadata or {},
        )

    def _probe(self) -> None:
        """Probe the endpoint, unless anybody's run of this version has done so for this folder."""
        marker = json.dumps({"endpoint": self._client.endpoint, "probe": PROBE_VERSION}).encode()
        found = self.get(MARKER_NAME)
        if found is not None and found.data == marker:
            return
        ignored = self.ignored_condition()
        if ignored:
            raise StoreError(
                f"{self.location('')}: the endpoint does not honour {ignored}, so that two runs could overwrite "
                "each other's deployment state: it can never be an authoritative store. Use another endpoint."
            )
        self.put(MARKER_NAME, marker)

    def _is_accepted(self, name: str, data: bytes, expected: str | None) -> bool:
        try:
            self._replace(name, data, expected)
        except ConflictError:
            return False
        return True

    def _read(self, name: str) -> tuple[bytes, str] | None:
        found = self.get(name)
        return None if found is None else (found.data, found.etag)


def _at_once(work: Callable[[Item], Result], items: Iterable[Item]) -> Sequence[Result]:
    """Do the same for many: a journal has an object per table, and each takes a round trip."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(work, items))
