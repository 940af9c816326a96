"""Drift history: an append-only Delta table with a row for every run and for every finding.

An INSERT is one commit, and a run's own row is its last: if it exists, all findings of the run do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Final

from delta_engine.actions.drift_policy import Severity
from delta_engine.backends.error_conditions import is_missing_table
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.drift.drift_report import Attribution, DriftReport, Finding, PastRun
from delta_engine.errors import StatementError
from delta_engine.execute.history_table import HistoryTable, Value
from delta_engine.sql.text import quote_ident, sql_literal

HISTORY_TABLE: Final = "drift_history"
"""The table's name, in the schema of the deployment state: the bundle's dashboard asks for it."""

_COMMENT: Final = (
    "Delta Engine: what every drift report found. A run's row is written after all of its findings; findings without "
    "one belong to a run that broke off."
)

_COLUMNS: Final = {
    "row_type": ("string", "run: what a report counted. finding: one thing that it found."),
    "run_id": ("string", "The report's run; the same in its findings."),
    "environment": ("string", "The environment that was looked at."),
    "checked_at": ("timestamp", "When the catalog was read."),
    "serial": ("bigint", "The serial of the deployment state that it was compared with."),
    "lineage": ("string", "The commit that was deployed last."),
    "tables_checked": ("bigint", "Runs: tables that were compared with what was applied."),
    "drifted": ("bigint", "Runs: tables that were not as they were applied."),
    "deleted": ("bigint", "Runs: tables that were applied and were gone."),
    "unmanaged": ("bigint", "Runs: tables in managed schemas that were in no model."),
    "high": ("bigint", "Runs: findings of severity high."),
    "medium": ("bigint", "Runs: findings of severity medium."),
    "low": ("bigint", "Runs: findings of severity low."),
    "max_severity": ("string", "Runs: the worst severity; null without findings."),
    "resource": (
        "string",
        "Findings: the key, table.<catalog>.<schema>.<table> or schema.<catalog>.<schema>.",
    ),
    "kind": ("string", "Findings: what was done, such as column_dropped."),
    "field": ("string", "Findings: what it was done to."),
    "expected": ("string", "Findings: as it was applied last; null for what was not there."),
    "actual": ("string", "Findings: as it was; null for what was gone."),
    "severity": ("string", "Findings: low, medium or high."),
    "changed_by": ("string", "Findings: the author of the change; null if unknown."),
    "changed_at": ("timestamp", "Findings: the time of the change; null if unknown."),
    "operation": (
        "string",
        "Findings: the name of the operation that did it, in Delta's history or in the audit log.",
    ),
}
"""Type and comment by name."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


class DriftHistory:
    """The history of the environments that share a table. The schema of the table must exist.

    Its methods raise `StatementError` if the platform refuses a statement.
    """

    def __init__(self, runner: SqlRunner, table: str) -> None:
        self._runner = runner
        self._table = table
        self._rows = HistoryTable(runner, table, columns=_COLUMNS, comment=_COMMENT)

    def append(self, report: DriftReport, run_id: str) -> None:
        """Add a report without ignored findings, 499 findings per statement. Create the table if it is missing."""
        self._rows.append(list(_rows(report, run_id)))

    def recent(self, environment: str, limit: int = 60) -> tuple[PastRun, ...]:
        """Return the counts of the last reports of an environment, oldest first; none without a table."""
        counts = ", ".join(map(quote_ident, ("drifted", "deleted", "unmanaged", "high", "medium", "low")))
        # A number, because Spark returns timestamps to Python as naive local times, and one hour a year exists twice.
        sql = (
            f"SELECT unix_micros(checked_at) AS at, {counts} FROM {self._table} "
            f"WHERE row_type = 'run' AND environment = {sql_literal(environment)} "
            f"ORDER BY checked_at DESC, run_id DESC LIMIT {limit}"
        )
        try:
            rows = self._runner.run(sql)
        except StatementError as error:
            if is_missing_table(error):
                return ()
            raise
        return tuple(_past_run(row) for row in reversed(rows))


def _rows(report: DriftReport, run_id: str) -> Iterator[Mapping[str, Value]]:
    common: Mapping[str, Value] = {
        "run_id": run_id,
        "environment": report.environment,
        "checked_at": report.checked_at,
        "serial": report.serial,
        "lineage": report.lineage,
    }
    for resource, finding in report.findings():
        yield {"row_type": "finding", **common, "resource": resource, **_of_finding(finding)}
    yield {"row_type": "run", **common, **_of_run(report)}


def _of_finding(finding: Finding) -> Mapping[str, Value]:
    changed = finding.changed or Attribution()
    return {
        "kind": finding.kind.value,
        "field": finding.field,
        "expected": finding.expected,
        "actual": finding.actual,
        "severity": finding.severity.value,
        "changed_by": changed.who,
        "changed_at": changed.at,
        "operation": changed.operation,
    }


def _of_run(report: DriftReport) -> Mapping[str, Value]:
    return {
        "tables_checked": report.tables_checked,
        "drifted": len(report.drifted),
        "deleted": len(report.deleted),
        "unmanaged": len(report.unmanaged),
        "max_severity": report.max_severity and report.max_severity.value,
        **{severity.value: report.count(severity) for severity in Severity},
    }


def _past_run(row: Row) -> PastRun:
    counts = {name: int(str(value)) for name, value in row.items()}
    return PastRun(at=_EPOCH + timedelta(microseconds=counts.pop("at")), **counts)
