"""Statements that end early: out of patience, by Ctrl-C, or because the run is to end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from time import monotonic

import pytest

from delta_engine.actions import CreateTable, TablePlan
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.cancellation import Stop, StoppedError, pause
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.warehouse.calls import Calls
from delta_engine.backends.warehouse_sql_runner import WarehouseSqlRunner
from delta_engine.execute.action_runner import ActionRunner, ApplyStoppedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import OutcomeKind
from tests.builders import orders
from tests.planning import compiled
from tests.servers.fake_workspace import FakeWorkspace, open_runner
from tests.servers.warehouse_runner.warehouses import CHANGE, Time, impatient, refused

pytestmark = pytest.mark.servers


def test_patience_has_an_end(runner: WarehouseSqlRunner, workspace: FakeWorkspace, time: Time) -> None:
    workspace.faults = {"ask": ["500"] * 200}
    assert refused(runner, CHANGE).is_outcome_unknown
    assert 250 < time.now <= 310


def test_a_statement_that_runs_too_long_is_cancelled(workspace: FakeWorkspace, time: Time) -> None:
    workspace.states = [["RUNNING", "forever"]]
    runner = impatient(workspace, time, 30)
    assert refused(runner, CHANGE).error_class == "STATEMENT_TIMEOUT"
    assert workspace.cancelled == ["statement-1"]
    assert 30 < time.now < 40


def test_waiting_for_the_warehouse_is_not_running(workspace: FakeWorkspace, time: Time) -> None:
    workspace.states = [["PENDING"] * 100]
    assert impatient(workspace, time, 30).run(CHANGE) == [{"one": 1}]


def test_a_statement_that_ends_before_it_is_cancelled_counts(workspace: FakeWorkspace, time: Time) -> None:
    workspace.states = [["RUNNING"] * 13]
    runner = impatient(workspace, time, 14)
    workspace.faults = {"cancel": ["404"]}
    assert runner.run(CHANGE) == [{"one": 1}]


def test_an_interrupt_cancels_what_runs(workspace: FakeWorkspace, time: Time) -> None:
    workspace.states = [["RUNNING", "forever"]]

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    runner = open_runner(workspace, calls=Calls(pause=interrupt, clock=time))
    with pytest.raises(KeyboardInterrupt):
        runner.run(CHANGE)
    assert workspace.cancelled == ["statement-1"]


class Ended:
    """Pauses with a clock that only they move; somebody asks for the end in the first."""

    def __init__(self, time: Time) -> None:
        self.stop = Stop()
        self._time = time

    def pause(self, seconds: float) -> None:
        if not self.stop.is_requested():
            self.stop.request()
        self._time.pause(seconds)


@pytest.fixture
def ended(time: Time) -> Iterator[Ended]:
    found = Ended(time)
    with found.stop.heeded():
        yield found


@pytest.fixture
def ending_runner(workspace: FakeWorkspace, ended: Ended, time: Time) -> WarehouseSqlRunner:
    return open_runner(workspace, calls=Calls(pause=ended.pause, clock=time))


@pytest.mark.parametrize("sql", [CHANGE, "SELECT 1 AS one"])
def test_a_statement_that_is_turned_away_is_not_handed_in_once_the_run_is_to_end(
    ending_runner: WarehouseSqlRunner, workspace: FakeWorkspace, time: Time, sql: str
) -> None:
    workspace.faults = {"submit": ["429"] * 100}
    assert isinstance(refused(ending_runner, sql), StoppedError)
    assert workspace.submitted == []
    assert len(time.pauses) == 1


def test_a_change_that_waits_for_the_warehouse_is_withdrawn_once_the_run_is_to_end(
    ending_runner: WarehouseSqlRunner, workspace: FakeWorkspace, time: Time
) -> None:
    workspace.states = [["PENDING", "forever"]]
    assert isinstance(refused(ending_runner, CHANGE), StoppedError)
    assert workspace.cancelled == ["statement-1"]
    assert time.now < 1


def test_a_change_that_could_not_be_withdrawn_in_time_counts(
    ending_runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    workspace.states = [["PENDING", "PENDING"]]
    workspace.faults = {"cancel": ["404"]}
    assert ending_runner.run(CHANGE) == [{"one": 1}]


def test_a_change_that_can_neither_be_withdrawn_nor_waited_for_is_in_doubt(
    ending_runner: WarehouseSqlRunner, workspace: FakeWorkspace, time: Time
) -> None:
    workspace.states = [["PENDING", "forever"]]
    workspace.faults = {"cancel": ["404"]}
    error = refused(ending_runner, CHANGE)
    assert (error.is_outcome_unknown, isinstance(error, StoppedError)) == (True, False)
    assert time.now < 70


def test_a_change_that_runs_goes_on_to_its_end_also_if_it_is_hard_to_ask_after(
    ending_runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    workspace.states = [["RUNNING"] * 5]
    workspace.faults = {"ask": ["ok", "429", "429", "429"]}
    assert ending_runner.run(CHANGE) == [{"one": 1}]
    assert workspace.cancelled == []


def test_a_change_that_nobody_can_be_asked_after_is_cancelled_once_the_run_is_to_end(
    ending_runner: WarehouseSqlRunner, workspace: FakeWorkspace, time: Time
) -> None:
    workspace.states = [["RUNNING", "forever"]]
    workspace.faults = {"ask": ["429"] * 100}
    error = refused(ending_runner, CHANGE)
    assert (error.is_outcome_unknown, isinstance(error, StoppedError)) == (True, False)
    assert workspace.cancelled == ["statement-1"]
    assert time.now < 30


def test_a_question_is_given_up_once_nobody_waits_for_its_answer(
    ending_runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    workspace.states = [["RUNNING", "forever"]]
    assert isinstance(refused(ending_runner, "SELECT 1 AS one"), StoppedError)
    assert workspace.cancelled == ["statement-1"]


def test_an_apply_that_is_turned_away_for_minutes_ends_at_once(workspace: FakeWorkspace) -> None:
    workspace.faults = {"submit": ["429"] * 1000}
    control = ApplyControl()

    def pause_long(_seconds: float) -> None:
        threading.Timer(0.2, control.stop.request).start()
        pause(60)

    runner = open_runner(workspace, calls=Calls(pause=pause_long))
    plan = TablePlan(tuple(CreateTable(orders(name=f"t{n}")) for n in range(5)))
    before = monotonic()
    with pytest.raises(ApplyStoppedError) as stopped:
        ActionRunner(runner, CatalogAddressing(), DATABRICKS).apply(compiled(plan), control=control)
    assert monotonic() - before < 30
    assert {one.kind for one in stopped.value.outcomes} == {OutcomeKind.STOPPED}
    assert workspace.submitted == []
