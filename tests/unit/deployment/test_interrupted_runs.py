"""Runs that end before they are done: the journal keeps what they did, and it is no drift."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.errors import NewerStateError, StoreError
from delta_engine.deployment.journal import left_journals
from delta_engine.deployment.resources import without_resources
from delta_engine.deployment.stores.files import FileJournals
from delta_engine.deployment.stores.memory import MemoryFiles, MemoryStateStore, memory_journals
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.execute.outcomes import AnyOutcome
from delta_engine.models import Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.observing import record_statuses
from delta_engine.orchestrate.orchestrator import plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import open_run
from tests.builders.deployment import deployment_over
from tests.builders.models import orders
from tests.fakes.applying import created
from tests.fakes.platform import FakePlatform, comments, engine_over, recorded, statuses, sync
from tests.unit.deployment.runs import CHANGED, TABLES, FakeLock


class Interruption(BaseException):
    """Ends a run from within, as a kill or Ctrl-C does."""


def interrupted_sync(platform: FakePlatform, deployment: Deployment, *models: Table, after: int) -> None:
    """Run a sync that ends after some tables."""
    platform.models = {model.qualified_name.key: model for model in models}
    done: list[AnyOutcome] = []

    def on_outcome(outcome: AnyOutcome) -> None:
        done.append(outcome)
        if len(done) == after:
            raise Interruption

    with pytest.raises(Interruption), open_run(engine_over(platform, deployment), "sync") as run:
        apply_planned(run, plan_sync(run, models), on_outcome).result()


def test_the_next_run_reads_the_journal(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, *TABLES)
    before = recorded(deployment)
    interrupted_sync(platform, deployment, *CHANGED, after=1)
    assert recorded(deployment) == before
    assert len(deployment.journals.read()) == 1

    (note,) = sync(platform, deployment, *CHANGED)
    assert note.startswith("a run of ana@example.com that began ")
    assert note.endswith("did not end: 1 of 3 resources were recorded")
    assert comments(deployment) == {"a": "second", "b": "second", "c": "second"}
    assert set(statuses(deployment).values()) == {"healthy"}
    assert deployment.journals.read() == {}


@pytest.mark.parametrize(("fence", "is_read"), [(2, True), (1, False)])
def test_the_journal_of_a_run_is_read_after_a_late_save_of_the_run_before(
    fence: int, is_read: bool, platform: FakePlatform, tmp_path: Path
) -> None:
    """The save of a run that lost its lock was under way. Only a later holder of the lock knows more than it."""
    store, journals = MemoryStateStore(), memory_journals()
    former = deployment_over(tmp_path, store=store, journals=journals, lock=FakeLock(fence=1))
    later = deployment_over(tmp_path, store=store, journals=journals, lock=FakeLock(fence=fence))
    sync(platform, former, *TABLES)
    with open_run(engine_over(platform, former), "sync") as run:
        interrupted_sync(platform, later, *CHANGED, after=3)
        run.recorder.save(is_forced=True)
    assert comments(former) == {"a": "first", "b": "first", "c": "first"}
    replayed = later.peek_replayed()
    assert replayed is not None
    (journal,) = left_journals(recorded(later), journals.read())
    assert journal.fits is is_read
    (note,) = sync(platform, later, *CHANGED)
    assert ("did not end: 3 of 3" in note) is is_read
    assert ("was ignored" in note) is not is_read
    assert recorded(later).fence == fence


def test_a_fence_does_not_go_back(platform: FakePlatform, tmp_path: Path) -> None:
    """A lock that was lost counts from 1 again: what older journals say is not newer than the document."""
    store, journals = MemoryStateStore(), memory_journals()
    for fence, models in ((5, TABLES), (1, CHANGED)):
        lock = FakeLock(fence=fence)
        deployment = deployment_over(tmp_path, store=store, journals=journals, lock=lock)
        sync(platform, deployment, *models)
        assert recorded(deployment).fence == 5


def test_a_journal_of_a_newer_format_is_refused(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, *TABLES)
    interrupted_sync(platform, deployment, *CHANGED, after=1)
    ((run_id, (start, *_)),) = deployment.journals.read().items()
    newer = msgspec.json.encode(
        {**msgspec.json.decode(start), "version": 99, "resources": {"of": "the future"}}
    )
    deployment.journals.remove(run_id)
    deployment.journals.append(run_id, 0, newer)
    before = recorded(deployment)
    with pytest.raises(NewerStateError, match=f"the journal of run {run_id}.*format 99"):
        sync(platform, deployment, *CHANGED)
    assert recorded(deployment) == before
    assert [*deployment.journals.read()] == [run_id]


def test_both_records_of_a_table_that_a_killed_run_renamed_are_forgotten(
    platform: FakePlatform, deployment: Deployment
) -> None:
    """The killed run had recorded it under its new name. Only a run that ends moves a record."""
    sync(platform, deployment, orders(name="order"))
    interrupted_sync(platform, deployment, orders(comment="second", renamed_from="order"), after=1)
    state = deployment.peek_replayed()
    assert state is not None
    keys = {"table.dev.silver.order", "table.dev.silver.orders"}
    assert keys < state.resources.keys()
    for key in keys:
        assert without_resources(state, [key]).resources.keys() == state.resources.keys() - keys


@pytest.mark.parametrize("is_recorded", [True, False])
def test_another_table_that_has_a_former_name_by_now_is_forgotten_alone(
    platform: FakePlatform, deployment: Deployment, *, is_recorded: bool
) -> None:
    """An earlier run, or the killed one itself, has created it."""
    sync(platform, deployment, orders(name="order", comment="first"))
    platform.failing = "orders"
    with pytest.raises(ApplyFailedError):
        sync(platform, deployment, orders(comment="second", renamed_from="order"))
    models = orders(comment="second"), orders(name="order", comment="another")
    if is_recorded:
        with pytest.raises(ApplyFailedError):
            sync(platform, deployment, *models)
        assert statuses(deployment) == {"orders": "failed", "order": "healthy"}
    platform.failing = None
    interrupted_sync(platform, deployment, *models, after=1 if is_recorded else 2)
    state = deployment.peek_replayed()
    assert state is not None
    for key in ("table.dev.silver.order", "table.dev.silver.orders"):
        assert without_resources(state, [key]).resources.keys() == state.resources.keys() - {key}


def test_unfinished_work_is_no_drift_to_a_state_sync(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, *TABLES)
    interrupted_sync(platform, deployment, *CHANGED, after=1)
    platform.states["dev.silver.b"] = created(orders(name="b", comment="second"))
    with open_run(engine_over(platform, deployment), "state sync") as run:
        record_statuses(run, CHANGED)
    assert statuses(deployment)["b"] == "unknown"
    assert comments(deployment)["b"] == "first"
    error = recorded(deployment).resources["table.dev.silver.b"].reason
    assert error is not None
    assert "ended before it was done" in error


def test_unfinished_work_is_no_drift_to_a_report(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, *TABLES)
    interrupted_sync(platform, deployment, *CHANGED, after=1)
    platform.states["dev.silver.b"] = created(orders(name="b", comment="second"))
    engine = engine_over(platform, deployment)
    report = report_drift(engine, CHANGED)
    assert report.drifted == ()
    assert report.unfinished == ("table.dev.silver.b", "table.dev.silver.c")
    assert plan_unlocked(engine, CHANGED).refusals == ()
    assert len(deployment.journals.read()) == 1  # it is the next run's to take in


def test_the_first_run_of_all_may_be_interrupted_too(platform: FakePlatform, deployment: Deployment) -> None:
    interrupted_sync(platform, deployment, *TABLES, after=2)
    assert recorded(deployment).serial == 1
    (note,) = sync(platform, deployment, *TABLES)
    assert "2 of 3 resources were recorded" in note
    assert set(statuses(deployment).values()) == {"healthy"}


class _FirstEntryRemoved(FileJournals):
    """Removes the first entry of a journal, and fails at the second."""

    def remove(self, run_id: str) -> None:
        entries = list(self.read()[run_id])
        super().remove(run_id)
        for position, entry in enumerate(entries[1:]):
            self.append(run_id, position, entry)
        if len(entries) > 1:
            raise StoreError("the store is away")


def test_a_journal_whose_removal_broke_off_blocks_nothing(platform: FakePlatform, tmp_path: Path) -> None:
    deployment = deployment_over(tmp_path, journals=_FirstEntryRemoved(MemoryFiles(), "journal"))
    sync(platform, deployment, *TABLES)
    assert [len(entries) for entries in deployment.journals.read().values()] == [3]
    assert sync(platform, deployment, *CHANGED) == ["a journal could not be removed: the store is away"] * 2
    assert comments(deployment) == {"a": "second", "b": "second", "c": "second"}


def test_a_journal_without_its_beginning_is_ignored(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, *TABLES)
    for position, entry in enumerate((b'{"torn', b"{}")):
        deployment.journals.append("run-1", position, entry)
    (note,) = sync(platform, deployment, *CHANGED)
    assert note == (
        "the journal of run run-1 was ignored: its first entry is missing or damaged, so that its document is "
        "unknown"
    )
    assert deployment.journals.read() == {}


def test_a_journal_torn_at_its_beginning_is_removed(platform: FakePlatform, deployment: Deployment) -> None:
    deployment.journals.append("run-1", 0, b'{"torn')
    assert sync(platform, deployment, *TABLES) == []
    assert deployment.journals.read() == {}


def test_a_journal_that_disappears(platform: FakePlatform, deployment: Deployment, tmp_path: Path) -> None:
    interrupted_sync(platform, deployment, *TABLES, after=2)
    (tmp_path / "test.journal" / "gone.jsonl").symlink_to(tmp_path / "nothing")
    assert len(deployment.journals.read()) == 1
