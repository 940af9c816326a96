"""Statements that end early: out of patience, at their timeout, by Ctrl-C, or because the run is ending."""

import threading
from collections.abc import Iterator
from time import monotonic

import pytest

from delta_engine.actions import CreateTable, TablePlan
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.cancellation import Stop, StoppedError, pause
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.databricks_sdk import Calls
from delta_engine.execute.action_runner import ActionRunner, ApplyStoppedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import OutcomeKind
from tests.builders.models import orders
from tests.fakes.planning import compiled
from tests.fakes.workspace import open_runner
from tests.servers.warehouse_runner.warehouses import CHANGE, QUERY, Time, Warehouse


def test_patience_has_an_end(warehouse: Warehouse) -> None:
    warehouse.workspace.faults = {"ask": ["500"] * 200}
    assert warehouse.refused(CHANGE).is_outcome_unknown
    assert 250 < warehouse.time.now <= 310


def test_a_statement_that_runs_too_long_is_cancelled(warehouse: Warehouse) -> None:
    warehouse.workspace.states = [["RUNNING", "forever"]]
    impatient = Warehouse(warehouse.workspace, timeout_seconds=30)
    assert impatient.refused(CHANGE).error_class == "STATEMENT_TIMEOUT"
    assert warehouse.workspace.cancelled == ["statement-1"]
    assert 30 < impatient.time.now < 40


@pytest.mark.parametrize(
    ("states", "timeout_seconds"),
    [
        (["PENDING"] * 100, 30),  # waiting for the warehouse does not count
        (["RUNNING"] * 13, 14),  # it ends before it is cancelled
    ],
)
def test_a_statement_within_its_timeout_counts(
    warehouse: Warehouse, states: list[str], timeout_seconds: float
) -> None:
    warehouse.workspace.states = [states]
    warehouse.workspace.faults = {"cancel": ["404"]}
    assert Warehouse(warehouse.workspace, timeout_seconds=timeout_seconds).run(CHANGE) == [{"one": 1}]


def test_an_interrupt_cancels_what_runs(warehouse: Warehouse) -> None:
    class Interrupted(Time):
        def pause(self, seconds: float) -> None:
            raise KeyboardInterrupt

    warehouse.workspace.states = [["RUNNING", "forever"]]
    with pytest.raises(KeyboardInterrupt):
        Warehouse(warehouse.workspace, Interrupted()).run(CHANGE)
    assert warehouse.workspace.cancelled == ["statement-1"]


class Ending(Time):
    def __init__(self) -> None:
        super().__init__()
        self.stop = Stop()

    def pause(self, seconds: float) -> None:
        if not self.stop.is_requested():
            self.stop.request()
        super().pause(seconds)


@pytest.fixture
def ending(warehouse: Warehouse) -> Iterator[Warehouse]:
    time = Ending()
    with time.stop.as_current():
        yield Warehouse(warehouse.workspace, time)


@pytest.mark.parametrize("sql", [CHANGE, QUERY])
def test_a_throttled_statement_is_not_submitted_once_the_run_is_ending(ending: Warehouse, sql: str) -> None:
    ending.workspace.faults = {"submit": ["429"] * 100}
    assert isinstance(ending.refused(sql), StoppedError)
    assert ending.workspace.submitted == []
    assert len(ending.time.pauses) == 1


@pytest.mark.parametrize(("state", "sql"), [("PENDING", CHANGE), ("RUNNING", QUERY)])
def test_a_waiting_change_is_withdrawn_and_a_query_abandoned(ending: Warehouse, state: str, sql: str) -> None:
    ending.workspace.states = [[state, "forever"]]
    assert isinstance(ending.refused(sql), StoppedError)
    assert ending.workspace.cancelled == ["statement-1"]
    assert sql == QUERY or ending.time.now < 1


@pytest.mark.parametrize(
    ("states", "faults", "seconds"),
    [(["PENDING", "forever"], {"cancel": ["404"]}, 70), (["RUNNING", "forever"], {"ask": ["429"] * 100}, 30)],
)
def test_a_change_that_can_be_neither_cancelled_nor_polled_has_an_unknown_outcome(
    ending: Warehouse, states: list[str], faults: dict[str, list[str]], seconds: float
) -> None:
    ending.workspace.states, ending.workspace.faults = [states], faults
    error = ending.refused(CHANGE)
    assert (error.is_outcome_unknown, isinstance(error, StoppedError)) == (True, False)
    assert ending.time.now < seconds
    assert ending.workspace.cancelled == (["statement-1"] if "ask" in faults else [])


@pytest.mark.parametrize(
    ("states", "faults"),
    [
        (["PENDING", "PENDING"], {"cancel": ["404"]}),  # it ended before it was withdrawn
        (["RUNNING"] * 5, {"ask": ["ok", "429", "429", "429"]}),
    ],
)
def test_a_change_that_runs_to_its_end_counts(
    ending: Warehouse, states: list[str], faults: dict[str, list[str]]
) -> None:
    ending.workspace.states, ending.workspace.faults = [states], faults
    assert ending.run(CHANGE) == [{"one": 1}]
    assert ending.workspace.cancelled == []


def test_an_apply_that_is_throttled_for_minutes_ends_at_once(warehouse: Warehouse) -> None:
    warehouse.workspace.faults = {"submit": ["429"] * 1000}
    control = ApplyControl()

    def pause_long(_seconds: float) -> None:
        threading.Timer(0.2, control.stop.request).start()
        pause(60)

    runner = open_runner(warehouse.workspace, calls=Calls(pause=pause_long))
    plan = TablePlan(tuple(CreateTable(orders(name=f"t{n}")) for n in range(5)))
    before = monotonic()
    with pytest.raises(ApplyStoppedError) as stopped:
        ActionRunner(runner, CatalogAddressing(), DATABRICKS).apply(compiled(plan), control=control)
    assert monotonic() - before < 30
    assert {outcome.kind for outcome in stopped.value.outcomes} == {OutcomeKind.STOPPED}
    assert warehouse.workspace.submitted == []
