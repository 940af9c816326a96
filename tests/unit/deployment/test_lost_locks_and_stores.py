"""Runs whose lock, store or journal fails them: nothing goes on unrecorded, and nothing recorded is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.errors import LockHeld, LockLost, StoreError, UnsavedStateError
from delta_engine.deployment.stores.files import FileJournals
from delta_engine.deployment.stores.local import LocalJournalStore, LocalStateStore
from delta_engine.deployment.stores.memory import MemoryFiles
from delta_engine.orchestrate.applying import UnrecordedApplyError
from delta_engine.orchestrate.runs import open_run
from tests.builders.deployment import HOLDER, deployment_over
from tests.fakes.platform import FakePlatform, engine_over, recorded, statuses, sync
from tests.unit.deployment.runs import TABLES, FakeLock, Unwritable


def test_a_run_without_its_lock_stops(platform: FakePlatform, deployment: Deployment, tmp_path: Path) -> None:
    lock = FakeLock(checks=2)  # one before the journal, one before the first statement
    losing = deployment_over(
        tmp_path,
        store=LocalStateStore(tmp_path, "test"),
        journals=LocalJournalStore(tmp_path, "test"),
        lock=lock,
    )
    with pytest.raises(LockLost):
        sync(platform, losing, *TABLES)
    assert len(platform.statements) == 1
    notes = sync(platform, deployment, *TABLES)
    assert "1 of 3 resources were recorded" in notes[0]
    assert set(statuses(deployment).values()) == {"healthy"}


def test_a_lock_taken_from_the_dead_is_mentioned(platform: FakePlatform, tmp_path: Path) -> None:
    notes = sync(platform, deployment_over(tmp_path, lock=FakeLock(taken_over_from=HOLDER)), *TABLES)
    assert notes == [f"took over the lock of a run that died: {HOLDER}"]


def test_nothing_is_changed_where_nothing_can_be_recorded(platform: FakePlatform, tmp_path: Path) -> None:
    with pytest.raises(UnsavedStateError):
        sync(platform, deployment_over(tmp_path, store=Unwritable(0)), *TABLES)
    assert platform.statements == []


def test_an_unsaved_state_is_in_the_journal_and_in_a_file(platform: FakePlatform, tmp_path: Path) -> None:
    store = Unwritable(1)
    deployment = deployment_over(tmp_path, store=store)
    with pytest.raises(UnrecordedApplyError):
        sync(platform, deployment, *TABLES)
    errored = tmp_path / "errored-2.json"
    assert errored.exists()
    store.writes = 9
    restored = deployment.repository.decode(errored.read_bytes(), where="errored-2.json")
    saved = deployment.restore(restored, lambda _note: None, force=False, is_version=False)
    assert set(statuses(deployment).values()) == {"healthy"}
    assert sync(platform, deployment, *TABLES) == []  # the journal is in the restored document already
    assert recorded(deployment) == saved.state
    assert deployment.journals.read() == {}


class StickyJournals(FileJournals):
    """Journals that cannot be removed."""

    def remove(self, run_id: str) -> None:
        raise StoreError("no right to delete")


def test_a_journal_that_cannot_be_removed_is_read_once(platform: FakePlatform, tmp_path: Path) -> None:
    deployment = deployment_over(tmp_path, journals=StickyJournals(MemoryFiles(), "journal"))
    assert sync(platform, deployment, *TABLES) == ["a journal could not be removed: no right to delete"]
    saved = recorded(deployment)
    assert "did not end" not in "".join(sync(platform, deployment, *TABLES))
    assert recorded(deployment) == saved


class BrokenJournals(FileJournals):
    """A journal that takes its first entry alone."""

    def append(self, run_id: str, position: int, entry: bytes) -> None:
        if position:
            raise StoreError("disk full")
        super().append(run_id, position, entry)


def test_a_journal_that_cannot_be_written_is_a_warning(platform: FakePlatform, tmp_path: Path) -> None:
    deployment = deployment_over(tmp_path, journals=BrokenJournals(MemoryFiles(), "journal"))
    notes = sync(platform, deployment, *TABLES)
    state = recorded(deployment)
    assert notes == ["the journal could not be written: disk full"]
    assert state.metadata.warnings == tuple(notes)
    assert set(statuses(deployment).values()) == {"healthy"}


def test_a_locked_environment_is_left_alone(platform: FakePlatform, tmp_path: Path) -> None:
    notes: list[str] = []
    engine = engine_over(platform, deployment_over(tmp_path, lock=FakeLock(is_held=True)))
    with pytest.raises(LockHeld), open_run(engine, "sync", notes.append):
        pass
    assert notes == [f"waiting for the lock: held by {HOLDER}"]
    assert not engine.plan_tables([]).create_tables
    assert platform.statements == []
