"""The runner of SQL warehouses: real databricks-sdk over real HTTP, against a workspace that misbehaves on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from time import monotonic

import pytest

from delta_engine.actions import CreateTable, TablePlan
from delta_engine.addressing import CatalogAddressing
from delta_engine.capabilities import DATABRICKS
from delta_engine.error_conditions import Transience, transience
from delta_engine.errors import ConfigError, StatementError
from delta_engine.execute.action_runner import ActionRunner, ApplyStoppedError, OutcomeKind
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.warehouse.calls import Calls
from delta_engine.execute.warehouse_sql_runner import WarehouseSqlRunner
from delta_engine.stop import Stop, StoppedError, pause
from tests.builders import orders
from tests.servers.fake_workspace import WAREHOUSE, Answer, FakeWorkspace, open_runner, serving

pytestmark = pytest.mark.servers

CHANGE = "ALTER TABLE dev.silver.orders ADD COLUMNS (a INT)"
ONE = Answer([("one", "INT")], [["1"]])


class Time:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def workspace() -> Iterator[FakeWorkspace]:
    with serving(FakeWorkspace(run=lambda _sql: ONE)) as running:
        yield running


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def runner(workspace: FakeWorkspace, time: Time, notes: list[str]) -> WarehouseSqlRunner:
    return open_runner(workspace, notify=notes.append, calls=Calls(pause=time.pause, clock=time))


def impatient(workspace: FakeWorkspace, time: Time, timeout_seconds: float) -> WarehouseSqlRunner:
    calls = Calls(pause=time.pause, clock=time)
    return open_runner(workspace, timeout_seconds=timeout_seconds, calls=calls)


def refused(runner: WarehouseSqlRunner, sql: str) -> StatementError:
    with pytest.raises(StatementError) as caught:
        runner.run(sql)
    assert caught.value.sql == sql
    return caught.value


def test_a_question_costs_one_round_trip(runner: WarehouseSqlRunner, workspace: FakeWorkspace) -> None:
    assert runner.run("SELECT 1 AS one") == [{"one": 1}]
    assert workspace.requests == ["submit"]
    (body,) = workspace.submitted
    assert (body["wait_timeout"], body["on_wait_timeout"]) == ("10s", "CONTINUE")


def test_a_change_is_handed_in_and_asked_after(runner: WarehouseSqlRunner, workspace: FakeWorkspace) -> None:
    workspace.run = lambda _sql: Answer()
    assert runner.run(CHANGE) == ()
    assert workspace.requests == ["submit", "ask"]
    (body,) = workspace.submitted
    assert body["wait_timeout"] == "0s"
    assert body["statement"] == CHANGE


def test_waits_grow_up_to_a_bound(runner: WarehouseSqlRunner, workspace: FakeWorkspace, time: Time) -> None:
    workspace.states = [["PENDING"] * 20]
    runner.run(CHANGE)
    assert time.pauses[:3] == [0.1, pytest.approx(0.15), pytest.approx(0.225)]
    assert time.pauses == sorted(time.pauses)
    assert max(time.pauses) == 5.0


def test_it_says_once_that_the_warehouse_starts_and_waits_however_long(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, notes: list[str]
) -> None:
    workspace.states = [["PENDING"] * 200, ["PENDING"] * 10]
    assert runner.run("SELECT 1 AS one") == [{"one": 1}]
    runner.run(CHANGE)
    assert notes == [f"waiting for SQL warehouse {WAREHOUSE}: it starts, or has a queue …"]


def test_a_short_queue_is_not_worth_a_word(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, notes: list[str]
) -> None:
    workspace.states = [["PENDING", "PENDING", "RUNNING", "RUNNING"]]
    runner.run(CHANGE)
    assert notes == []


def test_all_chunks_are_fetched(runner: WarehouseSqlRunner, workspace: FakeWorkspace) -> None:
    workspace.run = lambda _sql: Answer([("n", "BIGINT")], [[str(n)] for n in range(25)])
    workspace.chunk_rows = 10
    assert [row["n"] for row in runner.run("SELECT n FROM t")] == list(range(25))
    assert workspace.requests == ["submit", "chunk", "chunk"]


def test_values_are_what_spark_gives(runner: WarehouseSqlRunner, workspace: FakeWorkspace) -> None:
    columns = [
        ("text", "STRING", "it's \\ ü", "it's \\ ü"),
        ("letters", "VARCHAR(5)", "007", "007"),
        ("small", "TINYINT", "-1", -1),
        ("number", "BIGINT", "9007199254740993", 9007199254740993),
        ("yes", "BOOLEAN", "true", True),
        ("real", "DOUBLE", "1.5E10", 1.5e10),
        ("odd", "FLOAT", "-Infinity", float("-inf")),
        ("money", "DECIMAL(18,2)", "1.10", Decimal("1.10")),
        ("day", "DATE", "2026-02-03", date(2026, 2, 3)),
        (
            "at",
            "TIMESTAMP",
            "2026-02-03T04:05:06.789Z",
            datetime(2026, 2, 3, 4, 5, 6, 789000, tzinfo=timezone.utc),
        ),
        ("local", "TIMESTAMP_NTZ", "2026-02-03T04:05:06.789", datetime(2026, 2, 3, 4, 5, 6, 789000)),
        ("list", "ARRAY<INT>", '["1",null,"3"]', [1, None, 3]),
        ("pairs", "MAP<STRING, BOOLEAN>", '{"a":"true","b":null}', {"a": True, "b": None}),
        (
            "part",
            "STRUCT<jobId: STRING, runs: ARRAY<STRUCT<n: BIGINT, at: DATE>>>",
            '{"jobId":"7","runs":[{"n":"1","at":"2026-02-03"},{"n":2}]}',
            {"jobId": "7", "runs": [{"n": 1, "at": date(2026, 2, 3)}, {"n": 2, "at": None}]},
        ),
        ("unknown", "INTERVAL DAY TO SECOND", "1 00:00:00", "1 00:00:00"),
        ("nothing", "VOID", None, None),
        ("no_number", "INT", None, None),
        ("no_list", "ARRAY<INT>", None, None),
    ]
    workspace.run = lambda _sql: Answer(
        [(name, kind) for name, kind, _, _ in columns], [[text for _, _, text, _ in columns]]
    )
    (row,) = runner.run("SELECT * FROM t")
    assert row == {name: value for name, _, _, value in columns}


@pytest.mark.parametrize(
    ("type_text", "text"),
    [("INT", "one"), ("BOOLEAN", "maybe"), ("DATE", "today"), ("DECIMAL(3,1)", "x"), ("ARRAY<INT>", "{}")],
)
def test_a_value_that_is_not_of_its_type_is_refused(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, type_text: str, text: str
) -> None:
    workspace.run = lambda _sql: Answer([("c", type_text)], [[text]])
    assert refused(runner, "SELECT c FROM t").error_class == "UNREADABLE_RESULT"


def _truncated(answer: dict[str, dict[str, object]]) -> None:
    answer["manifest"]["truncated"] = True


def _one_row_more(answer: dict[str, dict[str, object]]) -> None:
    answer["manifest"]["total_row_count"] = 2


def _another_chunk(answer: dict[str, dict[str, object]]) -> None:
    answer["result"]["chunk_index"] = 1


def _the_same_chunk_again(answer: dict[str, dict[str, object]]) -> None:
    answer["result"]["next_chunk_index"] = 0


@pytest.mark.parametrize("tamper", [_truncated, _one_row_more, _another_chunk, _the_same_chunk_again])
def test_half_an_answer_is_none(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, tamper: Callable[[dict[str, object]], None]
) -> None:
    workspace.tampers = [tamper]
    assert refused(runner, "SELECT 1 AS one").error_class == "INCOMPLETE_RESULT"


def test_a_result_too_large_to_be_inline_is_downloaded_without_the_login(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    workspace.run = lambda _sql: Answer([("n", "INT")], [[str(n)] for n in range(25)])
    workspace.chunk_rows, workspace.inline_rows = 10, 20
    workspace.faults = {"download": ["500", "cut"]}
    assert [row["n"] for row in runner.run("SELECT n FROM t")] == list(range(25))
    assert [body["disposition"] for body in workspace.submitted] == ["INLINE", "EXTERNAL_LINKS"]


def test_a_download_that_is_refused_keeps_its_link_secret(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    workspace.inline_rows = 0
    workspace.faults = {"download": ["403"]}
    error = refused(runner, "SELECT 1 AS one")
    assert "status 403" in str(error)
    assert "secret" not in str(error)
    assert error.error_class is None


def test_a_refusal_is_data(runner: WarehouseSqlRunner, workspace: FakeWorkspace) -> None:
    def refuse(sql: str) -> Answer:
        raise StatementError(
            "somebody was faster.",
            sql=sql,
            error_class="DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES",
            sql_state="2D521",
        )

    workspace.run = refuse
    error = refused(runner, CHANGE)
    assert error.error_class == "DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES"
    assert error.sql_state == "2D521"
    assert workspace.requests == ["submit", "ask"]


def test_a_failure_without_a_condition_has_the_services_code(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    def refuse(sql: str) -> Answer:
        raise StatementError("the warehouse was stopped", sql=sql, error_class=None)

    workspace.run = refuse
    assert refused(runner, CHANGE).error_class == "BAD_REQUEST"


@pytest.mark.parametrize(
    ("fault", "sql"), [("429", "SELECT 1 AS one"), ("503", "SELECT 1 AS one"), ("429", CHANGE)]
)
def test_throttled_statements_are_handed_in_again(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, fault: str, sql: str
) -> None:
    workspace.faults = {"submit": [fault, fault], "ask": [fault]}
    assert runner.run(sql) == [{"one": 1}]
    assert len(workspace.submitted) == 1


@pytest.mark.parametrize("fault", ["lost", "cut", "html", "500"])
def test_a_change_whose_answer_is_lost_runs_once_and_nobody_claims_to_know(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, fault: str
) -> None:
    runner.run("SELECT 1 AS one")
    workspace.faults = {"submit": [fault]}
    error = refused(runner, CHANGE)
    assert error.error_class is None
    assert [body["statement"] for body in workspace.submitted[1:]] in ([CHANGE], [])


def test_a_change_that_finds_nobody_there_is_for_the_run_to_try_again(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    workspace.faults = {"submit": ["503"] * 9}
    error = refused(runner, CHANGE)
    assert transience(error) is Transience.UNAVAILABLE
    assert workspace.submitted == []


@pytest.mark.parametrize("fault", ["lost", "cut", "html", "500"])
def test_a_question_whose_answer_is_lost_is_asked_again(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, fault: str
) -> None:
    workspace.faults = {"submit": [fault]}
    assert runner.run("SELECT 1 AS one") == [{"one": 1}]


@pytest.mark.parametrize("fault", ["lost", "cut", "html", "500", "503"])
def test_answers_lost_on_the_way_to_the_end_are_asked_for_again(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, fault: str
) -> None:
    workspace.run = lambda _sql: Answer([("n", "INT")], [["1"], ["2"]])
    workspace.chunk_rows = 1
    workspace.states = [["RUNNING", "RUNNING"]]
    workspace.faults = {"ask": ["ok", fault], "chunk": [fault]}
    assert [row["n"] for row in runner.run("SELECT n FROM t")] == [1, 2]
    assert len(workspace.submitted) == 1


def test_a_warehouse_that_dies_leaves_a_change_in_doubt(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, time: Time
) -> None:
    workspace.faults = {"ask": ["404"]}
    error = refused(runner, CHANGE)
    assert error.error_class is None
    assert "accepted" in str(error)


def test_patience_has_an_end(runner: WarehouseSqlRunner, workspace: FakeWorkspace, time: Time) -> None:
    workspace.faults = {"ask": ["500"] * 200}
    assert refused(runner, CHANGE).error_class is None
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
    assert (error.error_class, isinstance(error, StoppedError)) == (None, False)
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
    assert (error.error_class, isinstance(error, StoppedError)) == (None, False)
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
        ActionRunner(runner, CatalogAddressing(), DATABRICKS).apply(plan, control=control)
    assert monotonic() - before < 30
    assert {one.kind for one in stopped.value.outcomes} == {OutcomeKind.STOPPED}
    assert workspace.submitted == []


def test_what_somebody_else_cancels_fails(runner: WarehouseSqlRunner, workspace: FakeWorkspace) -> None:
    workspace.states = [["RUNNING", "RUNNING", "forever"]]
    workspace.on_ask = lambda: workspace.cancel("statement-1")
    assert refused(runner, CHANGE).error_class == "STATEMENT_CANCELED"


def test_a_closed_change_was_done_and_a_closed_question_has_no_answer(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    workspace.states = [["CLOSED"], ["CLOSED"]]
    assert runner.run(CHANGE) == ()
    assert refused(runner, "SELECT 1 AS one").error_class == "INCOMPLETE_RESULT"


def test_a_statement_over_the_limit_is_not_even_sent(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    error = refused(runner, f"COMMENT ON TABLE t IS '{'ü' * 9_000_000}'")
    assert error.error_class == "STATEMENT_TOO_LARGE"
    assert workspace.requests == []


def test_a_warehouse_that_is_not_there_is_refused_with_the_way_out(
    workspace: FakeWorkspace, time: Time
) -> None:
    with pytest.raises(
        ConfigError, match=r"SQL warehouse 'wrong' cannot be used.*databricks warehouses list"
    ):
        open_runner(workspace, warehouse_id="wrong").run("SELECT 1 AS one")


def test_a_warehouse_that_may_not_be_used_is_refused_with_the_way_out(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    workspace.faults = {"submit": ["403"]}
    with pytest.raises(ConfigError, match="CAN USE"):
        runner.run("SELECT 1 AS one")


def test_a_right_that_is_lost_on_the_way_fails_one_statement(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    runner.run("SELECT 1 AS one")
    workspace.faults = {"submit": ["403"]}
    assert refused(runner, CHANGE).error_class == "PERMISSION_DENIED"


def test_nobody_at_that_address(time: Time) -> None:
    gone = FakeWorkspace(run=lambda _sql: ONE)
    in_a_hurry = Calls(pause=lambda seconds: time.pause(8 * seconds), clock=time)
    with serving(gone):
        runner = open_runner(gone, calls=in_a_hurry)
    with pytest.raises(ConfigError, match=r"nobody answers .* Correct DATABRICKS_HOST"):
        runner.run("SELECT 1 AS one")
    assert 0 < time.now < 30
