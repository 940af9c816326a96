"""The repository: every save is a compare-and-swap, resolved by reading back."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from delta_engine.deployment.codec import encode_state
from delta_engine.deployment.document import (
    KEPT_WRITE_IDS,
)
from delta_engine.deployment.errors import (
    ConflictError,
    CorruptStateError,
    StaleStateError,
    StateMismatchError,
    StoreError,
    UncertainWriteError,
    UnsavedStateError,
)
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.stored import DocumentIdentity, StoredDocument
from delta_engine.deployment.stores.files import FileJournals, FileVersions
from delta_engine.deployment.stores.local import (
    KEPT_VERSIONS,
    HybridStateStore,
    LocalJournalStore,
    LocalStateStore,
)
from delta_engine.deployment.stores.memory import MemoryFiles, MemoryStateStore, memory_journals
from tests.builders.deployment import NOON, deployment_over, deployment_state, repository_over
from tests.builders.models import WORKED_MODEL
from tests.cases.store_contract import (
    check_a_lost_document_is_noticed,
    check_journal_store,
    check_restore_of_a_lost_document,
    check_state_store,
)

WHOLE = gzip.compress(b"{}" * 100, mtime=0)  # the same bytes in every worker


class FaultyStore(MemoryStateStore):
    """A store whose next writes end as they are told to, before or after they are done."""

    def __init__(self, *faults: tuple[bool, Exception | None]) -> None:
        super().__init__()
        self.faults = list(faults)
        self.on_fault: Callable[[], object] = lambda: None

    def replace(
        self, data: bytes, identity: DocumentIdentity, expected: StoredDocument | None
    ) -> StoredDocument:
        if not self.faults:
            return super().replace(data, identity, expected)
        is_done, error = self.faults.pop(0)
        if is_done:
            super().replace(data, identity, expected)
        self.on_fault()
        if error:
            raise error
        return super().replace(data, identity, expected)


def test_the_first_save_and_the_next(tmp_path: Path) -> None:
    store = MemoryStateStore()
    repository = repository_over(store, tmp_path, write_ids=["a", "b", "c"])
    assert repository.load() is None
    first = repository.save(deployment_state(serial=0), None)
    assert (first.state.serial, first.state.write_id, first.state.recent_write_ids) == (1, "a", ())
    second = repository.save(first.state, first)
    assert (second.state.serial, second.state.write_id, second.state.recent_write_ids) == (2, "b", ("a",))
    assert repository.load() == second
    assert [version.version_id for version in repository.versions()] == ["00000001-a"]
    assert repository.load_version("00000001-a") == first.state
    assert repository.load_version("1") == first.state
    assert repository.load_version("2") == second.state
    for absent in ("3", "²"):
        with pytest.raises(StateMismatchError, match=f"there is no version '{absent}'"):
            repository.load_version(absent)


def test_write_ids_are_remembered_for_a_while(tmp_path: Path) -> None:
    repository = repository_over(MemoryStateStore(), tmp_path, write_ids=map(str, range(100)))
    saved = repository.save(deployment_state(serial=0), None)
    for _ in range(40):
        saved = repository.save(saved.state, saved)
    assert saved.state.recent_write_ids == tuple(str(n) for n in range(39, 39 - KEPT_WRITE_IDS, -1))


def test_a_save_over_somebody_elses_is_refused(tmp_path: Path) -> None:
    store = MemoryStateStore()
    ours, theirs = (repository_over(store, tmp_path) for _ in range(2))
    base = ours.save(deployment_state(serial=0), None)
    saved = theirs.save(base.state, base)
    with pytest.raises(StaleStateError, match="it is now at serial 2") as caught:
        ours.save(base.state, base)
    assert "Run again" in str(caught.value)
    assert ours.load() == saved
    with pytest.raises(StaleStateError):
        ours.save(base.state, None)


@pytest.mark.parametrize(
    "error", [ConflictError("refused by a hidden retry"), UncertainWriteError("no answer")]
)
def test_a_lost_answer_is_found_by_reading_back(tmp_path: Path, error: StoreError) -> None:
    store = FaultyStore((True, error))
    saved = repository_over(store, tmp_path).save(deployment_state(serial=0), None)
    assert saved.state.serial == 1
    assert repository_over(store, tmp_path).save(saved.state, saved).state.serial == 2


def test_a_lost_answer_is_found_after_others_saved_on_top(tmp_path: Path) -> None:
    store = FaultyStore()
    ours, theirs = (repository_over(store, tmp_path) for _ in range(2))
    base = ours.save(deployment_state(serial=0), None)
    store.faults = [(True, UncertainWriteError("no answer"))]

    def save_on_top() -> None:
        loaded = theirs.load()
        assert loaded is not None
        theirs.save(loaded.state, loaded)

    store.on_fault = save_on_top
    saved = ours.save(base.state, base)
    assert saved.state.serial == 2
    loaded = ours.load()
    assert loaded is not None
    assert loaded.state.serial == 3
    with pytest.raises(StaleStateError):  # what was saved is not the current document any more
        ours.save(saved.state, saved)


def test_a_write_that_was_not_done_is_done_again(tmp_path: Path) -> None:
    store = FaultyStore((False, UncertainWriteError("x")), (False, ConflictError("a passing conflict")))
    assert repository_over(store, tmp_path).save(deployment_state(serial=0), None).state.serial == 1


@pytest.mark.parametrize(
    "faults", [[(False, UncertainWriteError("down"))] * 3, [(False, StoreError("no such bucket"))]]
)
def test_what_cannot_be_saved_is_kept_in_a_file(tmp_path: Path, faults: list[tuple[bool, Exception]]) -> None:
    store = FaultyStore()
    repository = repository_over(store, tmp_path / "not there yet")
    base = repository.save(deployment_state(WORKED_MODEL, serial=0), None)
    store.faults = list(faults)
    with pytest.raises(UnsavedStateError) as caught:
        repository.save(base.state, base)
    path = tmp_path / "not there yet" / "errored-2.json"
    assert f"state restore '{path}'" in str(caught.value)
    errored = repository.decode(path.read_bytes(), where=str(path))
    assert errored.resources == base.state.resources
    assert repository.load() == base


def test_a_save_that_can_be_kept_nowhere_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    monkeypatch.setattr("delta_engine.deployment.repository.gettempdir", lambda: str(blocked))
    with pytest.raises(UnsavedStateError, match="nor written to"):
        repository_over(FaultyStore((False, StoreError("down"))), blocked).save(
            deployment_state(serial=0), None
        )


def test_documents_of_other_environments_are_refused(tmp_path: Path) -> None:
    store = MemoryStateStore()
    repository_over(store, tmp_path).save(deployment_state(serial=0), None)
    other = StateRepository(store, "prod", errored_dir=tmp_path)
    with pytest.raises(StateMismatchError, match="of the environment 'test', not of 'prod'"):
        other.load()


def test_an_unreadable_document_is_replaced_with_a_backup(tmp_path: Path) -> None:
    store = LocalStateStore(tmp_path, "test")
    (tmp_path / "test.state.json").write_bytes(b'{"version": 1')
    repository = repository_over(store, tmp_path)
    with pytest.raises(CorruptStateError):
        repository.load()
    deployment = deployment_over(tmp_path, store=store)
    saved = deployment.restore(deployment_state(), lambda _note: None, force=False, is_version=False)
    assert repository.load() == saved
    assert saved.state.serial == 8
    (backup,) = tmp_path.glob("test.state.unreadable-*.backup.json")
    assert backup.read_bytes() == b'{"version": 1'
    assert repository.versions() == []


@pytest.mark.parametrize("name", ["v0-first-release", "v1-adopted-and-governed"])
def test_an_old_format_is_backed_up_before_it_is_replaced(tmp_path: Path, name: str) -> None:
    old = (Path(__file__).parent / "documents" / f"{name}.in.json").read_bytes()
    (tmp_path / "test.state.json").write_bytes(old)
    repository = repository_over(LocalStateStore(tmp_path, "test"), tmp_path)
    loaded = repository.load()
    assert loaded is not None
    assert loaded.format_version == int(name[1])
    assert (tmp_path / "test.state.json").read_bytes() == old
    saved = repository.save(loaded.state, loaded)
    assert saved.state.serial == loaded.state.serial + 1
    assert saved.state.state_id == loaded.state.state_id
    assert (tmp_path / f"test.state.{name[:2]}.backup.json").read_bytes() == old
    again = repository.load()
    assert again is not None
    assert again.format_version == 2


def test_the_stores_keep_their_contract(tmp_path: Path) -> None:
    check_state_store(lambda: LocalStateStore(tmp_path, "it's `test`"))
    remote = tmp_path / "remote"
    check_state_store(
        lambda: HybridStateStore(
            LocalStateStore(remote, "test"), tmp_path / "cache", "test", max_age_seconds=300
        )
    )
    memory = MemoryStateStore()
    check_state_store(lambda: memory)
    journals = memory_journals()
    check_journal_store(lambda: journals)


@pytest.mark.parametrize("left", [b"", b"{", b"\xff", b"[]", b'{"serial": 900}', None])
def test_a_lost_local_document_is_restored(tmp_path: Path, left: bytes | None) -> None:
    document = tmp_path / "state" / "test.state.json"
    check_restore_of_a_lost_document(
        lambda: LocalStateStore(document.parent, "test"),
        document.unlink if left is None else lambda: document.write_bytes(left),
        tmp_path,
    )
    serial = json.loads(document.read_bytes())["serial"]
    assert serial == (902 if left == b'{"serial": 900}' else 6)


def test_a_lost_document_in_memory_or_behind_a_copy_is_restored(tmp_path: Path) -> None:
    store, nothing = MemoryStateStore(), DocumentIdentity(state_id="", serial=0, write_id="")
    check_restore_of_a_lost_document(
        lambda: store, lambda: store.replace(b"{", nothing, store.read()), tmp_path
    )
    document, copies = tmp_path / "remote" / "test.state.json", tmp_path / "copies"
    check_restore_of_a_lost_document(
        lambda: HybridStateStore(
            LocalStateStore(document.parent, "test"), copies, "test", max_age_seconds=300
        ),
        lambda: document.write_bytes(document.read_bytes()[:500]),
        tmp_path,
    )


@pytest.mark.parametrize("is_hybrid", [False, True])
def test_a_local_document_that_is_gone_is_noticed(tmp_path: Path, *, is_hybrid: bool) -> None:
    folder = tmp_path / "state"

    def store() -> LocalStateStore | HybridStateStore:
        local = LocalStateStore(folder, "test")
        return HybridStateStore(local, tmp_path, "test", max_age_seconds=0) if is_hybrid else local

    check_a_lost_document_is_noticed(store, (folder / "test.state.json").unlink, tmp_path)


def test_a_journal_without_a_document_is_noticed(tmp_path: Path) -> None:
    store = LocalStateStore(tmp_path, "test")
    deployment = deployment_over(tmp_path, store=store, journals=LocalJournalStore(tmp_path, "test"))
    with suppress(KeyboardInterrupt), deployment.locked("sync", lambda _note: None) as (_, recorder):
        recorder.begin(["table.dev.silver.orders"], {}, {}, plan_file=None)
        raise KeyboardInterrupt
    (tmp_path / "test.state.json").unlink()
    shutil.rmtree(tmp_path / "test.versions")
    with pytest.raises(
        CorruptStateError, match=r"run of ana@example.com that began .* left its journal.*start-over"
    ):
        deployment.peek_replayed()
    with (
        pytest.raises(CorruptStateError, match="left its journal"),
        deployment.locked("sync", lambda _note: None),
    ):
        pass
    deployment.start_over(lambda _note: None)
    notes: list[str] = []
    with deployment.locked("sync", notes.append):
        pass
    assert "was ignored: it belongs to serial 1" in notes[0]


def test_an_errored_document_is_restored_over_a_torn_one(tmp_path: Path) -> None:
    """What tore the document is what kept the next one from being saved: the file is its successor."""
    deployment = deployment_over(tmp_path, store=LocalStateStore(tmp_path, "test"))
    base = deployment.repository.save(deployment_state(serial=0), None)
    base = deployment.repository.save(base.state, base)
    (tmp_path / "test.state.json").write_bytes(b"{")
    errored = msgspec.structs.replace(base.state, serial=3, write_id="lost")
    restored = deployment.restore(errored, lambda _note: None, force=False, is_version=False)
    assert restored.state.serial == 4
    assert restored.state.recent_write_ids[0] == "lost"


def test_local_versions_are_let_go_of_in_time(tmp_path: Path) -> None:
    store = LocalStateStore(tmp_path, "test")
    for serial in range(KEPT_VERSIONS + 10):
        store.versions.keep(f"{serial:08d}-x", b"{}")
    kept = [version.version_id for version in store.versions.list()]
    assert kept == [f"{serial:08d}-x" for serial in range(KEPT_VERSIONS + 9, 9, -1)]


@pytest.mark.parametrize("damage", [b"", b"{}", WHOLE[:-9], WHOLE[:20] + b"\0\0\0" + WHOLE[23:]])
def test_a_damaged_version_is_refused(damage: bytes) -> None:
    files = MemoryFiles()
    versions = FileVersions(files, "versions")
    files.write("versions/00000001-x.json.gz", damage)
    with pytest.raises(CorruptStateError, match="00000001-x"):
        versions.read("00000001-x")


def test_foreign_files_are_ignored() -> None:
    files = MemoryFiles()
    for name in ("versions/notes.txt", "journal/run-1/notes.txt", "journal/000001.json", "outside.json.gz"):
        files.write(name, b"foreign")
    versions = FileVersions(files, "versions")
    assert versions.list() == []
    assert versions.read("../outside") is None
    assert FileJournals(files, "journal").read() == {}


class TestHybrid:
    """The local copy of a remote document."""

    def test_it_is_taken_while_it_is_young_and_only_where_it_will_do(self, tmp_path: Path) -> None:
        remote, clock = MemoryStateStore(), [NOON]
        store = HybridStateStore(remote, tmp_path, "test", max_age_seconds=300, now=lambda: clock[0])
        first = repository_over(remote, tmp_path).save(deployment_state(serial=0), None)
        assert store.read() == first.stored
        second = repository_over(remote, tmp_path).save(first.state, first)
        assert store.read(allow_cached=True) == first.stored
        assert store.read() == second.stored
        third = repository_over(remote, tmp_path).save(second.state, second)
        clock[0] = NOON + timedelta(seconds=301)
        assert store.read(allow_cached=True) == third.stored

    def test_a_clock_that_went_back_makes_it_old(self, tmp_path: Path) -> None:
        remote, clock = MemoryStateStore(), [NOON]
        store = HybridStateStore(remote, tmp_path, "test", max_age_seconds=300, now=lambda: clock[0])
        first = repository_over(store, tmp_path).save(deployment_state(serial=0), None)
        second = repository_over(remote, tmp_path).save(first.state, first)
        clock[0] = NOON - timedelta(seconds=1)
        assert store.read(allow_cached=True) == second.stored

    @pytest.mark.parametrize("damage", [b"", b"{}\n", b"no header", b'{"location": "\xff"}\n'])
    def test_a_broken_copy_is_as_good_as_none(self, tmp_path: Path, damage: bytes) -> None:
        remote = MemoryStateStore()
        store = HybridStateStore(remote, tmp_path, "test", max_age_seconds=300)
        saved = repository_over(store, tmp_path).save(deployment_state(serial=0), None)
        copy = tmp_path / "test.cache"
        copy.write_bytes(damage or copy.read_bytes().replace(b"dev", b"xxx"))
        assert store.read(allow_cached=True) == saved.stored

    @pytest.mark.parametrize("damaged", [b'{"state_id": "\xff"}', b"[" * 100_000])
    def test_a_damaged_remote_document_is_called_that(self, tmp_path: Path, damaged: bytes) -> None:
        remote = MemoryStateStore()
        remote.replace(damaged, DocumentIdentity(state_id="state-1", serial=1, write_id="write-1"), None)
        store = HybridStateStore(remote, tmp_path, "test", max_age_seconds=300)
        with pytest.raises(CorruptStateError):
            repository_over(store, tmp_path).load()

    def test_a_folder_that_cannot_be_written_costs_only_time(self, tmp_path: Path) -> None:
        blocked = tmp_path / "a file"
        blocked.write_text("")
        store = HybridStateStore(MemoryStateStore(), blocked, "test", max_age_seconds=300)
        saved = repository_over(store, tmp_path).save(deployment_state(serial=0), None)
        assert store.read(allow_cached=True) == saved.stored

    def test_saves_go_to_the_remote_alone(self, tmp_path: Path) -> None:
        remote = MemoryStateStore()
        store = HybridStateStore(remote, tmp_path, "test", max_age_seconds=300)
        first = repository_over(store, tmp_path).save(deployment_state(serial=0), None)
        repository_over(remote, tmp_path).save(first.state, first)
        cached = repository_over(store, tmp_path).load(allow_cached=True)
        assert cached is not None
        with pytest.raises(StaleStateError):
            repository_over(store, tmp_path).save(cached.state, cached)


def test_the_same_content_saved_twice_is_two_documents(tmp_path: Path) -> None:
    store = MemoryStateStore()
    repository = repository_over(store, tmp_path)
    first = repository.save(deployment_state(serial=0), None)
    again = repository.save(msgspec.structs.replace(first.state), first)
    assert first.stored.token != again.stored.token
    assert encode_state(first.state) != encode_state(again.state)
