"""Runs from lock to unlock over a fake platform: what is recorded, also when they end in disorder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from delta_engine.actions import CreateTable
from delta_engine.addressing import CatalogAddressing
from delta_engine.capabilities import DATABRICKS
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.document import Status
from delta_engine.deployment.errors import LockHeld, LockLost, StoreError, UnsavedStateError
from delta_engine.deployment.lock_record import LockHolder
from delta_engine.deployment.locks.unlocked import NoLock
from delta_engine.deployment.ports import Identity, LockLease, StateLock, StoredDocument
from delta_engine.deployment.stores.local import LocalJournalStore, LocalStateStore
from delta_engine.deployment.stores.memory import MemoryJournalStore, MemoryStateStore
from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError, TableOutcome
from delta_engine.models import Schema, Table
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.state.states import CatalogState
from delta_engine.state.table_versions import TableVersion
from tests.builders import orders
from tests.deployment_builders import FACTS, HOLDER, deployment_over
from tests.fake_platform import FakePlatform, comments, engine_over, recorded, statuses, sync
from tests.simulation import created

TABLES = tuple(orders(name=name, comment="first") for name in ("a", "b", "c"))
CHANGED = tuple(orders(name=name, comment="second") for name in ("a", "b", "c"))


@pytest.fixture
def platform() -> FakePlatform:
    return FakePlatform()


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return deployment_over(
        tmp_path, store=LocalStateStore(tmp_path, "test"), journals=LocalJournalStore(tmp_path, "test")
    )


def test_a_run_from_lock_to_unlock(platform: FakePlatform, deployment: Deployment) -> None:
    assert sync(platform, deployment, *TABLES) == []
    state = recorded(deployment)
    assert (state.serial, state.lineage, state.environment) == (2, FACTS.lineage, FACTS.environment)
    assert statuses(deployment) == {"a": "healthy", "b": "healthy", "c": "healthy"}
    assert state.metadata.last_apply_actions.added == 3
    assert {one.resource for one in state.metadata.checkpoints} == {f"table.dev.silver.{x}" for x in "abc"}
    assert deployment.journals.read() == {}
    sync(platform, deployment, *TABLES)
    assert recorded(deployment) == state


def test_one_failure_is_recorded_and_does_not_stop_the_others(
    platform: FakePlatform, deployment: Deployment
) -> None:
    sync(platform, deployment, *TABLES)
    platform.failing = "b"
    with pytest.raises(ApplyFailedError):
        sync(platform, deployment, *CHANGED)
    assert statuses(deployment) == {"a": "healthy", "b": "failed", "c": "healthy"}
    assert comments(deployment) == {"a": "second", "b": "first", "c": "second"}
    platform.failing = None
    sync(platform, deployment, *CHANGED)
    assert statuses(deployment) == {"a": "healthy", "b": "healthy", "c": "healthy"}
    assert comments(deployment)["b"] == "second"


def test_a_table_that_could_not_be_created_is_recorded_without_a_definition(
    platform: FakePlatform, deployment: Deployment
) -> None:
    platform.failing = "b"
    with pytest.raises(ApplyFailedError):
        sync(platform, deployment, *TABLES)
    resource = recorded(deployment).resources["table.dev.silver.b"]
    assert (resource.status, resource.metadata.definition, resource.deployed_at) == (
        Status.FAILED,
        None,
        None,
    )


class Interruption(BaseException):
    """Ends a run from within, as a kill or Ctrl-C does."""


def interrupted_sync(platform: FakePlatform, deployment: Deployment, *models: Table, after: int) -> None:
    """Run a sync that ends after some tables."""
    platform.models = {model.qualified_name.key: model for model in models}
    done: list[TableOutcome] = []

    def on_outcome(outcome: TableOutcome) -> None:
        done.append(outcome)
        if len(done) == after:
            raise Interruption

    with pytest.raises(Interruption), engine_over(platform, deployment).run("sync") as run:
        run.apply(run.plan(models), on_outcome)


def test_an_interrupted_run_saves_nothing_and_the_next_takes_its_journal_in(
    platform: FakePlatform, deployment: Deployment
) -> None:
    sync(platform, deployment, *TABLES)
    before = recorded(deployment)
    interrupted_sync(platform, deployment, *CHANGED, after=1)
    assert recorded(deployment) == before
    assert len(deployment.journals.read()) == 1

    (note,) = sync(platform, deployment, *CHANGED)
    assert note.startswith("a run of ana@example.com that began ")
    assert note.endswith("did not end: 1 tables were recorded, 2 were not done")
    assert comments(deployment) == {"a": "second", "b": "second", "c": "second"}
    assert set(statuses(deployment).values()) == {"healthy"}
    assert deployment.journals.read() == {}


def test_what_an_interrupted_run_left_is_not_called_drift(
    platform: FakePlatform, deployment: Deployment
) -> None:
    sync(platform, deployment, *TABLES)
    interrupted_sync(platform, deployment, *CHANGED, after=1)
    platform.states["dev.silver.b"] = created(CreateTable(orders(name="b", comment="second")))
    with engine_over(platform, deployment).run("state sync") as run:
        run.synchronize(CHANGED)
    assert statuses(deployment)["b"] == "unknown"
    assert comments(deployment)["b"] == "first"
    error = recorded(deployment).resources["table.dev.silver.b"].metadata.sync_error
    assert error is not None
    assert "ended before it was done" in error


def test_what_an_interrupted_run_did_is_nobodys_drift_to_a_report_without_a_lock(
    platform: FakePlatform, deployment: Deployment
) -> None:
    sync(platform, deployment, *TABLES)
    interrupted_sync(platform, deployment, *CHANGED, after=1)
    platform.states["dev.silver.b"] = created(CreateTable(orders(name="b", comment="second")))
    engine = engine_over(platform, deployment)
    report = engine.drift_report(CHANGED, environment="test")
    assert report.drifted == ()
    assert report.unfinished == ("table.dev.silver.b", "table.dev.silver.c")
    assert engine.preview(CHANGED).refusals == ()
    assert len(deployment.journals.read()) == 1  # it is the next run's to take in


def test_a_run_that_ends_while_a_report_is_made_is_nobodys_drift(
    platform: FakePlatform, deployment: Deployment
) -> None:
    sync(platform, deployment, *TABLES)

    class Interfering:
        """Lets a sync run just before the catalog is read."""

        def __init__(self) -> None:
            self.times = 0

        def snapshot_directly(self, models: Sequence[Table]) -> CatalogState:
            return platform.snapshot(models)

        def snapshot(self, models: Sequence[Table], schemas: Sequence[Schema] = ()) -> CatalogState:
            self.times += 1
            if self.times == 1:
                sync(platform, deployment, *CHANGED)
            return platform.snapshot(models)

    reader = Interfering()
    engine = Orchestrator(
        reader=reader,
        action_runner=ActionRunner(platform, CatalogAddressing(), DATABRICKS, parallelism=1),
        deployment=deployment,
    )
    report = engine.drift_report(CHANGED, environment="test")
    assert report.drifted == ()
    assert reader.times == 2


def test_a_table_that_was_retired_is_neither_drift_nor_made_again(
    platform: FakePlatform, deployment: Deployment
) -> None:
    sync(platform, deployment, *TABLES)
    del platform.states["dev.silver.b"]
    left = (TABLES[0], TABLES[2])
    engine = engine_over(platform, deployment)
    report = engine.drift_report(left, environment="test")
    assert report.deleted == ()
    with engine.run("revert") as run:
        assert not run.plan_revert(left)


def test_the_first_run_of_all_may_be_interrupted_too(platform: FakePlatform, deployment: Deployment) -> None:
    interrupted_sync(platform, deployment, *TABLES, after=2)
    assert recorded(deployment).serial == 1
    (note,) = sync(platform, deployment, *TABLES)
    assert "2 tables were recorded, 1 were not done" in note
    assert set(statuses(deployment).values()) == {"healthy"}


def test_tables_that_are_not_declared_any_more_are_looked_after_and_in_nobodys_way(
    platform: FakePlatform, deployment: Deployment
) -> None:
    sync(platform, deployment, *TABLES)
    del platform.states["dev.silver.c"]
    assert sync(platform, deployment, *TABLES[:2]) == []
    assert statuses(deployment) == {"a": "healthy", "b": "healthy", "c": "missing"}

    platform.unreadable = "dev.silver.c"
    (note,) = sync(platform, deployment, *CHANGED[:2])
    assert "cannot be read" in note
    assert "state rm" in note
    assert comments(deployment) == {"a": "second", "b": "second", "c": "first"}


class LosingLock(NoLock):
    """A lock that is lost before a number of checks.

    Args:
        checks: how many checks it survives.
    """

    def __init__(self, checks: int) -> None:
        self.checks = checks

    def acquire(
        self,
        holder: LockHolder,
        *,
        timeout_seconds: float,
        on_wait: Callable[[LockHolder], None] = lambda _holder: None,
    ) -> LockLease:
        return _LosingLease(self)


class _LosingLease:
    fence = 1
    taken_over_from = HOLDER

    def __init__(self, lock: LosingLock) -> None:
        self._lock = lock

    def check(self) -> None:
        self._lock.checks -= 1
        if self._lock.checks < 0:
            raise LockLost("taken over")

    def release(self) -> None:
        pass


def test_a_run_that_loses_its_lock_runs_no_further_statement(
    platform: FakePlatform, deployment: Deployment, tmp_path: Path
) -> None:
    lock: StateLock = LosingLock(checks=2)  # one before the journal, one before the first statement
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
    assert "1 tables were recorded, 2 were not done" in notes[0]
    assert set(statuses(deployment).values()) == {"healthy"}


def test_a_lock_taken_from_the_dead_is_mentioned(platform: FakePlatform, tmp_path: Path) -> None:
    notes = sync(platform, deployment_over(tmp_path, lock=LosingLock(checks=99)), *TABLES)
    assert notes == [f"took over the lock of a run that died: {HOLDER}"]


class Unwritable(MemoryStateStore):
    """A store that takes a number of writes, and no more.

    Args:
        writes: how many.
    """

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.writes = writes

    def replace(self, data: bytes, identity: Identity, expected: StoredDocument | None) -> StoredDocument:
        self.writes -= 1
        if self.writes < 0:
            raise StoreError("the store is down")
        return super().replace(data, identity, expected)


def test_nothing_is_changed_where_nothing_can_be_recorded(platform: FakePlatform, tmp_path: Path) -> None:
    with pytest.raises(UnsavedStateError):
        sync(platform, deployment_over(tmp_path, store=Unwritable(0)), *TABLES)
    assert platform.statements == []


def test_what_could_not_be_saved_is_in_the_journal_and_in_a_file(
    platform: FakePlatform, tmp_path: Path
) -> None:
    store = Unwritable(1)
    deployment = deployment_over(tmp_path, store=store)
    with pytest.raises(UnsavedStateError):
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


class StickyJournals(MemoryJournalStore):
    """Journals that cannot be removed."""

    def remove(self, run_id: str) -> None:
        raise StoreError("no right to delete")


def test_a_journal_that_cannot_be_removed_is_known_to_be_in_the_document(
    platform: FakePlatform, tmp_path: Path
) -> None:
    deployment = deployment_over(tmp_path, journals=StickyJournals())
    assert sync(platform, deployment, *TABLES) == ["a journal could not be removed: no right to delete"]
    saved = recorded(deployment)
    assert "did not end" not in "".join(sync(platform, deployment, *TABLES))
    assert recorded(deployment) == saved


class BrokenJournals(MemoryJournalStore):
    """A journal that takes its first entry alone."""

    def append(self, run_id: str, position: int, entry: bytes) -> None:
        if position:
            raise StoreError("disk full")
        super().append(run_id, position, entry)


def test_a_journal_that_cannot_be_written_is_a_warning(platform: FakePlatform, tmp_path: Path) -> None:
    deployment = deployment_over(tmp_path, journals=BrokenJournals())
    notes = sync(platform, deployment, *TABLES)
    state = recorded(deployment)
    assert notes == ["the journal could not be written: disk full"]
    assert state.metadata.warnings == tuple(notes)
    assert set(statuses(deployment).values()) == {"healthy"}


def test_what_the_catalog_does_not_show_yet_is_unknown_and_no_drift(
    platform: FakePlatform, tmp_path: Path
) -> None:
    class NoVersions:
        def read(self, tables: object, *, with_id: object) -> dict[str, TableVersion]:
            return {}

    deployment = deployment_over(tmp_path)
    sync(platform, deployment, *TABLES)
    platform.shows = False
    platform.models = {model.qualified_name.key: model for model in CHANGED}
    engine = Orchestrator(
        reader=platform,
        action_runner=ActionRunner(platform, CatalogAddressing(), DATABRICKS, parallelism=1),
        deployment=deployment,
        versions=NoVersions(),
    )
    assert [outcome.is_verified for outcome in engine.sync_tables(CHANGED)] == [False, False, False]
    assert set(statuses(deployment).values()) == {"unknown"}
    platform.shows = True
    platform.models["dev.silver.c"] = TABLES[2]  # one still lags behind
    assert [outcome.is_verified for outcome in engine.sync_tables(CHANGED)] == [True, True, False]
    platform.shows = False
    platform.states = {
        key: created(CreateTable(model)) for key, model in zip(platform.models, TABLES, strict=True)
    }
    engine.sync_tables(CHANGED)
    assert set(statuses(deployment).values()) == {"unknown"}
    platform.states = {key: created(CreateTable(model)) for key, model in platform.models.items()}
    sync(platform, deployment, *CHANGED)
    assert set(statuses(deployment).values()) == {"healthy"}


def test_a_partial_run_looks_at_its_own_tables_only(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, *TABLES)
    del platform.states["dev.silver.c"]
    platform.states["dev.silver.temp"] = created(CreateTable(TABLES[0]))
    sync(platform, deployment, *CHANGED[:1], is_partial=True)
    assert statuses(deployment) == {"a": "healthy", "b": "healthy", "c": "healthy"}
    sync(platform, deployment, CHANGED[0], TABLES[1])
    assert statuses(deployment) == {"a": "healthy", "b": "healthy", "c": "missing", "temp": "unmanaged"}


def test_a_locked_environment_is_left_alone(platform: FakePlatform, tmp_path: Path) -> None:
    class Held(NoLock):
        def acquire(
            self,
            holder: LockHolder,
            *,
            timeout_seconds: float,
            on_wait: Callable[[LockHolder], None] = lambda _holder: None,
        ) -> LockLease:
            on_wait(HOLDER)
            raise LockHeld(f"held by {HOLDER}")

    notes: list[str] = []
    engine = engine_over(platform, deployment_over(tmp_path, lock=Held()))
    with pytest.raises(LockHeld), engine.run("sync", notes.append):
        pass
    assert notes == [f"waiting for the lock: held by {HOLDER}"]
    assert not engine.plan_tables([]).create_tables
    assert platform.statements == []
