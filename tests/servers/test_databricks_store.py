"""The Databricks store: blobs through the real SDK on a fake of its API, heads and locks in SQLite.

`tests/integration/test_databricks_store.py` proves on real Delta what a commit must do for it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from delta_engine.backends.error_conditions import statement_error
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.config.state_backend import DatabricksState, StateBackend
from delta_engine.deployment.codec import encode_state
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.document import KEPT_WRITE_IDS
from delta_engine.deployment.errors import (
    ConflictError,
    CorruptStateError,
    StateMismatchError,
    StoreError,
    UnsavedStateError,
)
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.stores.databricks import DatabricksStateStore, DeltaLockRecords
from delta_engine.deployment.stores.files import FileJournals, compressed
from delta_engine.errors import StatementError
from delta_engine.orchestrate.deployments import open_report_files
from tests.builders.deployment import deployment_over, deployment_state
from tests.builders.worlds import Kill
from tests.cases.golden_cases import settings_for
from tests.cases.store_contract import (
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
from tests.fakes.files_api import FakeFilesApi, fake_files_api
from tests.fakes.warehouse_sql import SmallTables
from tests.fakes.workspace import FakeWorkspace, open_runner
from tests.integration.counter_increments import VOLUME, volume_files

HEADS, LOCKS = "`dev`.`ops`.`deployment_heads`", "`dev`.`ops`.`deployment_locks`"


@pytest.fixture
def api() -> Iterator[FakeFilesApi]:
    with fake_files_api() as running:
        yield running


@pytest.fixture
def tables() -> SmallTables:
    return SmallTables()


def store_over(runner: SqlRunner, api: FakeFilesApi, environment: str = "test") -> DatabricksStateStore:
    return DatabricksStateStore(
        runner, volume_files(api.host, environment), heads=HEADS, environment=environment
    )


@pytest.fixture
def here(tables: SmallTables, api: FakeFilesApi, tmp_path: Path) -> Deployment:
    return deployment_over(tmp_path, store=store_over(tables, api))


@pytest.fixture
def documents(here: Deployment) -> StateRepository:
    return here.repository


def restored_serial(deployment: Deployment, *, serial: int, state_id: str, is_version: bool = False) -> int:
    state = msgspec.structs.replace(deployment_state(serial=serial), state_id=state_id)
    return deployment.restore(state, lambda _note: None, force=False, is_version=is_version).state.serial


def test_it_keeps_the_contract(tables: SmallTables, api: FakeFilesApi) -> None:
    check_state_store(lambda: store_over(tables, api, "it's `test`"))
    check_state_store_race(lambda: store_over(tables, api, "race"))
    check_journal_store(lambda: FileJournals(volume_files(api.host, "it's `test`"), "journal"))
    check_lock_records(lambda: DeltaLockRecords(tables, LOCKS, "it's `test`"))


class SpyingRunner:
    """Keeps the verbs of statements; those that a test names are done or not, and give no answer."""

    def __init__(self, runner: SqlRunner) -> None:
        self.verbs: list[str] = []
        self.lost: dict[str, list[bool]] = {}
        self._runner = runner

    def run(self, sql: str) -> Sequence[Row]:
        verb = sql.split()[0]
        self.verbs.append(verb)
        if not self.lost.get(verb):
            return self._runner.run(sql)
        if self.lost[verb].pop():
            self._runner.run(sql)
        raise StatementError("the connection is gone", sql=sql, error_class=None, is_outcome_unknown=True)


def test_a_save_costs_one_statement_and_a_load_one(
    tables: SmallTables, api: FakeFilesApi, tmp_path: Path
) -> None:
    spying = SpyingRunner(tables)
    documents = deployment_over(tmp_path, store=store_over(spying, api)).repository
    base = documents.save(deployment_state(serial=0), None)
    assert spying.verbs == ["CREATE", "MERGE", "SELECT"]
    spying.verbs.clear()
    documents.save(base.state, base)
    assert spying.verbs == ["UPDATE"]
    spying.verbs.clear()
    assert documents.load() is not None
    assert spying.verbs == ["SELECT"]


@pytest.mark.parametrize("is_done", [True, False])
def test_a_lost_answer_of_the_head_is_found_by_reading_back(
    tables: SmallTables, api: FakeFilesApi, tmp_path: Path, is_done: bool
) -> None:
    spying = SpyingRunner(tables)
    documents = deployment_over(tmp_path, store=store_over(spying, api)).repository
    base = documents.save(deployment_state(serial=0), None)
    spying.lost = {"UPDATE": [is_done]}
    saved = documents.save(base.state, base)
    assert documents.load() == saved
    spying.lost = {"UPDATE": [False] * 9}
    with pytest.raises(UnsavedStateError):
        documents.save(saved.state, saved)


def test_a_save_through_a_warehouse_whose_answers_are_lost_is_found_again(workspace: FakeWorkspace) -> None:
    documents = DatabricksStateStore(
        open_runner(workspace), volume_files(workspace.host, "test"), heads=HEADS, environment="test"
    )
    first = documents.replace(document(1), identity(1), None)
    workspace.faults = {"ask": ["lost", "500", "429"]}
    second = documents.replace(document(2), identity(2), first)
    assert documents.read() == second
    with pytest.raises(ConflictError):
        documents.replace(document(3), identity(3), first)


def test_a_document_whose_head_is_gone_is_noticed(
    tables: SmallTables, api: FakeFilesApi, tmp_path: Path
) -> None:
    check_a_lost_document_is_noticed(
        lambda: store_over(tables, api), lambda: tables.run(f"DELETE FROM {HEADS} WHERE true"), tmp_path
    )


@pytest.mark.parametrize("left", [None, b"", b"garbage"])
def test_a_lost_document_is_restored(
    tables: SmallTables, api: FakeFilesApi, tmp_path: Path, left: bytes | None
) -> None:
    def lose() -> None:
        current = max(path for path in api.files if "/documents/" in path)
        del api.files[current]
        if left is not None:
            api.files[current] = left

    check_restore_of_a_lost_document(lambda: store_over(tables, api), lose, tmp_path)


@pytest.mark.parametrize("fault", ["502", "503", "lost"])
def test_faults_of_an_upload_are_ridden_out(
    documents: StateRepository, api: FakeFilesApi, fault: str
) -> None:
    base = documents.save(deployment_state(serial=0), None)
    api.faults = [fault]
    saved = documents.save(base.state, base)
    assert documents.load() == saved


@pytest.mark.parametrize(
    ("fault", "message"), [("empty", "did not arrive completely"), ("denied", "READ VOLUME and WRITE VOLUME")]
)
def test_an_upload_that_fails_moves_no_head(
    documents: StateRepository, api: FakeFilesApi, tmp_path: Path, fault: str, message: str
) -> None:
    base = documents.save(deployment_state(serial=0), None)
    api.faults = [fault]
    with pytest.raises(UnsavedStateError, match=message):
        documents.save(base.state, base)
    assert documents.load() == base
    assert (tmp_path / "errored-2.json").exists()


def test_a_first_upload_that_fails_leaves_no_document_without_a_head(
    documents: StateRepository, api: FakeFilesApi
) -> None:
    """Such a document looks as if the head were lost, and every later command is refused."""
    api.faults = ["", "empty"]  # the first upload finds that the folder is missing
    with pytest.raises(UnsavedStateError, match="did not arrive completely"):
        documents.save(deployment_state(serial=0), None)
    assert api.files == {}
    assert documents.load() is None


def test_a_first_save_that_is_killed_before_the_head_is_done_again(
    here: Deployment, tables: SmallTables, api: FakeFilesApi, tmp_path: Path
) -> None:
    """No record is lost with such a document, and the run had sent no statement."""

    class Killed:
        def run(self, sql: str) -> Sequence[Row]:
            if sql.startswith("MERGE"):
                raise Kill
            return tables.run(sql)

    for count in (1, 2):
        killed = deployment_over(tmp_path, store=store_over(Killed(), api))
        with pytest.raises(Kill), killed.locked("sync", lambda _note: None) as (_, recorder):
            recorder.begin(["table.dev.silver.orders"], {}, {}, plan_file=None)
        assert len(api.files) == count
        assert here.peek_replayed() is None
    with here.locked("sync", lambda _note: None) as (_, recorder):
        recorder.begin(["table.dev.silver.orders"], {}, {}, plan_file=None)
        first = recorder.save(is_forced=True)
    assert first is not None
    assert here.repository.load() == first
    assert first.state.serial == 4
    assert here.repository.load_version("3").write_id in first.state.recent_write_ids


@pytest.mark.parametrize("damage", [b"", b"garbage"])
def test_a_first_document_that_cannot_be_read_is_not_passed_over(
    here: Deployment, tables: SmallTables, api: FakeFilesApi, damage: bytes
) -> None:
    here.repository.save(deployment_state(serial=0), None)
    tables.run(f"DELETE FROM {HEADS} WHERE true")
    assert here.repository.load() is None
    (blob,) = api.files
    api.files[blob] = damage
    with pytest.raises(CorruptStateError, match="is gone, although its version 00000001-"):
        here.repository.load()


def test_a_missing_volume_is_named(documents: StateRepository, api: FakeFilesApi) -> None:
    api.volumes = ("/Volumes/other/",)
    with pytest.raises(UnsavedStateError, match="The volume must exist: the bundle declares it"):
        documents.save(deployment_state(serial=0), None)


def test_a_version_that_is_there_is_not_uploaded_again(tables: SmallTables, api: FakeFilesApi) -> None:
    """Another zlib compresses to other bytes: an existing version must not be compared with them."""
    path = f"{VOLUME}/test/documents/00000001-a.json.gz"
    api.files[path] = b"compressed elsewhere"
    store_over(tables, api).versions.keep("00000001-a", b"{}")
    assert api.files[path] == b"compressed elsewhere"
    assert "PUT" not in {method for method, _ in api.requests}


def test_a_document_that_does_not_match_its_head_is_refused(
    documents: StateRepository, api: FakeFilesApi
) -> None:
    documents.save(deployment_state(serial=0), None)
    (blob,) = api.files
    api.files[blob] += b"x"
    with pytest.raises(CorruptStateError, match="does not match the head's checksum"):
        documents.load()
    del api.files[blob]
    with pytest.raises(CorruptStateError, match="is gone"):
        documents.load()


def test_a_document_that_never_became_current_is_no_version(
    documents: StateRepository, api: FakeFilesApi
) -> None:
    base = documents.save(deployment_state(serial=0), None)
    saved = documents.save(base.state, base)
    api.files[f"{VOLUME}/test/documents/00000009-orphan.json.gz"] = b"x"
    assert [version.version_id for version in documents.versions()] == [base.version_id]
    assert documents.load_version(base.version_id) == base.state
    assert documents.load() == saved


def test_the_document_of_a_failed_save_is_no_version_where_another_one_has_its_serial(
    documents: StateRepository, api: FakeFilesApi
) -> None:
    """A run whose lock was taken over uploads its document beside the one that another run saves."""
    saved = [documents.save(deployment_state(serial=0), None)]
    for _ in range(2 * KEPT_WRITE_IDS + 5):
        saved.append(documents.save(saved[-1].state, saved[-1]))
    for serial in (1, 5, KEPT_WRITE_IDS + 2, len(saved) - 1, len(saved)):
        for write_id in ("!", "~"):  # one sorts before the other document, one after it
            lost = msgspec.structs.replace(saved[serial - 1].state, write_id=write_id, lineage="git:lost")
            version = f"{VOLUME}/test/documents/{lost.serial:08d}-{write_id}.json.gz"
            api.files[version] = compressed(encode_state(lost))
    listed = [version.version_id for version in documents.versions()]
    assert listed == [document.version_id for document in reversed(saved[:-1])]
    assert documents.load_version("5") == saved[4].state
    assert documents.load_version("5") != documents.load_version("00000005-~")


def test_a_damaged_current_document_hides_no_version_and_lists_none_of_a_failed_save(
    documents: StateRepository, api: FakeFilesApi
) -> None:
    first = documents.save(deployment_state(serial=0), None)
    second = documents.save(first.state, first)
    folder = f"{VOLUME}/test/documents"
    api.files[f"{folder}/00000002-~.json.gz"] = api.files[f"{folder}/{second.version_id}.json.gz"]
    api.files[f"{folder}/{second.version_id}.json.gz"] = b"damaged"
    assert [version.version_id for version in documents.versions()] == [first.version_id]
    with pytest.raises(StateMismatchError, match="there is no version '2'"):
        documents.load_version("2")


def test_versions_of_one_serial_are_all_kept_if_no_document_tells_which_was_current(
    documents: StateRepository, api: FakeFilesApi
) -> None:
    first = documents.save(deployment_state(serial=0), None)
    second = documents.save(first.state, first)
    third = documents.save(second.state, second)
    folder = f"{VOLUME}/test/documents"
    api.files[f"{folder}/00000001-~.json.gz"] = api.files[f"{folder}/{first.version_id}.json.gz"]
    for later in (second, third):
        api.files[f"{folder}/{later.version_id}.json.gz"] = b"damaged"
    listed = [version.version_id for version in documents.versions()]
    assert listed[-2:] == ["00000001-~", first.version_id]


def test_the_kept_documents_tell_what_is_lost_with_the_head(here: Deployment, tables: SmallTables) -> None:
    first = here.repository.save(deployment_state(serial=0), None)
    saved = here.repository.save(first.state, here.repository.save(first.state, first))
    tables.run("DELETE FROM `deployment_heads`")
    with pytest.raises(CorruptStateError, match=f"is gone, although its version {saved.version_id} is kept"):
        here.repository.load()
    listed = [version.version_id for version in here.repository.versions()]
    assert listed[0] == saved.version_id
    assert len(listed) == 3
    with pytest.raises(StateMismatchError, match="this environment's is"):
        restored_serial(here, serial=99, state_id="another life")
    with pytest.raises(StateMismatchError, match="saved again since: it is at serial 2"):
        restored_serial(here, serial=2, state_id=saved.state.state_id)
    assert restored_serial(here, serial=1, state_id=saved.state.state_id, is_version=True) == 4


def test_a_first_document_that_could_not_be_saved_is_restored(
    here: Deployment, tables: SmallTables, api: FakeFilesApi, tmp_path: Path
) -> None:
    class ReadOnly:
        def run(self, sql: str) -> Sequence[Row]:
            if not sql.startswith("SELECT"):
                raise statement_error("[SCHEMA_NOT_FOUND] no", sql=sql)
            return tables.run(sql)

    state = deployment_state(serial=0)
    with pytest.raises(UnsavedStateError):
        deployment_over(tmp_path, store=store_over(ReadOnly(), api)).repository.save(state, None)
    assert api.files == {}
    assert here.repository.load() is None
    assert restored_serial(here, serial=1, state_id=state.state_id) == 2


PAGE = "<p>Größe 表\r\n</p>".encode()


@pytest.mark.parametrize("faults", [[], ["503"], ["lost"]])
def test_a_report_is_written_and_replaced(api: FakeFilesApi, faults: list[str]) -> None:
    files = volume_files(api.host)
    files.write("prod.drift.html", b"old")
    api.faults = faults
    assert files.write("prod.drift.html", PAGE) == f"{VOLUME}/prod.drift.html"
    assert api.files == {f"{VOLUME}/prod.drift.html": PAGE}


def test_reports_are_no_documents_versions_or_journals(tables: SmallTables, api: FakeFilesApi) -> None:
    journals = FileJournals(volume_files(api.host, "prod"), "journal")
    check_reports(store_over(tables, api, "prod"), journals, volume_files(api.host))


def test_missing_rights_on_a_volume_are_named(api: FakeFilesApi) -> None:
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
