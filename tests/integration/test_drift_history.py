"""The drift history in real Delta tables: what goes in comes out, whoever looks, and whoever else writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.drift.drift_report import DriftReport, PastReport, ResourceDrift
from delta_engine.drift.drifted_resources import Attribution, Finding
from delta_engine.errors import StatementError
from delta_engine.orchestrate.histories import DRIFT_HISTORY, DriftHistory
from tests.fakes.recording_sql_runner import RecordingSqlRunner

CHECKED_AT = datetime(2026, 10, 25, 0, 30, 15, 123456, tzinfo=timezone.utc)  # an hour that Europe has twice
RACERS = 4

HOSTILE = [
    'it\'s "quoted" and `ticked`, a\\b\\',
    "${x} $\\{x} {{x}} %s :name\nfeed\r\ncarriage\ttab",
    "'); DROP TABLE x; --",
    "NULL",
    "",
    "表 Größe 🏔 \u2028 \u0000",
]


@pytest.fixture
def runner(spark: SparkSession) -> RecordingSqlRunner:
    return RecordingSqlRunner(SparkSqlRunner(spark).run)


@pytest.fixture
def table(tmp_path: Path) -> str:
    return f"delta.`{tmp_path / DRIFT_HISTORY}`"


@pytest.fixture(
    params=[
        "America/New_York",
        *(pytest.param(zone, marks=pytest.mark.long) for zone in ("UTC", "Asia/Kolkata")),
    ]
)
def time_zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    assert before is not None
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


def finding(text: str, severity: Severity = Severity.HIGH) -> Finding:
    changed = Attribution(who=text, at=CHECKED_AT - timedelta(hours=1), operation=text)
    return Finding(
        kind=DriftKind.PROPERTY, field=text, expected=text, actual=text, severity=severity, changed=changed
    )


def report(*findings: Finding, checked_at: datetime = CHECKED_AT, environment: str = "prod") -> DriftReport:
    drifted = (ResourceDrift(resource="table.dev.silver.orders", findings=findings),) if findings else ()
    return DriftReport(
        environment=environment,
        checked_at=checked_at,
        serial=7,
        lineage="git:abc",
        tables_checked=3,
        drifted=drifted,
    )


def test_the_first_report_makes_the_table_and_later_ones_take_one_statement(
    runner: RecordingSqlRunner, table: str
) -> None:
    history = DriftHistory(runner, table)
    assert history.recent("prod") == ()
    history.append(report(), "run-1")
    assert runner.verbs == ["SELECT", "INSERT", "CREATE", "INSERT"]
    runner.statements.clear()
    history.append(report(finding("a")), "run-2")
    assert len(history.recent("prod")) == 2
    assert runner.verbs == ["INSERT", "SELECT"]


def test_hostile_texts_come_back_as_they_were(runner: RecordingSqlRunner, table: str) -> None:
    for text in HOSTILE:
        given = replace(report(finding(text), environment=text), lineage=text)
        DriftHistory(runner, table).append(given, text)
    rows = runner.run(f"SELECT * FROM {table} WHERE row_type = 'finding'")
    names = ("run_id", "environment", "lineage", "field", "expected", "actual", "changed_by", "operation")
    assert sorted(str(row["field"]) for row in rows) == sorted(HOSTILE)
    for row in rows:
        assert {row[name] for name in names} == {row["field"]}
    for text in HOSTILE:
        assert len(DriftHistory(runner, table).recent(text)) == 1


def test_an_instant_is_the_same_in_every_time_zone(
    runner: RecordingSqlRunner, table: str, time_zone: str
) -> None:
    history = DriftHistory(runner, table)
    moments = [CHECKED_AT + timedelta(hours=hours) for hours in range(3)]
    for number, moment in enumerate(reversed(moments)):
        history.append(report(finding("a"), checked_at=moment), f"run-{number}")
    assert [run.at for run in history.recent("prod")] == moments
    (row,) = runner.run(
        f"SELECT DISTINCT date_format(to_utc_timestamp(changed_at, '{time_zone}'), 'yyyy-MM-dd HH:mm:ss.SSSSSS') "
        f"AS at FROM {table} WHERE row_type = 'finding'"
    )
    assert row["at"] == "2026-10-24 23:30:15.123456"


def test_runs_are_counted_as_reported_and_the_newest_are_recent(
    runner: RecordingSqlRunner, table: str
) -> None:
    drifted = (finding("a"), finding("b", Severity.LOW), finding("c", Severity.MEDIUM))
    given = replace(
        report(*drifted),
        deleted=(ResourceDrift(resource="table.dev.silver.gone", findings=(finding("d"),)),),
        unmanaged=(
            ResourceDrift(resource="table.dev.silver.x", findings=(finding("e", Severity.LOW),)),
            ResourceDrift(resource="table.dev.silver.y", findings=(finding("f", Severity.LOW),)),
        ),
    )
    history = DriftHistory(runner, table)
    history.append(given, "run-1")
    assert history.recent("prod") == (
        PastReport(at=CHECKED_AT, drifted=1, deleted=1, unmanaged=2, high=2, medium=1, low=3),
    )
    (row,) = runner.run(f"SELECT * FROM {table} WHERE row_type = 'run'")
    told = [row[name] for name in ("run_id", "serial", "lineage", "tables_checked", "max_severity")]
    assert told == ["run-1", 7, "git:abc", 3, "high"]
    assert {row[name] for name in ("resource", "kind", "field", "severity", "changed_at")} == {None}
    described = runner.run(f"DESCRIBE TABLE EXTENDED {table}")
    comments = {str(row["col_name"]): row["comment"] for row in described}
    assert all(comments[name] for name in row)

    for days, environment in ((2, "prod"), (1, "prod"), (9, "dev")):
        later = report(checked_at=CHECKED_AT + timedelta(days), environment=environment)
        history.append(later, f"run after {days} days")
    assert [(run.at - CHECKED_AT).days for run in history.recent("prod", 2)] == [1, 2]


@pytest.mark.long
def test_two_thousand_findings_are_written_in_five_statements_and_the_run_last(
    runner: RecordingSqlRunner, table: str
) -> None:
    history = DriftHistory(runner, table)
    history.append(report(), "run-0")
    runner.statements.clear()
    history.append(
        report(*(finding(f"property p{n}") for n in range(2_000)), checked_at=CHECKED_AT + timedelta(1)),
        "run-1",
    )
    assert runner.verbs == ["INSERT"] * 5
    assert [run.high for run in history.recent("prod")] == [0, 2_000]
    (row,) = runner.run(
        f"SELECT count(DISTINCT field) AS fields, count(*) AS findings FROM {table} "
        "WHERE row_type = 'finding' AND run_id = 'run-1'"
    )
    assert dict(row) == {"fields": 2_000, "findings": 2_000}
    (before,) = runner.run(
        f"SELECT count_if(row_type = 'run') AS runs, count(*) AS rows FROM {table} VERSION AS OF 5 "
        "WHERE run_id = 'run-1'"
    )
    assert dict(before) == {"runs": 0, "rows": 2_000}


@pytest.mark.parametrize("by", ["path", pytest.param("name", marks=pytest.mark.long)])
def test_several_that_make_the_table_at_once_all_succeed(
    runner: RecordingSqlRunner, tmp_path: Path, by: str
) -> None:
    name = f"spark_catalog.default.raced_{tmp_path.name.replace('-', '_')}"
    table = name if by == "name" else f"delta.`{tmp_path / DRIFT_HISTORY}`"
    start = threading.Barrier(RACERS, timeout=60)

    def race(number: int) -> None:
        start.wait()
        DriftHistory(runner, table).append(report(finding("a")), f"run-{number}")

    try:
        with ThreadPoolExecutor(RACERS) as threads:
            list(threads.map(race, range(RACERS)))
        (row,) = runner.run(f"SELECT count(DISTINCT run_id) AS runs, count(*) AS rows FROM {table}")
        assert dict(row) == {"runs": RACERS, "rows": 2 * RACERS}
    finally:
        if by == "name":
            runner.run(f"DROP TABLE IF EXISTS {table}")


def test_a_missing_schema_is_named(runner: RecordingSqlRunner) -> None:
    history = DriftHistory(runner, "spark_catalog.no_such_schema.drift_history")
    assert history.recent("prod") == ()
    with pytest.raises(StatementError, match="no_such_schema") as refusal:
        history.append(report(), "run-1")
    assert refusal.value.error_class == "SCHEMA_NOT_FOUND"
