"""The drift dashboard on real Spark: every query and every widget, over a table that the engine has filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pyspark.sql import SparkSession

from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import Row
from delta_engine.drift.drift_report import DriftReport, ResourceDrift
from delta_engine.drift.drifted_resources import Attribution, Finding
from delta_engine.orchestrate.histories import DRIFT_HISTORY, RUN_HISTORY, DriftHistory, RunHistory
from delta_engine.report.run_report import (
    ResourceRun,
    RunError,
    RunReport,
    RunStatus,
    TableRun,
    TableStatus,
)
from tests.bundle.dashboard_files import QUERIES, columns, widget_queries
from tests.fakes.recording_sql_runner import ScriptedSqlRunner

NOW = datetime.now(timezone.utc)  # the dashboard shows the last 90 days


def finding(field: str, severity: Severity, who: str | None = None) -> Finding:
    changed = Attribution(who=who, at=NOW - timedelta(days=3), operation="ADD COLUMNS") if who else None
    return Finding(
        kind=DriftKind.COLUMN_ADDED,
        field=field,
        expected=None,
        actual="int",
        severity=severity,
        changed=changed,
    )


FOUND = (
    finding("column b", Severity.LOW),
    finding("column a", Severity.HIGH, "ana"),
    finding("column c", Severity.MEDIUM, "ben"),
)


def report(environment: str, *findings: Finding, hours_ago: int) -> DriftReport:
    drifted = (ResourceDrift(resource="table.dev.silver.orders", findings=findings),) if findings else ()
    return DriftReport(environment=environment, checked_at=NOW - timedelta(hours=hours_ago), drifted=drifted)


def run(run_id: str, *, hours_ago: int, failed: bool) -> RunReport:
    """Return a run that changed one table, and maybe failed with another, and with a function."""
    error = RunError(message="ask ann", error_class="INSUFFICIENT_PERMISSIONS", sql="ALTER TABLE b")
    broken = TableRun(table="dev.silver.b", status=TableStatus.FAILED, seconds=0.5, error=error)
    function = ResourceRun(resource="function.dev.silver.mask", status=TableStatus.FAILED, error=error)
    done = TableRun(table="dev.silver.a", status=TableStatus.CHANGED, seconds=1.5, is_verified=True)
    started = NOW - timedelta(hours=hours_ago)
    return RunReport(
        run_id=run_id,
        operation="sync",
        environment="prod",
        status=RunStatus.PARTIAL if failed else RunStatus.DONE,
        started_at=started,
        ended_at=started + timedelta(seconds=3),
        seconds=3.0,
        run_by="ci",
        run_url="",
        lineage="git:0123abc",
        engine_version="0.1.0",
        platform_version="databricks sql",
        counts={"statements": 1, "retries": 0, "failed": int(failed), "skipped": 0},
        tables=(done, broken) if failed else (done,),
        others=(function,) if failed else (),
    )


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSqlRunner:
    """Return what answers the dashboard: three complete runs of each kind, and one that broke off."""
    folder = tmp_path_factory.mktemp("histories")
    runner, table = SparkSqlRunner(spark), f"delta.`{folder / DRIFT_HISTORY}`"
    kept = DriftHistory(runner, table)
    kept.append(report("prod", *FOUND[:2], hours_ago=49), "run-1")
    kept.append(report("prod", *FOUND, hours_ago=1), "run-2")
    kept.append(report("dev", hours_ago=2), "run-3")
    broken = report("dev", *(FOUND[:1] * 500), hours_ago=0)
    losing = ScriptedSqlRunner({"('run', ": ConnectionError()}, runner.run)  # a run's own row
    with pytest.raises(ConnectionError):
        DriftHistory(losing, table).append(broken, "run-4")
    runs = f"delta.`{folder / RUN_HISTORY}`"
    RunHistory(runner, runs).append(run("run-5", hours_ago=30, failed=True))
    RunHistory(runner, runs).append(run("run-6", hours_ago=1, failed=True))
    RunHistory(runner, runs).append(run("run-7", hours_ago=24 * 120, failed=False))
    for name, kept_in in ((DRIFT_HISTORY, table), (RUN_HISTORY, runs)):
        runner.run(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM {kept_in}")
    return runner


def answer(runner: SparkSqlRunner, query: Mapping[str, Any]) -> Sequence[Row]:
    """Ask as a widget does: its fields, over its dataset."""
    fields = ", ".join(f"{field['expression']} AS `{field['name']}`" for field in query["fields"])
    grouping = "" if query["disaggregated"] else "GROUP BY ALL"
    return runner.run(f"SELECT {fields} FROM ({QUERIES[query['datasetName']]}) {grouping}")


def test_the_dashboard_shows_what_the_history_has(history: SparkSqlRunner) -> None:
    shown = {name: [dict(row) for row in answer(history, query)] for name, query in widget_queries()}
    counters = {name: rows for name, rows in shown.items() if name.endswith("-counter")}
    assert counters == {
        f"{name}-counter": [{f"sum({name})": count}]
        for name, count in {
            "drifted": 1,
            "deleted": 0,
            "unmanaged": 0,
            "high": 1,
            "medium": 1,
            "low": 1,
        }.items()
    }
    findings = shown["latest-findings"]
    assert [(row["severity"], row["field"], row["changed_by"]) for row in findings] == [
        ("high", "column a", "ana"),
        ("medium", "column c", "ben"),
        ("low", "column b", None),
    ]
    bars = shown["findings-over-time"]
    assert {row["severity"] for row in bars} == {"high", "medium", "low"}
    assert sum(int(str(row["sum(findings)"])) for row in bars) == 5
    assert len({row["day"] for row in bars}) >= 2
    changes = {row["changed_by"]: row["first_reported"] == row["last_reported"] for row in shown["changes"]}
    assert changes == {"ana": False, "ben": True}
    runs = [(row["status"], row["tables"], row["failed"], row["run_by"]) for row in shown["runs"]]
    assert runs == [("partial", 2, 2, "ci"), ("partial", 2, 2, "ci")]
    unfinished = [
        (row["table_name"], row["error_class"], row["statement"]) for row in shown["unfinished-tables"]
    ]
    assert unfinished == [
        (name, "INSUFFICIENT_PERMISSIONS", "ALTER TABLE b") for name in ("dev.silver.b", "dev.silver.mask")
    ]


@pytest.mark.parametrize("name", QUERIES)
def test_every_query_runs_as_it_is_written(history: SparkSqlRunner, name: str) -> None:
    rows = history.run(QUERIES[name])
    assert list(rows[0]) == columns(name)
