"""Reports beside a local deployment state."""

from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.config.state_backend import StateBackend
from delta_engine.deployment.errors import StoreError
from delta_engine.deployment.local_files import remove_stray_files
from delta_engine.deployment.stores.local import LocalFiles, LocalJournalStore, LocalStateStore
from delta_engine.orchestrate.deployments import open_report_files
from tests.cases.golden_cases import settings_for
from tests.cases.store_contract import check_reports

PAGE = "<p>Größe 表\r\n</p>".encode()


def test_a_report_is_written_and_replaced_whole(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there yet"
    files = LocalFiles(folder)
    assert files.write("prod.drift.html", b"x" * 100_000) == str(folder / "prod.drift.html")
    assert files.write("prod.drift.html", PAGE) == str(folder / "prod.drift.html")
    assert (folder / "prod.drift.html").read_bytes() == PAGE
    assert [path.name for path in folder.iterdir()] == ["prod.drift.html"]


def test_reports_are_no_documents_versions_or_journals(tmp_path: Path) -> None:
    store, journals = LocalStateStore(tmp_path, "prod"), LocalJournalStore(tmp_path, "prod")
    check_reports(store, journals, LocalFiles(tmp_path))
    remove_stray_files(tmp_path / "prod.state.json")
    assert (tmp_path / "prod.drift.json").read_bytes() == b"{}"


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(StoreError, match=r"prod\.drift\.html cannot be written"):
        LocalFiles(tmp_path / "state").write("prod.drift.html", PAGE)


def test_reports_of_a_local_state_lie_in_its_folder(tmp_path: Path) -> None:
    state = StateBackend(place=tmp_path / "states")
    files = open_report_files(replace(settings_for(tmp_path, yaml="x.yml"), state_backend=state))
    assert files.write("test.drift.json", b"{}") == str(tmp_path / "states" / "test.drift.json")
