"""Refusals, lost answers, and missing warehouses."""

from collections.abc import Callable

import pytest

from delta_engine.backends.databricks_sdk import Calls
from delta_engine.backends.error_conditions import Transience, transience
from delta_engine.errors import ConfigError, StatementError
from tests.builders.error_forms import FORMS
from tests.fakes.workspace import Answer, FakeWorkspace, open_runner, serving
from tests.servers.warehouse_runner.warehouses import CHANGE, ONE, QUERY, Time, Warehouse

LOST = ("lost", "cut", "html", "list", "500", "502")


def failing(
    message: str, times: int = 1, *, error_class: str | None = None, sql_state: str | None = None
) -> Callable[[str], Answer]:
    """Return what fails statements with a message, so many times, and then runs them."""
    left = [message] * times

    def answer(sql: str) -> Answer:
        if left:
            raise StatementError(left.pop(), sql=sql, error_class=error_class, sql_state=sql_state)
        return ONE

    return answer


def test_a_refusal_is_data(warehouse: Warehouse) -> None:
    condition = "DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES"
    warehouse.workspace.run = failing("a conflict.", error_class=condition, sql_state="2D521")
    error = warehouse.refused(CHANGE)
    assert (error.error_class, error.sql_state) == (condition, "2D521")
    assert warehouse.workspace.requests == ["submit", "ask"]


def test_a_token_that_the_workspace_does_not_accept_is_named(warehouse: Warehouse) -> None:
    warehouse.workspace.faults["submit"] = ["401"]
    with pytest.raises(ConfigError, match="does not accept the token: told to say 401") as refused:
        warehouse.run(QUERY)
    assert "DATABRICKS_TOKEN" in refused.value.way_out


def test_a_token_that_expires_is_named(warehouse: Warehouse) -> None:
    assert warehouse.run(QUERY)
    warehouse.workspace.faults["submit"] = ["401"]
    error = warehouse.refused(CHANGE)
    assert (error.error_class, error.is_outcome_unknown) == ("UNAUTHENTICATED", False)
    assert "the token is missing, wrong or expired" in error.first_line


def test_a_failure_without_a_condition_has_the_services_code(warehouse: Warehouse) -> None:
    warehouse.workspace.run = failing("the warehouse was stopped")
    assert warehouse.refused(CHANGE).error_class == "BAD_REQUEST"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sql", [CHANGE, "DESCRIBE TABLE t"])
def test_a_refusal_is_known_in_each_form(warehouse: Warehouse, form: str, sql: str) -> None:
    message = FORMS[form]("PERMISSION_DENIED", "User does not have SELECT on Table 'a.b.c'.")
    warehouse.workspace.run = failing(message)
    error = warehouse.refused(sql)
    assert (error.error_class, error.is_outcome_unknown) == ("PERMISSION_DENIED", False)
    assert error.sql_state == ("56000" if form == "bracketed" else None)
    assert len(warehouse.workspace.submitted) == 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sql", [CHANGE, QUERY])
def test_too_many_requests_are_retried_in_each_form(warehouse: Warehouse, form: str, sql: str) -> None:
    warehouse.workspace.run = failing(FORMS[form]("REQUEST_LIMIT_EXCEEDED", "Later."), times=2)
    assert warehouse.run(sql) == [{"one": 1}]
    assert len(warehouse.workspace.submitted) == 3


def test_lasting_throttling_is_a_refusal(warehouse: Warehouse) -> None:
    warehouse.workspace.run = failing("REQUEST_LIMIT_EXCEEDED: later", times=1000)
    assert transience(warehouse.refused(CHANGE)) is Transience.THROTTLED
    assert 240 < warehouse.time.now < 320


@pytest.mark.parametrize("form", FORMS)
def test_the_runner_does_not_retry_while_the_platform_is_unavailable(warehouse: Warehouse, form: str) -> None:
    warehouse.workspace.run = failing(FORMS[form]("TEMPORARILY_UNAVAILABLE", "Later."))
    assert transience(warehouse.refused(CHANGE)) is Transience.UNAVAILABLE


@pytest.mark.parametrize(("fault", "sql"), [("429", QUERY), ("503", QUERY), ("429", CHANGE)])
def test_throttled_requests_are_repeated(warehouse: Warehouse, fault: str, sql: str) -> None:
    warehouse.workspace.faults = {"submit": [fault, fault], "ask": [fault]}
    assert warehouse.run(sql) == [{"one": 1}]
    assert len(warehouse.workspace.submitted) == 1


@pytest.mark.parametrize("fault", LOST)
def test_a_change_with_a_lost_answer_runs_at_most_once(warehouse: Warehouse, fault: str) -> None:
    warehouse.run(QUERY)
    warehouse.workspace.faults = {"submit": [fault]}
    assert warehouse.refused(CHANGE).is_outcome_unknown
    assert [body["statement"] for body in warehouse.workspace.submitted[1:]] in ([CHANGE], [])


def test_a_change_that_an_unavailable_service_refuses_is_transient(warehouse: Warehouse) -> None:
    warehouse.workspace.faults = {"submit": ["503"] * 9}
    assert transience(warehouse.refused(CHANGE)) is Transience.UNAVAILABLE
    assert warehouse.workspace.submitted == []


@pytest.mark.parametrize("fault", LOST)
def test_a_query_with_a_lost_answer_is_repeated(warehouse: Warehouse, fault: str) -> None:
    warehouse.workspace.faults = {"submit": [fault]}
    assert warehouse.run(QUERY) == [{"one": 1}]


@pytest.mark.parametrize("fault", [*LOST, "503"])
def test_lost_states_and_chunks_are_requested_again(warehouse: Warehouse, fault: str) -> None:
    workspace = warehouse.workspace
    workspace.run = lambda _sql: Answer([("n", "INT")], [["1"], ["2"]])
    workspace.chunk_rows = 1
    workspace.states = [["RUNNING", "RUNNING"]]
    workspace.faults = {"ask": ["ok", fault], "chunk": [fault]}
    assert [row["n"] for row in warehouse.run("SELECT n FROM t")] == [1, 2]
    assert len(workspace.submitted) == 1


@pytest.mark.parametrize(
    ("faults", "message"), [(["404"], "accepted"), (["empty"] * 100, "the answer has no status")]
)
def test_a_change_that_cannot_be_polled_has_an_unknown_outcome(
    warehouse: Warehouse, faults: list[str], message: str
) -> None:
    warehouse.workspace.faults = {"ask": faults}
    error = warehouse.refused(CHANGE)
    assert error.is_outcome_unknown
    assert message in str(error)
    assert warehouse.time.now < 310


def test_a_statement_that_another_client_cancels_fails(warehouse: Warehouse) -> None:
    workspace = warehouse.workspace
    workspace.states = [["RUNNING", "RUNNING", "forever"]]
    workspace.on_ask = lambda: workspace.cancel("statement-1")
    assert warehouse.refused(CHANGE).error_class == "STATEMENT_CANCELED"


def test_a_closed_change_is_done_and_a_closed_query_has_no_answer(warehouse: Warehouse) -> None:
    warehouse.workspace.states = [["CLOSED"], ["CLOSED"]]
    assert warehouse.run(CHANGE) == ()
    assert warehouse.refused(QUERY).error_class == "INCOMPLETE_RESULT"


def test_a_statement_over_the_limit_is_not_sent(warehouse: Warehouse) -> None:
    error = warehouse.refused(f"COMMENT ON TABLE t IS '{'ü' * 9_000_000}'")
    assert error.error_class == "STATEMENT_TOO_LARGE"
    assert warehouse.workspace.requests == []


def test_a_missing_warehouse_is_refused_with_the_way_out(warehouse: Warehouse) -> None:
    with pytest.raises(
        ConfigError, match=r"SQL warehouse 'wrong' cannot be used.*databricks warehouses list"
    ):
        open_runner(warehouse.workspace, warehouse_id="wrong").run(QUERY)


def test_a_forbidden_warehouse_is_refused_with_the_way_out(warehouse: Warehouse) -> None:
    warehouse.workspace.faults = {"submit": ["403"]}
    with pytest.raises(ConfigError, match="CAN USE"):
        warehouse.run(QUERY)


def test_a_privilege_lost_meanwhile_fails_one_statement(warehouse: Warehouse) -> None:
    warehouse.run(QUERY)
    warehouse.workspace.faults = {"submit": ["403"]}
    error = warehouse.refused(CHANGE)
    assert (error.error_class, error.is_outcome_unknown) == ("PERMISSION_DENIED", False)


def test_an_unreachable_host_is_refused_with_the_way_out() -> None:
    time, gone = Time(), FakeWorkspace(run=lambda _sql: ONE)
    with serving(gone):
        runner = open_runner(gone, calls=Calls(pause=lambda seconds: time.pause(8 * seconds), clock=time))
    with pytest.raises(ConfigError, match=r"is unreachable: .* Correct DATABRICKS_HOST"):
        runner.run(QUERY)
    assert 0 < time.now < 30
