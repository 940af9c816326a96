"""Reports beside a deployment state in S3, on every S3 server there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.config.state_backend import S3State, StateBackend, StateCache
from delta_engine.deployment.errors import StoreError, UncertainWriteError
from delta_engine.deployment.stores.s3 import S3StateStore, s3_journals
from delta_engine.orchestrate.deployments import open_report_files
from tests.cases.golden_cases import settings_for
from tests.cases.store_contract import check_reports
from tests.servers.places import PREFIX, REGION, Bucket, Server, new_bucket

PAGE = "<p>Größe 表\r\n</p>".encode()


@pytest.fixture
def bucket(s3_server: Server) -> Iterator[Bucket]:
    with new_bucket(s3_server) as made:
        made.prove(s3_server.endpoint)
        yield made


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
    found = bucket.raw.get_object(Bucket=bucket.name, Key=f"{PREFIX}/{name}")
    assert found["Body"].read() == PAGE
    assert found["ContentType"] == content_type


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
