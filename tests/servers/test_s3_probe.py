"""Endpoints that do not honour conditional writes are found out before anything depends on them."""

import json
import threading

import pytest

from delta_engine.deployment.errors import StoreError, UnansweredError
from delta_engine.deployment.stores.s3 import (
    MARKER_NAME,
    S3Folder,
    S3LockRecords,
    S3StateStore,
    find_ignored_condition,
)
from tests.cases.store_contract import document, identity, lock_record
from tests.servers.fault_proxy import Fault
from tests.servers.places import PREFIX, Bucket, Server, new_bucket

MARKER_KEY = f"{PREFIX}/{MARKER_NAME}"


class MemoryServer:
    """An S3 server's conditional writes, and ways to get them wrong.

    Args:
        ignored: the conditions that are ignored: `create` or `replace`.
        is_racy: whether writers in a race all look before any of them writes.
        loses_answers: whether it reports every write that was done as refused, as after a hidden retry.
    """

    def __init__(
        self, *, ignored: str | None = None, is_racy: bool = False, loses_answers: bool = False
    ) -> None:
        self._objects: dict[str, tuple[bytes, str]] = {}
        self._ignored = ignored
        self._loses_answers = loses_answers
        self._is_racy = is_racy
        self._guard = threading.Lock()
        self._everybody_looked = threading.Barrier(8, timeout=10)

    def read(self, name: str) -> tuple[bytes, str] | None:
        return self._objects.get(name)

    def write(self, name: str, data: bytes, expected: str | None) -> bool:
        if self._is_racy and "race" in name:
            fits = self._fits(name, expected)
            self._everybody_looked.wait()
            return self._write(name, data, fits=fits)
        with self._guard:
            return self._write(name, data, fits=self._fits(name, expected))

    def _fits(self, name: str, expected: str | None) -> bool:
        stored = self._objects.get(name)
        if self._ignored == ("create" if expected is None else "replace"):
            return True
        return (stored and stored[1]) == expected

    def _write(self, name: str, data: bytes, *, fits: bool) -> bool:
        if fits:
            self._objects[name] = (data, f"etag of {data!r}")
        return fits and not self._loses_answers


@pytest.mark.parametrize(
    ("server", "ignored"),
    [
        (MemoryServer(), None),
        (MemoryServer(loses_answers=True), None),
        (MemoryServer(ignored="create"), "If-None-Match"),
        (MemoryServer(ignored="replace"), "If-Match"),
        (MemoryServer(is_racy=True), "If-None-Match of several writers at once"),
    ],
    ids=["honest", "loses answers", "ignores If-None-Match", "ignores If-Match", "looks, then writes"],
)
def test_the_probe_names_what_is_not_honoured(server: MemoryServer, ignored: str | None) -> None:
    assert find_ignored_condition("scratch", server.write, server.read) == ignored


def test_an_honest_endpoint_is_marked_and_not_probed_again(bucket: Bucket) -> None:
    first = bucket.proxied_folder()
    saved = S3StateStore(first, "prod").replace(document(1), identity(1), None)
    marker = json.loads(bucket.raw.get_object(Bucket=bucket.name, Key=MARKER_KEY)["Body"].read())
    assert marker == {"endpoint": bucket.proxy.endpoint, "probe": 1}
    assert bucket.keys() == [MARKER_KEY, f"{PREFIX}/prod.state.json"]
    S3LockRecords(first, "prod").replace(lock_record(), None)
    bucket.proxy.requests.clear()
    S3StateStore(bucket.proxied_folder(), "prod").replace(document(2), identity(2), saved)
    document_path = f"/{bucket.name}/{PREFIX}/prod.state.json"
    assert bucket.proxy.requests == [f"GET /{bucket.name}/{MARKER_KEY}", f"PUT {document_path}"]


@pytest.mark.parametrize("content", [b"", b"{}", b'{"endpoint": "http://elsewhere", "probe": 1}'])
def test_a_marker_of_another_endpoint_proves_nothing(moto: Server, content: bytes) -> None:
    with new_bucket(moto) as bucket:
        bucket.raw.put_object(Bucket=bucket.name, Key=MARKER_KEY, Body=content)
        S3LockRecords(bucket.proxied_folder(), "prod").replace(lock_record(), None)
        assert any("probe" in request for request in bucket.proxy.requests)


def test_an_endpoint_that_ignores_conditions_is_refused(moto: Server) -> None:
    with new_bucket(moto) as bucket:
        bucket.proxy.spoil(Fault.NO_CONDITIONS, "PUT")
        folder = bucket.proxied_folder()
        for _ in range(2):
            with pytest.raises(StoreError, match="does not honour If-None-Match") as caught:
                S3StateStore(folder, "prod").replace(document(1), identity(1), None)
            assert type(caught.value) is StoreError
            assert "authoritative" in str(caught.value)
        with pytest.raises(StoreError, match="does not honour"):
            S3LockRecords(folder, "prod").replace(lock_record(), None)
        assert bucket.keys() == []


def test_a_marker_seen_through_an_honest_endpoint_does_not_prove_another(moto: Server) -> None:
    with new_bucket(moto) as bucket:
        store = S3StateStore(bucket.folder(), "prod")
        saved = store.replace(document(1), identity(1), None)
        bucket.proxy.spoil(Fault.NO_CONDITIONS, "PUT")
        with pytest.raises(StoreError, match="does not honour"):
            S3StateStore(bucket.proxied_folder(), "prod").replace(document(2), identity(2), saved)
        assert store.read() == saved


def test_a_lost_answer_to_the_probe_convicts_nobody(bucket: Bucket) -> None:
    bucket.proxy.spoil(Fault.LOST_ANSWER, "PUT", "probe", times=2)
    S3StateStore(bucket.proxied_folder(), "prod").replace(document(1), identity(1), None)
    assert S3StateStore(bucket.folder(), "prod").read() is not None


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.BROKEN, Fault.NOT_IMPLEMENTED])
def test_a_probe_that_fails_has_written_nothing_that_counts(bucket: Bucket, fault: Fault) -> None:
    bucket.proxy.spoil(fault, "PUT")
    with pytest.raises(StoreError) as caught:
        S3StateStore(bucket.proxied_folder(), "prod").replace(document(1), identity(1), None)
    assert type(caught.value) is (StoreError if fault is Fault.NOT_IMPLEMENTED else UnansweredError)
    assert bucket.keys() == []


def test_an_empty_prefix_is_the_bucket_itself(bucket: Bucket) -> None:
    for prefix in ("", "/a/b/"):
        S3LockRecords(S3Folder(bucket.client, bucket.name, prefix), "prod").replace(lock_record(), None)
    assert bucket.keys() == [MARKER_NAME, f"a/b/{MARKER_NAME}", "a/b/prod.lock.json", "prod.lock.json"]
    assert S3LockRecords(S3Folder(bucket.client, bucket.name, "a/b"), "prod").read() is not None
