"""The S3 stores and the S3 lock's record, on every S3 server there is."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from delta_engine.config.state_backend import S3State, StateBackend, StateCache
from delta_engine.deployment.errors import ConflictError, CorruptStateError, StoreError, UncertainWriteError
from delta_engine.deployment.stores.s3 import S3LockRecords, S3StateStore, s3_journals
from delta_engine.orchestrate.deployments import open_report_files
from tests.builders.deployment import NOON, deployment_state, repository_over
from tests.cases.golden_cases import settings_for
from tests.cases.store_contract import (
    STATE_ID,
    check_a_lost_document_is_noticed,
    check_journal_store,
    check_lock_records,
    check_reports,
    check_restore_of_a_lost_document,
    check_state_store,
    check_state_store_race,
    document,
    identity,
)
from tests.servers.places import PREFIX, REGION, Bucket, Server, new_bucket

DOCUMENT_KEY = f"{PREFIX}/prod.state.json"


@pytest.fixture
def bucket(s3_server: Server) -> Iterator[Bucket]:
    """Return a new bucket, of an endpoint that was probed before."""
    with new_bucket(s3_server) as made:
        made.prove(s3_server.endpoint)
        yield made


def check_contract(bucket: Bucket) -> None:
    check_state_store(lambda: S3StateStore(bucket.folder(), "prod"))
    check_state_store_race(lambda: S3StateStore(bucket.folder(), "race"))
    check_journal_store(lambda: s3_journals(bucket.folder(), "prod"))
    check_lock_records(lambda: S3LockRecords(bucket.folder(), "prod"))


def test_the_stores_keep_their_contract(bucket: Bucket) -> None:
    check_contract(bucket)


def test_a_bucket_that_keeps_versions_itself_makes_no_difference(s3_server: Server) -> None:
    with new_bucket(s3_server, is_versioned=True) as bucket:
        bucket.prove(s3_server.endpoint)
        check_contract(bucket)


def test_a_damaged_document_is_restored(bucket: Bucket, tmp_path: Path) -> None:
    check_restore_of_a_lost_document(
        lambda: S3StateStore(bucket.folder(), "prod"),
        lambda: bucket.raw.put_object(Bucket=bucket.name, Key=DOCUMENT_KEY, Body=b"{"),
        tmp_path,
    )


def test_a_document_that_is_gone_is_noticed(bucket: Bucket, tmp_path: Path) -> None:
    check_a_lost_document_is_noticed(
        lambda: S3StateStore(bucket.folder(), "prod"),
        lambda: bucket.raw.delete_object(Bucket=bucket.name, Key=DOCUMENT_KEY),
        tmp_path,
    )


def test_objects_are_where_people_look_for_them(bucket: Bucket) -> None:
    folder = bucket.folder()
    store = S3StateStore(folder, "prod")
    saved = store.replace(document(1), identity(1), None)
    store.versions.keep(identity(1).version_id, saved.data)
    s3_journals(folder, "prod").append("run-1", 7, b"{}")
    assert bucket.keys() == [
        f"{PREFIX}/.delta-engine-endpoint.json",
        f"{PREFIX}/prod.journal/run-1/000007.json",
        DOCUMENT_KEY,
        f"{PREFIX}/prod.versions/00000001-write1.json.gz",
    ]
    head = bucket.raw.head_object(Bucket=bucket.name, Key=DOCUMENT_KEY)
    assert head["ContentType"] == "application/json"
    assert head["Metadata"] == {"state-id": STATE_ID, "serial": "1"}
    assert store.location == f"s3://{bucket.name}/{DOCUMENT_KEY} at {bucket.server.endpoint}"


def test_an_object_says_who_saved_it_and_when(bucket: Bucket, tmp_path: Path) -> None:
    state = msgspec.structs.replace(deployment_state(serial=0), updated_by="Ünal@example.com")
    repository_over(S3StateStore(bucket.folder(), "prod"), tmp_path).save(state, None)
    metadata = bucket.raw.head_object(Bucket=bucket.name, Key=DOCUMENT_KEY)["Metadata"]
    assert metadata["deployed-by"] == "%C3%9Cnal@example.com"
    assert metadata["deployed-at"] == NOON.isoformat()


def test_environments_do_not_see_each_other(bucket: Bucket) -> None:
    folder = bucket.folder()
    prod, prod2 = S3StateStore(folder, "prod"), S3StateStore(folder, "prod2")
    prod.replace(document(1), identity(1), None)
    prod.versions.keep(identity(1).version_id, document(1))
    s3_journals(folder, "prod").append("run-1", 0, b"{}")
    assert prod2.read() is None
    assert prod2.versions.list() == []
    assert s3_journals(folder, "prod2").read() == {}


def test_reading_writes_nothing(bucket: Bucket) -> None:
    folder = bucket.proxied_folder()
    store = S3StateStore(folder, "prod")
    assert store.read() is None
    assert store.versions.list() == []
    assert s3_journals(folder, "prod").read() == {}
    assert S3LockRecords(folder, "prod").read() is None
    assert {request.split(" ")[0] for request in bucket.proxy.requests} == {"GET"}


def test_a_fresh_write_id_makes_the_same_content_another_document(bucket: Bucket) -> None:
    """Identical bytes have the identical ETag, so that a late writer could not see what happened since."""
    store = S3StateStore(bucket.folder(), "prod")
    first = store.replace(document(1, text="a"), identity(1), None)
    other = store.replace(document(2, text="b"), identity(2), first)
    again = store.replace(document(1, text="a", write_id="new"), identity(3), other)
    assert again.token != first.token
    with pytest.raises(ConflictError):
        store.replace(document(2, write_id="late"), identity(2, "late"), first)
    put_back = store.replace(first.data, identity(1), again)
    assert put_back.token == first.token


def test_a_document_put_there_by_hand_is_read_as_it_is(bucket: Bucket) -> None:
    store = S3StateStore(bucket.folder(), "prod")
    saved = store.replace(document(1), identity(1), None)
    bucket.raw.put_object(Bucket=bucket.name, Key=DOCUMENT_KEY, Body=b"{}")
    stored = store.read()
    assert stored is not None
    assert stored.data == b"{}"
    with pytest.raises(ConflictError):
        store.replace(document(2), identity(2), saved)


def test_a_document_that_was_deleted_is_a_conflict(bucket: Bucket) -> None:
    store = S3StateStore(bucket.folder(), "prod")
    saved = store.replace(document(1), identity(1), None)
    bucket.raw.delete_object(Bucket=bucket.name, Key=DOCUMENT_KEY)
    with pytest.raises(ConflictError):
        store.replace(document(2), identity(2), saved)
    assert store.read() is None


def test_a_damaged_lock_record_is_refused(bucket: Bucket) -> None:
    bucket.raw.put_object(Bucket=bucket.name, Key=f"{PREFIX}/prod.lock.json", Body=b"{}")
    with pytest.raises(CorruptStateError, match="state unlock"):
        S3LockRecords(bucket.folder(), "prod").read()


def test_more_objects_than_a_page_holds_are_all_found(bucket: Bucket) -> None:
    folder = bucket.folder()
    ids = [identity(serial).version_id for serial in range(1005)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: folder.write(f"prod.versions/{name}.json.gz", b""), ids))
    kept = S3StateStore(folder, "prod").versions.list()
    assert [version.version_id for version in kept] == ids[::-1]


PAGE = "<p>Größe 表\r\n</p>".encode()


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("prod.drift.html", "text/html; charset=utf-8"),
        ("prod.drift.json", "application/json"),
        ("prod.drift.txt", "application/octet-stream"),
    ],
)
def test_a_report_is_replaced_and_says_what_it_is(bucket: Bucket, name: str, content_type: str) -> None:
    files = bucket.folder()
    files.write(name, b"old")
    assert (
        files.write(name, PAGE)
        == f"s3://{bucket.name}/{PREFIX}/{name} at http://127.0.0.1:{bucket.server.port}"
    )
    report = bucket.raw.get_object(Bucket=bucket.name, Key=f"{PREFIX}/{name}")
    assert report["Body"].read() == PAGE
    assert report["ContentType"] == content_type


def test_reports_are_no_documents_versions_or_journals(bucket: Bucket) -> None:
    folder = bucket.folder()
    check_reports(S3StateStore(folder, "prod"), s3_journals(folder, "prod"), folder)


def test_a_report_takes_one_request_and_no_probe(s3_server: Server) -> None:
    with new_bucket(s3_server) as bucket:
        bucket.proxied_folder().write("prod.drift.html", PAGE)
        assert [request.split(" ")[0] for request in bucket.proxy.requests] == ["PUT"]
        assert bucket.keys() == [f"{PREFIX}/prod.drift.html"]


def test_a_bucket_that_is_not_there_is_named(bucket: Bucket, tmp_path: Path) -> None:
    place = S3State(bucket="no-such-bucket", prefix="", region=REGION, endpoint_url=bucket.server.endpoint)
    settings = replace(settings_for(tmp_path, yaml="x.yml"), state_backend=StateBackend(place=place))
    with pytest.raises(StoreError, match="no-such-bucket") as error:
        open_report_files(settings).write("prod.drift.html", PAGE)
    assert not isinstance(error.value, UncertainWriteError)


def test_reports_of_a_cached_state_go_to_the_bucket(bucket: Bucket, tmp_path: Path) -> None:
    place = S3State(bucket=bucket.name, prefix=PREFIX, region=REGION, endpoint_url=bucket.server.endpoint)
    cache = StateCache(path=tmp_path / "cache", max_age_seconds=300)
    state = StateBackend(place=place, cache=cache)
    settings = replace(settings_for(tmp_path, yaml="x.yml"), state_backend=state)
    open_report_files(settings).write("test.drift.json", b"{}")
    assert bucket.keys() == [f"{PREFIX}/.delta-engine-endpoint.json", f"{PREFIX}/test.drift.json"]
    assert not (tmp_path / "cache").exists()
