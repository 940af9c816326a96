"""Runs that are ended early: what runs goes on to its end, no other statement starts, and what was done is recorded."""

import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.actions import Align, AlignTable, Create, CreateTable, TablePlan
from delta_engine.aspects.column_comments import ColumnComment, SetColumnComments
from delta_engine.aspects.owner import ChangeOwner
from delta_engine.aspects.table_comment import SetSchemaComment, SetTableComment
from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.cancellation import Stop, pause, stopped_by_signals, terminated_as_interrupted
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ApplyStoppedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import AnyOutcome, Outcome, OutcomeKind
from delta_engine.execute.statement_runner import StatementRunner
from delta_engine.models import QualifiedName, Schema, SchemaName, View
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.orchestrator import plan_sync
from delta_engine.orchestrate.runs import open_run
from tests.builders.deployment import deployment_over
from tests.builders.engines import engine_on, runner_on
from tests.builders.models import orders
from tests.fakes.planning import compiled
from tests.fakes.platform import FakePlatform, recorded, with_plan
from tests.fakes.recording_sql_runner import RecordingSqlRunner

CREATES = tuple(CreateTable(orders(name=f"t{n}")) for n in range(5))
TABLES = compiled(TablePlan(CREATES))


class StoppingRunner(RecordingSqlRunner):
    def __init__(self, stop: Stop, at: int) -> None:
        super().__init__()
        self._stop = stop
        self._at = at

    def run(self, sql: str) -> Sequence[Row]:
        super().run(sql)
        if len(self.statements) == self._at:
            self._stop.request()
        return ()


def test_what_runs_goes_on_to_its_end_and_nothing_else_starts() -> None:
    control = ApplyControl()
    runner = StoppingRunner(control.stop, at=2)
    with pytest.raises(ApplyStoppedError) as stopped:
        runner_on(runner).apply(TABLES, control=control)
    kinds = [outcome.kind for outcome in stopped.value.outcomes]
    assert kinds == [OutcomeKind.CREATED] * 2 + [OutcomeKind.STOPPED] * 3
    assert len(runner.statements) == 2
    assert str(stopped.value) == (
        "2 of 5 tables were done, 0 in part, 3 not begun. Run again to apply the rest."
    )


def test_a_running_statement_names_its_table_and_no_path() -> None:
    name = QualifiedName("dev", "silver", "orders")
    address = PathAddressing(Path("/a/long/path")).table(name)
    control, shown = ApplyControl(), list[str]()

    class Runner(RecordingSqlRunner):
        def run(self, sql: str) -> Sequence[Row]:
            shown.extend(running.sql for running in control.running.values())
            return super().run(sql)

    runner = Runner()
    StatementRunner(runner=runner, name=name, control=control, address=address).run(f"DROP TABLE {address}")
    assert (shown, runner.statements) == (["DROP TABLE dev.silver.orders"], [f"DROP TABLE {address}"])


def test_a_table_can_be_stopped_between_its_statements() -> None:
    control = ApplyControl()
    actions = (SetTableComment("Orders", ""), SetColumnComments((ColumnComment("id", "Key", ""),)))
    plan = TablePlan((AlignTable(QualifiedName("dev", "silver", "orders"), actions),))
    with pytest.raises(ApplyStoppedError) as stopped:
        runner_on(StoppingRunner(control.stop, at=1)).apply(compiled(plan), control=control)
    (outcome,) = stopped.value.outcomes
    assert (outcome.kind, outcome.statements) == (OutcomeKind.STOPPED, 1)
    assert str(stopped.value).splitlines()[1] == "table dev.silver.orders: stopped after 1 statement"


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (
            1,
            [
                "0 of 3 resources were done, 1 in part, 2 not begun. Run again to apply the rest.",
                "schema dev.gold: stopped after 1 statement",
            ],
        ),
        (
            3,
            [
                "1 of 3 resources were done, 1 in part, 1 not begun. Run again to apply the rest.",
                "view dev.gold.v: stopped after 1 statement",
            ],
        ),
    ],
)
def test_what_was_stopped_counts_resources_of_all_kinds(at: int, message: list[str]) -> None:
    control = ApplyControl()
    gold = Schema("dev", "gold")
    table, view = orders(), View("dev", "gold", "v", "SELECT 1 AS a", tags={"a": "b"})
    comment = Align(gold.qualified_name, (SetSchemaComment("Ready", ""),))
    plan = TablePlan((Create(gold), comment, CreateTable(table), Create(view)))
    plan_on_uc = runner_on(RecordingSqlRunner()).compile(plan)
    with pytest.raises(ApplyStoppedError) as stopped:
        runner_on(StoppingRunner(control.stop, at=at), parallelism=1).apply(plan_on_uc, control=control)
    assert str(stopped.value).splitlines() == message
    done: list[AnyOutcome] = [
        replace(outcome, kind=OutcomeKind.CREATED, failure=None) for outcome in stopped.value.outcomes
    ]
    done.append(Outcome(name=SchemaName("dev", "folder"), kind=OutcomeKind.CREATED))  # of tables by path
    assert str(ApplyStoppedError(done)) == "all 3 resources were done before the stop."


def test_every_request_says_what_is_being_waited_for() -> None:
    asked_twice = threading.Event()
    told: list[str] = []

    class SlowRunner(RecordingSqlRunner):
        def run(self, sql: str) -> Sequence[Row]:
            control.stop.request()
            control.stop.request()
            assert asked_twice.wait(10)
            return super().run(sql)

    def notify(note: str) -> None:
        told.append(note)
        if len(told) == 2:
            asked_twice.set()

    control = ApplyControl(notify=notify)
    with pytest.raises(ApplyStoppedError):
        runner_on(SlowRunner()).apply(TABLES, control=control)
    assert len(told) == 2  # the two came before anybody looked
    assert "still waiting for 1 running statement," in told[0]
    assert "\n  dev.silver.t0  0 s  CREATE TABLE dev.silver.t0 ( `id` bigint )" in told[1]


@pytest.mark.parametrize(
    ("condition", "kinds"),
    [
        ("RESOURCE_EXHAUSTED", [OutcomeKind.STOPPED] * 5),
        ("TEMPORARILY_UNAVAILABLE", [OutcomeKind.FAILED, *[OutcomeKind.STOPPED] * 4]),  # it may be done
    ],
)
def test_a_stopped_run_makes_no_further_attempt(condition: str, kinds: list[OutcomeKind]) -> None:
    class Refusing(RecordingSqlRunner):
        def run(self, sql: str) -> Sequence[Row]:
            super().run(sql)
            raise StatementError("no", sql=sql, error_class=condition)

    runner, stop = Refusing(), Stop()
    # The wait is the real one: the request to stop ends it.
    control = ApplyControl(stop=stop, notify=lambda _note: stop.request())
    with pytest.raises(ApplyStoppedError) as stopped:
        runner_on(runner).apply(TABLES, control=control, reread=lambda _table: ())
    assert len(runner.statements) == 1
    assert [outcome.kind for outcome in stopped.value.outcomes] == kinds


def test_waits_end_for_all_that_work_for_what_is_to_end() -> None:
    outer, waits, woken = Stop(), threading.Event(), threading.Event()
    inner = Stop(within=outer)

    def wait() -> None:
        with inner.as_current():
            waits.set()
            pause(60)
        woken.set()

    threading.Thread(target=wait, daemon=True).start()
    assert waits.wait(10)
    outer.request()
    assert woken.wait(10)
    assert inner.is_requested()


def test_what_goes_on_after_a_request_pauses_as_ever() -> None:
    stop = Stop()
    stop.request()
    before = time.monotonic()
    with stop.as_current():
        pause(0.05)
    assert time.monotonic() - before >= 0.05


def test_schemas_end_early_as_well() -> None:
    control, seen = ApplyControl(), list[str]()
    plan = TablePlan(
        (
            *CREATES,
            *tuple(Create(Schema("dev", f"s{n}")) for n in range(3)),
        )
    )
    runner = StoppingRunner(control.stop, at=1)
    with pytest.raises(ApplyStoppedError) as stopped:
        runner_on(runner).apply(
            compiled(plan), lambda outcome: seen.append(outcome.kind.value), control=control
        )
    assert len(runner.statements) == 1
    assert [schema.kind.value for schema in stopped.value.schemas] == ["created", "stopped", "stopped"]
    assert seen[:3] == ["created", "stopped", "stopped"]
    assert {table.kind for table in stopped.value.tables} == {OutcomeKind.STOPPED}


def test_what_is_left_to_do_about_a_schema_once_the_run_is_to_end_is_no_failure() -> None:
    control = ApplyControl()
    align = Align(SchemaName("dev", "silver"), (SetSchemaComment("new", ""), ChangeOwner("bob", "ann")))
    plan = TablePlan(
        (
            *CREATES,
            align,
        )
    )
    with pytest.raises(ApplyStoppedError) as stopped:
        runner_on(StoppingRunner(control.stop, at=2)).apply(compiled(plan), control=control)
    (outcome,) = stopped.value.schemas
    assert (outcome.kind, outcome.statements) == (OutcomeKind.STOPPED, 1)
    assert "failed" not in str(stopped.value)


def test_a_schema_that_was_not_begun_is_not_recorded(tmp_path: Path) -> None:
    platform, deployment, control = FakePlatform(), deployment_over(tmp_path), ApplyControl()
    control.stop.request()
    schema = Schema("dev", "silver", comment="x")
    engine = engine_on(platform, platform, deployment)
    with open_run(engine, "sync") as run:
        planned = plan_sync(run, [schema])
        plan = TablePlan((Create(Schema("dev", "silver", "x")),))
        with pytest.raises(ApplyStoppedError):
            apply_planned(run, with_plan(planned, plan), control=control).result()
    assert platform.statements == []
    assert recorded(deployment).resources == {}


class Broken(Exception):
    """What nobody expects of a runner."""


def test_an_error_that_ends_the_run_leaves_nobody_waiting() -> None:
    is_waiting = threading.Event()

    class HalfBroken(RecordingSqlRunner):
        def run(self, sql: str) -> Sequence[Row]:
            super().run(sql)
            if "`t0`" in sql:
                assert is_waiting.wait(10)
                raise Broken
            raise StatementError("no", sql=sql, error_class="RESOURCE_EXHAUSTED")

    runner = HalfBroken()
    control = ApplyControl(notify=lambda _note: is_waiting.set())
    with pytest.raises(Broken):
        runner_on(runner, parallelism=2).apply(TABLES, control=control)
    assert len(runner.statements) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_requests_while_something_listens(number: signal.Signals) -> None:
    before, stop = signal.getsignal(number), Stop()
    with stopped_by_signals(stop):
        signal.raise_signal(number)
        signal.raise_signal(number)
    assert stop.requests == 2
    assert signal.getsignal(number) is before


def test_a_signal_that_another_thread_gets_stops_the_run_while_a_statement_runs() -> None:
    """The system may deliver a signal to any thread, or right before the main thread begins to wait."""
    stopping, main = threading.Event(), threading.get_ident()
    control = ApplyControl(notify=lambda _note: stopping.set())

    class SignallingRunner(RecordingSqlRunner):
        def run(self, sql: str) -> Sequence[Row]:
            while sys._current_frames()[main].f_code.co_name != "_await_one":
                time.sleep(0.001)
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
            assert stopping.wait(10), "the run does not stop while a statement runs"
            return super().run(sql)

    with stopped_by_signals(control.stop), pytest.raises(ApplyStoppedError):
        runner_on(SignallingRunner(), parallelism=1).apply(TABLES, control=control)


def test_other_threads_hear_no_signals() -> None:
    before = signal.getsignal(signal.SIGINT)
    heard = []

    def listen() -> None:
        with stopped_by_signals(Stop()), terminated_as_interrupted():
            heard.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert heard == [before]


def test_a_termination_releases_what_an_interrupt_releases() -> None:
    with pytest.raises(KeyboardInterrupt), terminated_as_interrupted():
        signal.raise_signal(signal.SIGTERM)
