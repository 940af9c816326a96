"""The drift history: which statements are sent, how many, and what their refusals lead to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import pytest
import sqlglot

from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.backends.sql_runner import Row
from delta_engine.drift.drift_report import DriftReport, PastReport, ResourceDrift
from delta_engine.drift.drifted_resources import Attribution, Finding
from delta_engine.errors import StatementError
from delta_engine.orchestrate.histories import DriftHistory
from tests.fakes.recording_sql_runner import RecordingSqlRunner, refuse

TABLE = "`dev`.`delta_engine`.`drift_history`"
CHECKED_AT = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=timezone.utc)


def answering(*script: Sequence[Row] | str | None) -> RecordingSqlRunner:
    """Return a runner that gives these answers in turn, conditions as refusals, and then no rows."""
    answers = iter(script)

    def run(sql: str) -> Sequence[Row]:
        answer = next(answers, ())
        return refuse(sql, answer) if answer is None or isinstance(answer, str) else answer

    return RecordingSqlRunner(run)


def finding(field: str = "column amount type", *, changed: Attribution | None = None) -> Finding:
    return Finding(
        kind=DriftKind.COLUMN_TYPE,
        field=field,
        expected="decimal(18,2)",
        actual=None,
        severity=Severity.HIGH,
        changed=changed,
    )


def report(*findings: Finding) -> DriftReport:
    drifted = (ResourceDrift(resource="table.dev.silver.orders", findings=findings),) if findings else ()
    return DriftReport(
        environment="dev",
        checked_at=CHECKED_AT,
        serial=7,
        lineage="git:abc",
        tables_checked=3,
        drifted=drifted,
    )


@pytest.mark.parametrize(("findings", "inserts"), [(0, 1), (1, 1), (499, 1), (500, 2), (2_000, 5)])
def test_a_report_takes_one_statement_for_500_rows(findings: int, inserts: int) -> None:
    runner = answering()
    DriftHistory(runner, TABLE).append(report(*(finding(f"column c{n} type") for n in range(findings))), "r1")
    assert runner.verbs == ["INSERT"] * inserts
    assert sum(sql.count("('finding', ") for sql in runner.statements) == findings
    assert [sql.count("('run', ") for sql in runner.statements] == [*[0] * (inserts - 1), 1]


def test_the_runs_row_comes_after_its_findings() -> None:
    runner = answering()
    DriftHistory(runner, TABLE).append(report(finding(), finding("column b type")), "r1")
    (sql,) = runner.statements
    assert sql.rindex("('finding', ") < sql.index("('run', ")


def test_moments_are_written_in_utc_and_unknowns_as_null() -> None:
    runner = answering()
    elsewhere = timezone(timedelta(hours=-5))
    moment = datetime(2026, 2, 28, 20, 0, tzinfo=elsewhere)
    changed = Attribution(who="ana", at=moment, operation="ADD COLUMNS")
    DriftHistory(runner, TABLE).append(report(finding(changed=changed), finding("column b type")), "r1")
    (sql,) = runner.statements
    assert "TIMESTAMP '2026-03-01 12:30:15.123456 UTC', 7, 'git:abc'" in sql
    assert "'high', 'ana', TIMESTAMP '2026-03-01 01:00:00.000000 UTC', 'ADD COLUMNS')" in sql
    assert "'decimal(18,2)', NULL, 'high', NULL, NULL, NULL)" in sql


def test_hostile_texts_stay_literals() -> None:
    runner = answering()
    DriftHistory(runner, TABLE).append(report(finding("it's ${x} \\ \n; DROP TABLE x --")), "r'1")
    (sql,) = runner.statements
    assert r"'it\'s $\{x} \\ \n; DROP TABLE x --'" in sql
    (parsed,) = sqlglot.parse(sql, dialect="databricks")
    assert isinstance(parsed, sqlglot.exp.Insert)


MISSING = ["TABLE_OR_VIEW_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND.WITHOUT_SUGGESTION", "DELTA_TABLE_NOT_FOUND"]
MISSING += ["DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST", "PATH_NOT_FOUND"]
CREATED = ["TABLE_OR_VIEW_ALREADY_EXISTS", "DELTA_TABLE_ALREADY_EXISTS", "DELTA_METADATA_CHANGED"]
CREATED += ["DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "DELTA_CONCURRENT_WRITE", "DELTA_PROTOCOL_CHANGED"]


@pytest.mark.parametrize("condition", MISSING)
def test_only_a_missing_table_is_made(condition: str) -> None:
    runner = answering(condition)
    DriftHistory(runner, TABLE).append(report(), "r1")
    assert runner.verbs == ["INSERT", "CREATE", "INSERT"]
    assert runner.statements[0] == runner.statements[2]
    (created,) = sqlglot.parse(runner.statements[1], dialect="databricks")
    assert isinstance(created, sqlglot.exp.Create)


@pytest.mark.parametrize("condition", CREATED)
def test_a_table_that_another_run_creates_meanwhile_is_used(condition: str) -> None:
    runner = answering("PATH_NOT_FOUND", condition, "DELTA_TABLE_NOT_FOUND", condition)
    DriftHistory(runner, TABLE).append(report(), "r1")
    assert runner.verbs == ["INSERT", "CREATE", "INSERT", "CREATE", "INSERT"]


@pytest.mark.parametrize(
    ("script", "verbs"),
    [
        (["INSUFFICIENT_PERMISSIONS"], ["INSERT"]),
        ([None], ["INSERT"]),
        (["TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"], ["INSERT", "CREATE"]),
        (["TABLE_OR_VIEW_NOT_FOUND", None], ["INSERT", "CREATE"]),
        (["PATH_NOT_FOUND", ()] * 4 + ["PATH_NOT_FOUND"], ["INSERT", "CREATE"] * 4 + ["INSERT"]),
    ],
)
def test_other_refusals_pass_through(script: list[Sequence[Row] | str | None], verbs: list[str]) -> None:
    runner = answering(*script)
    with pytest.raises(StatementError) as refusal:
        DriftHistory(runner, TABLE).append(report(), "r1")
    assert refusal.value.error_class == script[-1]
    assert runner.verbs == verbs


def test_recent_runs_come_back_oldest_first_from_one_statement() -> None:
    counts = {"drifted": 1, "deleted": "2", "unmanaged": 3, "high": 4, "medium": 5, "low": 6}
    newest, oldest = 1_772_368_215_123_456, "1772281815000001"
    runner = answering([{"at": newest, **counts}, {"at": oldest, **counts}])
    runs = DriftHistory(runner, TABLE).recent("it's", 2)
    assert [run.at for run in runs] == [datetime(2026, 2, 28, 12, 30, 15, 1, tzinfo=timezone.utc), CHECKED_AT]
    assert runs[1] == PastReport(at=CHECKED_AT, drifted=1, deleted=2, unmanaged=3, high=4, medium=5, low=6)
    (sql,) = runner.statements
    assert sql.endswith(
        r"WHERE row_type = 'run' AND environment = 'it\'s' ORDER BY checked_at DESC, run_id DESC LIMIT 2"
    )


def test_there_are_no_recent_runs_without_a_table() -> None:
    assert DriftHistory(answering("PATH_NOT_FOUND"), TABLE).recent("dev") == ()
    with pytest.raises(StatementError):
        DriftHistory(answering("INSUFFICIENT_PERMISSIONS"), TABLE).recent("dev")
