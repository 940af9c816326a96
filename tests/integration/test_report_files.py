"""Reports in a volume, through the real SDK on a fake of its API."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.config.state_backend import DatabricksState, StateBackend
from delta_engine.deployment.errors import StoreError
from delta_engine.deployment.stores.databricks import (
    DatabricksJournalStore,
    DatabricksStateStore,
    VolumeReportFiles,
)
from delta_engine.orchestrate.deployments import open_report_files
from tests.golden_cases import settings_for
from tests.integration.counter_increments import VOLUME, volume_files
from tests.integration.fake_files_api import FakeFilesApi, fake_files_api
from tests.recording_sql_runner import RecordingSqlRunner

pytestmark = pytest.mark.integration

PAGE = "<p>Größe 表\r\n</p>".encode()


@pytest.fixture
def api() -> Iterator[FakeFilesApi]:
    with fake_files_api() as running:
        yield running


def test_a_report_is_written_and_replaced(api: FakeFilesApi) -> None:
    files = VolumeReportFiles(volume_files(api.host), volume=VOLUME)
    files.write("prod.drift.html", b"old")
    assert files.write("prod.drift.html", PAGE) == f"{VOLUME}/prod.drift.html"
    assert api.files == {f"{VOLUME}/prod.drift.html": PAGE}


@pytest.mark.parametrize("fault", ["503", "lost"])
def test_faults_of_an_upload_are_ridden_out(api: FakeFilesApi, fault: str) -> None:
    files = VolumeReportFiles(volume_files(api.host), volume=VOLUME)
    files.write("prod.drift.html", b"old")
    api.faults = [fault]
    files.write("prod.drift.html", PAGE)
    assert api.files == {f"{VOLUME}/prod.drift.html": PAGE}


def test_reports_are_no_documents_versions_or_journals(api: FakeFilesApi) -> None:
    files = volume_files(api.host)
    for environment in ("prod", "prod.drift.html"):
        VolumeReportFiles(files, volume=VOLUME).write(f"{environment}.drift.json", PAGE)
    store = DatabricksStateStore(
        RecordingSqlRunner(), files, heads="heads", volume=VOLUME, environment="prod"
    )
    assert store.read() is None
    store.keep_version("00000000-a", b"{}")
    assert [version.version_id for version in store.versions()] == ["00000000-a"]
    assert DatabricksJournalStore(files, volume=VOLUME, environment="prod").read() == {}


def test_missing_rights_are_named(api: FakeFilesApi) -> None:
    api.faults = ["denied"]
    with pytest.raises(StoreError, match="WRITE VOLUME"):
        VolumeReportFiles(volume_files(api.host), volume=VOLUME).write("prod.drift.html", PAGE)


def test_reports_of_a_state_on_databricks_go_to_its_volume(
    api: FakeFilesApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABRICKS_HOST", api.host)
    monkeypatch.setenv("DATABRICKS_TOKEN", "not a real one")
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "none"))
    place = DatabricksState(catalog="dev", schema="delta_engine", volume="deployment_state")
    settings = replace(settings_for(tmp_path, yaml="x.yml"), state_backend=StateBackend(place=place))
    assert open_report_files(settings).write("test.drift.json", b"{}") == f"{VOLUME}/test.drift.json"
    assert api.files[f"{VOLUME}/test.drift.json"] == b"{}"
