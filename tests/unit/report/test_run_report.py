"""What a run did, as data: the report, its JSON and schema, how it is shortened, and its history."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from jsonschema import Draft202012Validator

from delta_engine.actions import Align, Create, DropTable, TablePlan
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.backends.sql_runner import Row
from delta_engine.cli.run_view import print_report
from delta_engine.config.settings import load_settings
from delta_engine.drift.observation import Observation
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import ConfigError, StatementError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import Outcome, OutcomeKind, RunStatement
from delta_engine.job import short_run_json
from delta_engine.models import Column, ForeignKey, QualifiedName, Schema, Table, View
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.histories import RunHistory
from delta_engine.orchestrate.orchestrator import plan_sync
from delta_engine.orchestrate.runs import open_run
from delta_engine.report.json_documents import report_json
from delta_engine.report.run_report import (
    ResourceRun,
    RunEnd,
    RunReport,
    RunStatus,
    TableStatus,
    run_report,
)
from tests.builders.deployment import FACTS, deployment_over
from tests.builders.engines import engine_on
from tests.builders.models import orders
from tests.builders.published_schemas import report_schema
from tests.fakes.platform import FakePlatform, recorded, with_plan
from tests.fakes.recording_sql_runner import RecordingSqlRunner, refuse

AT = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
STARTED: dict[str, Any] = {"run_id": "1", "operation": "sync", "facts": FACTS, "started_at": AT}
HISTORY = "`dev`.`delta_engine`.`run_history`"

PARENT = orders(Column("id", "bigint", is_nullable=False), name="b", primary_key=["id"])
CHILD = replace(orders(name="c"), foreign_keys=(ForeignKey(("id",), "dev.silver.b", ("id",)),))
MODELS = (orders(name="a"), PARENT, CHILD, orders(name="d"))


class Refusing(FakePlatform):
    """Refuses one table's statements, and keeps those about the history apart."""

    def __init__(self, failing: str | None = None) -> None:
        super().__init__()
        self.failing = failing
        self.models = {model.qualified_name.key: model for model in MODELS}
        self.history: list[str] = []
        self.history_error: Exception | None = None

    def run(self, sql: str) -> Sequence[Row]:
        if HISTORY in sql:
            self.history.append(sql)
            if self.history_error is not None:
                raise self.history_error
            return ()
        return super().run(sql)


def reported(
    platform: Refusing, folder: Path, *models: Table, stop_after: int | None = None
) -> tuple[RunReport, list[str]]:
    deployment, control = deployment_over(folder), ApplyControl()
    notes: list[str] = []
    engine = engine_on(platform, platform, deployment, run_history=RunHistory(platform, HISTORY))
    done: list[object] = []

    def count(outcome: object) -> None:
        done.append(outcome)
        if len(done) == stop_after:
            control.stop.request()

    with open_run(engine, "sync", notes.append) as run:
        report = apply_planned(run, plan_sync(run, models or MODELS), count, control).report
        assert recorded(deployment).write_id == report.run_id
        return report, notes


def test_a_run_in_which_a_table_fails(tmp_path: Path) -> None:
    report, _ = reported(Refusing("b"), tmp_path)
    assert report.status is RunStatus.PARTIAL
    by_name = {table.table.rsplit(".", 1)[1]: table for table in report.tables}
    assert {name: table.status for name, table in by_name.items()} == {
        "a": TableStatus.CREATED,
        "b": TableStatus.FAILED,
        "c": TableStatus.SKIPPED,
        "d": TableStatus.CREATED,
    }
    error = by_name["b"].error
    assert error is not None
    assert (error.message, error.error_class, error.statements_done) == ("no", "NO", 0)
    assert (error.sql or "").startswith("CREATE TABLE `dev`.`silver`.`b`")
    assert [statement.is_done for statement in by_name["b"].statements] == [False]
    assert by_name["a"].actions == ("+ table with 1 column",)
    skipped = by_name["c"].error
    assert skipped is not None
    assert (skipped.sql, skipped.message) == (None, "it depends on table dev.silver.b, which failed")
    assert report.counts == {
        "created": 2,
        "changed": 0,
        "dropped": 0,
        "failed": 1,
        "skipped": 1,
        "stopped": 0,
        "not_started": 0,
        "unchanged": 0,
        "statements": 2,
        "retries": 0,
        "verified": 0,
        "schemas": 0,
    }
    assert (report.environment, report.run_by, report.run_url) == ("test", FACTS.who, FACTS.run_url)
    assert report.ended_at >= report.started_at


def test_a_run_that_is_ended_early(tmp_path: Path) -> None:
    report, _ = reported(Refusing(), tmp_path, stop_after=1)
    assert report.status is RunStatus.STOPPED
    assert report.tables[0].status is TableStatus.CREATED
    assert report.tables[-1].status is TableStatus.NOT_STARTED


def test_a_run_without_anything_to_do(tmp_path: Path) -> None:
    platform = Refusing()
    reported(platform, tmp_path, MODELS[0])
    report, _ = reported(platform, tmp_path, MODELS[0])
    assert (report.status, report.tables, report.counts["unchanged"]) == (RunStatus.UNCHANGED, (), 1)


@pytest.fixture
def report(tmp_path: Path) -> RunReport:
    return reported(Refusing("b"), tmp_path)[0]


def test_the_published_schema_judges_real_reports(report: RunReport) -> None:
    validator = Draft202012Validator(json.loads(report_schema(RunReport)))
    document = json.loads(report_json(report))
    validator.validate(document)
    validator.validate({**document, "of a newer minor": 1})
    assert document["format"] == "delta-engine/run-report"
    assert document["tables"][1]["error"]["error_class"] == "NO"
    document["tables"][0]["status"] = "fine"
    assert not validator.is_valid(document)


def test_a_report_is_made_as_short_as_it_has_to_be(report: RunReport) -> None:
    whole = short_run_json(report)
    assert json.loads(whole) == json.loads(report_json(report))
    failed = {"dev.silver.b", "dev.silver.c"}
    text = short_run_json(report, len(whole.encode()) - 1)
    shorter = json.loads(text)
    assert shorter["left_out"] == "actions and statements of tables that are done"
    assert len(shorter["tables"]) == 4
    shorter = json.loads(short_run_json(report, len(text.encode()) - 1))
    assert {table["table"] for table in shorter["tables"]} == failed
    shortest = json.loads(short_run_json(report, 10))
    assert (shortest["left_out"], shortest["counts"]) == ("tables and warnings", dict(report.counts))


def test_the_history_costs_one_statement(tmp_path: Path) -> None:
    platform = Refusing("b")
    report, notes = reported(platform, tmp_path)
    (sql,) = platform.history
    assert sql.startswith(f"INSERT INTO {HISTORY} BY NAME")
    assert (sql.count("('table', "), sql.count("('run', ")) == (4, 1)
    assert sql.rindex("('table', ") < sql.index("('run', ")
    assert f"'{report.run_id}'" in sql
    assert notes == []
    assert sqlglot.parse_one(sql.replace(" BY NAME", ""), dialect="databricks")


def test_schemas_are_reported_and_kept_as_tables_are(tmp_path: Path) -> None:
    class NoSchemas(Refusing):
        def run(self, sql: str) -> Sequence[Row]:
            if sql.startswith("CREATE SCHEMA"):
                raise StatementError("ask ann", sql=sql, error_class="PERMISSION_DENIED")
            return super().run(sql)

    platform = NoSchemas()
    engine = engine_on(
        platform, platform, deployment_over(tmp_path), run_history=RunHistory(platform, HISTORY)
    )
    with open_run(engine, "sync") as run:
        planned = plan_sync(run, MODELS[:1])
        plan = TablePlan((*planned.plan.changes, Create(Schema("dev", "silver"))))
        report = apply_planned(run, with_plan(planned, plan)).report
    (schema,) = report.schemas
    assert (schema.schema, schema.status) == ("dev.silver", TableStatus.FAILED)
    assert [(statement.sql, statement.is_done) for statement in schema.statements] == [
        ("CREATE SCHEMA `dev`.`silver`", False)
    ]
    assert report.counts["schemas"] == 1
    (sql,) = platform.history
    assert (sql.count("('schema', "), sql.count("('table', "), sql.count("('run', ")) == (1, 1, 1)
    row = next(line for line in sql.splitlines() if line.startswith("('schema', "))
    assert "'dev.silver'" in row
    assert "'failed'" in row
    assert "'PERMISSION_DENIED'" in row
    assert "CREATE SCHEMA" in row


@pytest.mark.parametrize(
    "error",
    [StatementError("it is gone", sql="", error_class="SCHEMA_NOT_FOUND"), ConnectionError("it is gone")],
)
def test_a_history_that_cannot_be_written_is_a_warning(error: Exception, tmp_path: Path) -> None:
    platform = Refusing()
    platform.history_error = error
    report, notes = reported(platform, tmp_path)
    assert report.status is RunStatus.DONE
    assert notes == ["the run could not be added to its history: it is gone"]


def test_moments_of_the_history_are_utc(report: RunReport) -> None:
    elsewhere = datetime(2026, 3, 1, 8, tzinfo=timezone(timedelta(hours=-5)))
    runner = RecordingSqlRunner()
    RunHistory(runner, HISTORY).append(replace(report, started_at=elsewhere))
    assert "TIMESTAMP '2026-03-01 13:00:00.000000 UTC'" in runner.statements[-1]


def test_a_missing_history_is_created_with_types_that_spark_has(report: RunReport) -> None:
    answers = iter(["TABLE_OR_VIEW_NOT_FOUND"])
    runner = RecordingSqlRunner(
        lambda sql: refuse(sql, condition) if (condition := next(answers, "")) else ()
    )
    RunHistory(runner, HISTORY).append(report)
    assert runner.verbs == ["INSERT", "CREATE", "INSERT"]
    (created,) = sqlglot.parse(runner.statements[1], dialect="databricks")
    assert isinstance(created, sqlglot.exp.Create)
    types = {column.args["kind"].sql("databricks") for column in created.find_all(sqlglot.exp.ColumnDef)}
    assert types == {"STRING", "TIMESTAMP", "BIGINT", "BOOLEAN", "DOUBLE"}


def test_the_configuration_names_the_history(project: Path) -> None:
    assert load_settings(project / "conf", "local").run_history is None
    path = project / "conf" / "local.yml"
    text = path.read_text()
    path.write_text(text + "apply: {history_table: '${catalog}.ops.run_history'}\n")
    history = load_settings(project / "conf", "local").run_history
    assert history == QualifiedName("dev", "ops", "run_history")
    path.write_text(text + "apply: {history_table: run_history}\n")
    with pytest.raises(ConfigError, match="history_table must be the full name of a table"):
        load_settings(project / "conf", "local")


def test_timings_show_the_slowest_first(report: RunReport, capsys: pytest.CaptureFixture[str]) -> None:
    slowest = replace(report.tables[3], seconds=12.5)
    view = ResourceRun(resource="view.dev.gold.v", status=TableStatus.CREATED, seconds=13)
    print_report(replace(report, tables=(*report.tables[:3], slowest), others=(view,)), with_timings=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines.pop(1).split() == ["view", "dev.gold.v", "created", "0", "0", "13.000"]
    assert lines[0].split() == ["resource", "status", "statements", "retries", "seconds"]
    assert lines[1].split() == ["dev.silver.d", "created", "1", "0", "12.500"]
    assert len(lines) == 6


def test_actions_hide_what_looks_like_a_secret(tmp_path: Path) -> None:
    platform = Refusing()
    reported(platform, tmp_path, orders(name="a"))
    secretive = replace(orders(name="a"), comment="see password=s3cr3t")
    platform.models["dev.silver.a"] = secretive
    report, _ = reported(platform, tmp_path, secretive)
    assert [table.actions for table in report.tables] != [()]
    assert "s3cr3t" not in report_json(report)


def test_a_table_that_could_not_be_dropped_is_none_of_the_models() -> None:
    plan = TablePlan((DropTable(QualifiedName("dev", "silver", "gone"), 0),))
    failure = StatementError("no", sql="DROP", error_class="NO")
    outcome = Outcome(name=plan.drop_tables[0].table, kind=OutcomeKind.FAILED, failure=failure)
    planned = PlannedRun(plan=plan, basis=Observation(models=(orders(name="a"), orders(name="b"))))
    assert run_report(planned, [outcome], RunEnd(at=AT), **STARTED).counts["unchanged"] == 2


@pytest.mark.parametrize(
    ("models", "end"),
    [
        ((View("dev", "gold", "v", "SELECT 1 AS a"),), "1 view, 1 statement"),
        (
            (orders(name="a"), View("dev", "gold", "v", "SELECT 1 AS a")),
            "1 view, 1 table, 2 statements; 0 verified",
        ),
    ],
)
def test_no_end_counts_what_is_not_read_again(models: Sequence[Table | View], end: str) -> None:
    """A comment of a view, and what schemas have, is applied without a second read."""
    names = [model.qualified_name for model in models]
    plan = TablePlan(tuple(Align(name, (SetTableComment("new", "old"),)) for name in names))
    sent = (RunStatement(sql="COMMENT", seconds=0.1),)
    outcomes = [Outcome(name=name, kind=OutcomeKind.CHANGED, runs=sent) for name in names]
    assert run_report(PlannedRun(plan=plan), outcomes, RunEnd(at=AT), **STARTED).summary == end
