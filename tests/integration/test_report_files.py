"""Reports in a volume, through the real SDK on a fake of its API."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.config.state_backend import DatabricksState, StateBackend
from delta_engine.deployment.errors import StoreError
from delta_engine.deployment.stores.databricks import DatabricksStateStore
from delta_engine.deployment.stores.files import FileJournals
from delta_engine.orchestrate.deployments import open_report_files
from tests.cases.golden_cases import settings_for
from tests.cases.store_contract import check_reports
from tests.fakes.files_api import FakeFilesApi, fake_files_api
from tests.fakes.warehouse_sql import SmallTables
from tests.integration.counter_increments import VOLUME, volume_files

PAGE = "<p>Größe 表\r\n</p>".encode()


@pytest.fixture
def api() -> Iterator[FakeFilesApi]:
    with fake_files_api() as running:
        yield running


def test_a_report_is_written_and_replaced(api: FakeFilesApi) -> None:
    files = volume_files(api.host)
    files.write("prod.drift.html", b"old")
    assert files.write("prod.drift.html", PAGE) == f"{VOLUME}/prod.drift.html"
    assert api.files == {f"{VOLUME}/prod.drift.html": PAGE}


@pytest.mark.parametrize("fault", ["503", "lost"])
def test_faults_of_an_upload_are_ridden_out(api: FakeFilesApi, fault: str) -> None:
    files = volume_files(api.host)
    files.write("prod.drift.html", b"old")
    api.faults = [fault]
    files.write("prod.drift.html", PAGE)
    assert api.files == {f"{VOLUME}/prod.drift.html": PAGE}


def test_reports_are_no_documents_versions_or_journals(api: FakeFilesApi) -> None:
    files = volume_files(api.host, "prod")
    store = DatabricksStateStore(
        SmallTables(), files, heads="`dev`.`ops`.`deployment_heads`", environment="prod"
    )
    check_reports(store, FileJournals(files, "journal"), volume_files(api.host))


def test_missing_rights_are_named(api: FakeFilesApi) -> None:
    api.faults = ["denied"]
    with pytest.raises(StoreError, match="WRITE VOLUME"):
        volume_files(api.host).write("prod.drift.html", PAGE)


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
