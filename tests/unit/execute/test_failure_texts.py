"""Failures as text: at most ten rows each, equal ones together; JSON, log and deployment state keep all."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.execute.outcomes import AnyOutcome, Outcome, OutcomeKind, RunStatement
from delta_engine.models import FunctionName, QualifiedName, SchemaName, ViewName
from delta_engine.telemetry.context import in_context
from delta_engine.telemetry.visible import counted, rows_of
from tests.projects.catalog_project import CatalogProject
from tests.projects.commandline import CommandLine

MANY_LINES = "\n".join(f"  `column_{number}` bigint" for number in range(200))
CREATE = f"CREATE TABLE `dev`.`silver`.`orders` (\n{MANY_LINES}\n)\nUSING delta"
TRACE = "[DELTA_X] no.\n" + "\n".join(
    f"\tat org.apache.spark.Class.method(Class.scala:{n})" for n in range(80)
)
NOTE = "(--json and the log have full messages and statements)"


def failed(name: str, message: str, sql: str = "", done: int = 0) -> AnyOutcome:
    return Outcome(
        name=QualifiedName("dev", "silver", name),
        kind=OutcomeKind.FAILED,
        runs=(RunStatement(sql="COMMENT", seconds=1),) * done,
        failure=StatementError(message, sql=sql, error_class=None),
    )


def failures(*outcomes: AnyOutcome) -> str:
    """Return the text of an error without its first line."""
    return str(ApplyFailedError(outcomes)).split("\n", 1)[1]


def test_failures_of_every_kind_are_counted_and_shown() -> None:
    function, view = FunctionName("dev", "silver", "f"), ViewName("dev", "silver", "v")
    outcomes = [
        replace(failed("x", "no"), name=view),
        failed("orders", "no"),
        replace(failed("x", "no"), name=function),
        Outcome(name=ViewName("dev", "silver", "w"), kind=OutcomeKind.CREATED),
    ]
    assert str(ApplyFailedError(outcomes)).split("\n") == [
        "1 of 1 functions and 1 of 1 tables and 1 of 2 views failed:",
        "function dev.silver.f: no (after 0 statements)",
        "table dev.silver.orders: no (after 0 statements)",
        "view dev.silver.v: no (after 0 statements)",
    ]


def test_a_short_failure_is_whole() -> None:
    assert (
        failures(failed("orders", "no", "DROP x", 1))
        == "table dev.silver.orders: no (after 1 statement, in: DROP x)"
    )


@pytest.mark.parametrize(
    "message", ["no", TRACE, "x" * 9000, "word " * 2000, f"[PARSE] no\n== SQL ==\n{CREATE}"]
)
@pytest.mark.parametrize("sql", ["", "DROP TABLE x", CREATE, f"SELECT {'a, ' * 3000}b", "`" * 5000])
@pytest.mark.parametrize("count", [1, 2, 3, 12, 40])
def test_no_failure_takes_more_than_ten_rows(message: str, sql: str, count: int) -> None:
    text = failures(*(failed(f"t{number}", message, sql) for number in range(count)))
    assert rows_of(text) <= 10 * (count if count < 3 else 1)
    is_whole = text.count(message) == text.count(sql) == count
    assert is_whole or NOTE in text or not (sql or len(message) > 100)


def test_a_long_failure_begins_with_its_message_and_its_statement() -> None:
    lines = failures(failed("orders", TRACE, CREATE)).split("\n")
    assert lines[0] == "table dev.silver.orders: [DELTA_X] no."
    (begin,) = (line for line in lines if "after 0 statements" in line)
    assert begin.endswith(" … (after 0 statements, in: CREATE TABLE `dev`.`silver`.`orders` (")
    assert lines[-2:] == ["  `column_2` bigint …", f"  {NOTE}"]


def test_equal_failures_are_one_with_a_count() -> None:
    message = "no space for `dev`.`silver`.`{0}`, dev.silver.{0}"
    equal = [failed(f"t{number}", message.format(f"t{number}"), CREATE, number % 2) for number in range(12)]
    text = failures(*equal[:6], failed("other", "no", "DROP"), *equal[6:])
    assert text.split("\n") == [
        "12 tables: no space for <table>, <table>",
        *(f"  table dev.silver.t{number} (after {counted(number % 2, 'statement')})" for number in range(7)),
        "  and 5 more",
        f"  {NOTE}",
        "table dev.silver.other: no (after 0 statements, in: DROP)",
    ]


def test_two_equal_failures_stay_two_and_schemas_are_counted_as_schemas() -> None:
    assert failures(failed("a", "no"), failed("b", "no")).count("no (after") == 2
    schemas = [
        Outcome(
            name=SchemaName("dev", name),
            kind=OutcomeKind.FAILED,
            failure=StatementError(f"dev.{name} is taken", sql="", error_class=None),
        )
        for name in "abc"
    ]
    assert failures(*schemas).split("\n")[0] == "3 schemas: <schema> is taken"


def test_python_is_told_where_python_has_the_rest() -> None:
    with in_context(interface="python"):
        assert "(the error's outcomes and the log have" in failures(failed("orders", "no", CREATE))


def refusing(run: Callable[[str], Sequence[Row]]) -> Callable[[str], Sequence[Row]]:
    def refused(sql: str) -> Sequence[Row]:
        if sql.startswith("CREATE TABLE"):
            raise StatementError(TRACE, sql=sql, error_class="DELTA_X")
        return run(sql)

    return refused


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine) -> CatalogProject:
    """Return a project with twelve tables, none of which can be created."""
    columns = ", ".join(f"{{name: column_{number}, type: bigint}}" for number in range(200))
    project = CatalogProject(tmp_path, monkeypatch, delta_engine)
    project.declare(*(f"name: t{number}, columns: [{columns}]" for number in range(12)))
    monkeypatch.setattr(project.catalog, "run", refusing(project.catalog.run))
    return project


def test_json_has_whole_messages_and_statements(project: CatalogProject) -> None:
    done = project.run("sync --yes --json")
    errors = [table["error"] for table in json.loads(done.stdout)["tables"]]
    assert len(errors) == 12
    assert all(error["message"] == TRACE and "`column_199` bigint" in error["sql"] for error in errors)
    shown = done.stderr.partition("failed: 12 of 12 tables failed:\n")[2]
    assert shown.startswith("12 tables: [DELTA_X] no.\n")
    assert "column_" not in shown


def test_the_log_has_whole_messages_and_statements(
    project: CatalogProject, delta_engine: CommandLine
) -> None:
    lines = delta_engine("--log-json", "-e", "dev", "sync", "--yes").stderr.splitlines()
    failures = [record for record in map(json.loads, lines) if record["event"] == "table not done"]
    assert len(failures) == 12
    assert all(record["error"] == TRACE and "`column_199` bigint" in record["sql"] for record in failures)
