"""Refusals, lost answers, and warehouses that are not there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from delta_engine.backends.error_conditions import Transience, transience
from delta_engine.backends.warehouse.calls import Calls
from delta_engine.backends.warehouse_sql_runner import WarehouseSqlRunner
from delta_engine.errors import ConfigError, StatementError
from tests.error_forms import FORMS
from tests.servers.fake_workspace import Answer, FakeWorkspace, open_runner, serving
from tests.servers.warehouse_runner.warehouses import CHANGE, ONE, Time, refused

pytestmark = pytest.mark.servers


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


def saying(words: str, times: int = 1) -> Callable[[str], Answer]:
    """Return what fails statements with these words, so many times, and then runs them."""
    left = [words] * times

    def answer(sql: str) -> Answer:
        if left:
            raise StatementError(left.pop(), sql=sql, error_class=None)
        return ONE

    return answer


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sql", [CHANGE, "DESCRIBE TABLE t"])
def test_a_refusal_is_known_in_each_form(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, form: str, sql: str
) -> None:
    workspace.run = saying(FORMS[form]("PERMISSION_DENIED", "User does not have SELECT on Table 'a.b.c'."))
    error = refused(runner, sql)
    assert (error.error_class, error.is_outcome_unknown) == ("PERMISSION_DENIED", False)
    assert error.sql_state == ("56000" if form == "bracketed" else None)
    assert len(workspace.submitted) == 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sql", [CHANGE, "SELECT 1 AS one"])
def test_too_many_requests_are_sent_again_in_each_form(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, time: Time, form: str, sql: str
) -> None:
    workspace.run = saying(FORMS[form]("REQUEST_LIMIT_EXCEEDED", "Later."), times=2)
    assert runner.run(sql) == [{"one": 1}]
    assert len(workspace.submitted) == 3


def test_too_many_requests_for_good_are_a_refusal(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, time: Time
) -> None:
    workspace.run = saying("REQUEST_LIMIT_EXCEEDED: later", times=1000)
    assert transience(refused(runner, CHANGE)) is Transience.THROTTLED
    assert 240 < time.now < 320


@pytest.mark.parametrize("form", FORMS)
def test_a_platform_that_is_unavailable_is_for_the_run_to_look_at_in_each_form(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, form: str
) -> None:
    workspace.run = saying(FORMS[form]("TEMPORARILY_UNAVAILABLE", "Later."))
    assert transience(refused(runner, CHANGE)) is Transience.UNAVAILABLE


@pytest.mark.parametrize(
    ("fault", "sql"), [("429", "SELECT 1 AS one"), ("503", "SELECT 1 AS one"), ("429", CHANGE)]
)
def test_throttled_statements_are_handed_in_again(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, fault: str, sql: str
) -> None:
    workspace.faults = {"submit": [fault, fault], "ask": [fault]}
    assert runner.run(sql) == [{"one": 1}]
    assert len(workspace.submitted) == 1


@pytest.mark.parametrize("fault", ["lost", "cut", "html", "list", "500", "502"])
def test_a_change_whose_answer_is_lost_runs_once_and_nobody_claims_to_know(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, fault: str
) -> None:
    runner.run("SELECT 1 AS one")
    workspace.faults = {"submit": [fault]}
    error = refused(runner, CHANGE)
    assert error.is_outcome_unknown
    assert [body["statement"] for body in workspace.submitted[1:]] in ([CHANGE], [])


def test_a_change_that_finds_nobody_there_is_for_the_run_to_try_again(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    workspace.faults = {"submit": ["503"] * 9}
    error = refused(runner, CHANGE)
    assert transience(error) is Transience.UNAVAILABLE
    assert workspace.submitted == []


@pytest.mark.parametrize("fault", ["lost", "cut", "html", "list", "500", "502"])
def test_a_question_whose_answer_is_lost_is_asked_again(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, fault: str
) -> None:
    workspace.faults = {"submit": [fault]}
    assert runner.run("SELECT 1 AS one") == [{"one": 1}]


@pytest.mark.parametrize("fault", ["lost", "cut", "html", "list", "500", "502", "503"])
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
    assert error.is_outcome_unknown
    assert "accepted" in str(error)


def test_a_warehouse_that_never_says_how_a_change_gets_on_leaves_it_in_doubt(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, time: Time
) -> None:
    workspace.faults = {"ask": ["empty"] * 100}
    error = refused(runner, CHANGE)
    assert error.is_outcome_unknown
    assert "the answer has no status" in str(error)
    assert 0 < time.now < 310


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
    error = refused(runner, CHANGE)
    assert (error.error_class, error.is_outcome_unknown) == ("PERMISSION_DENIED", False)


def test_nobody_at_that_address(time: Time) -> None:
    gone = FakeWorkspace(run=lambda _sql: ONE)
    in_a_hurry = Calls(pause=lambda seconds: time.pause(8 * seconds), clock=time)
    with serving(gone):
        runner = open_runner(gone, calls=in_a_hurry)
    with pytest.raises(ConfigError, match=r"is unreachable: .* Correct DATABRICKS_HOST"):
        runner.run("SELECT 1 AS one")
    assert 0 < time.now < 30
