"""The histories of runs and of drift reports: Delta tables with a row for each run and for each of its parts.

An INSERT is one commit, and the row of a run comes last: if it exists, all rows of the run do. Rows are only added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Final, TypeAlias

from delta_engine.backends.error_conditions import is_conflict, is_missing_table
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.drift.drift_report import DriftReport, PastReport
from delta_engine.drift.drifted_resources import Attribution
from delta_engine.errors import StatementError
from delta_engine.models.types import AtomicType
from delta_engine.report.run_report import ResourceRun, RunError, RunReport, SchemaRun, TableRun, TableStatus
from delta_engine.sql.columns import sql_column_definition
from delta_engine.sql.tables import sql_create_table
from delta_engine.sql.text import idents, sql_literal

RUN_HISTORY: Final = "run_history"
"""The table's name, in the schema of the deployment state: the bundle's dashboard queries it."""

_RUN_COMMENT: Final = (
    "Delta Engine: what every run did. A run's row is written after those of its parts; parts without one belong to "
    "a run that broke off."
)

_RUN_COLUMNS: Final = {
    "row_type": ("string", "run: what a run counted. schema, function, policy, table, view: its result."),
    "run_id": ("string", "The run; the same for its parts. The deployment state has it as its write_id."),
    "environment": ("string", "The environment that was deployed to."),
    "operation": ("string", "What was run, such as sync."),
    "started_at": ("timestamp", "When the run had the lock."),
    "ended_at": ("timestamp", "Runs: when everything was recorded."),
    "seconds": ("double", "Runs: from one to the other. Others: what their statements took."),
    "status": (
        "string",
        "Runs: unchanged, done, partial, failed, stopped or unsaved. Others: what became of them.",
    ),
    "statements": ("bigint", "Statements that ran to their end."),
    "retries": ("bigint", "Attempts after the first."),
    "is_verified": (
        "boolean",
        "Tables: whether they were read once more, and were as they were meant to be.",
    ),
    "run_by": ("string", "Runs: who ran it."),
    "run_url": ("string", "Runs: where to watch it."),
    "lineage": ("string", "Runs: the deployed commit."),
    "engine_version": ("string", "Runs: the engine's version."),
    "platform_version": ("string", "Runs: the platform's version."),
    "tables": ("bigint", "Runs: tables of the plan."),
    "failed": ("bigint", "Runs: parts that failed, or depend on one."),
    "table_name": ("string", "Its name, such as catalog.schema.table."),
    "error": ("string", "Why it is not done, or, runs, could not be recorded; null if it is."),
    "error_class": ("string", "Parts: the platform's error condition."),
    "statement": ("string", "Parts: the statement that was refused."),
}
"""Type and comment by name."""

_NOT_DONE: Final = (TableStatus.FAILED, TableStatus.SKIPPED)

DRIFT_HISTORY: Final = "drift_history"
"""The table's name, in the schema of the deployment state: the bundle's dashboard asks for it."""

_DRIFT_COMMENT: Final = (
    "Delta Engine: what every drift report found. A run's row is written after all of its findings; findings without "
    "one belong to a run that broke off."
)

_DRIFT_COLUMNS: Final = {
    "row_type": ("string", "run: what a report counted. finding: one thing that it found."),
    "run_id": ("string", "The report's run; the same in its findings."),
    "environment": ("string", "The environment of the report."),
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

_ROWS_AT_ONCE: Final = 500  # one commit each: seconds on Databricks, whatever is in it

_ATTEMPTS: Final = 5
"""When several writers create the table at once, one may fail before the table exists."""

Value: TypeAlias = str | int | float | bool | datetime | None


class RunHistory:
    """The history of runs of every environment that shares a table."""

    def __init__(self, runner: SqlRunner, table: str) -> None:
        self._rows = HistoryTable(runner, table, columns=_RUN_COLUMNS, comment=_RUN_COMMENT)

    def append(self, report: RunReport) -> None:
        """Add a run: one statement for up to 499 tables. The table is created only if it is missing."""
        self._rows.append(list(_run_rows(report)))


class DriftHistory:
    """The history of drift reports of every environment that shares a table."""

    def __init__(self, runner: SqlRunner, table: str) -> None:
        self._rows = HistoryTable(runner, table, columns=_DRIFT_COLUMNS, comment=_DRIFT_COMMENT)

    def append(self, report: DriftReport, run_id: str) -> None:
        """Add a report without its ignored findings: one statement for up to 499 findings, and the missing table."""
        self._rows.append(list(_report_rows(report, run_id)))

    def recent(self, environment: str, limit: int = 60) -> tuple[PastReport, ...]:
        """Return the counts of the last reports of an environment, the oldest first; none if there is no table yet."""
        counts = idents(("drifted", "deleted", "unmanaged", "high", "medium", "low"))
        # A number, because Spark returns timestamps to Python as naive local times, and one hour a year exists twice.
        sql = (
            f"SELECT unix_micros(checked_at) AS at, {counts} FROM {self._rows.table} "
            f"WHERE row_type = 'run' AND environment = {sql_literal(environment)} "
            f"ORDER BY checked_at DESC, run_id DESC LIMIT {limit}"
        )
        try:
            rows = self._rows.runner.run(sql)
        except StatementError as error:
            if is_missing_table(error):
                return ()
            raise
        return tuple(_past_report(row) for row in reversed(rows))


@dataclass(frozen=True, slots=True)
class HistoryTable:
    """Appends rows to a table; raises `StatementError` if the platform refuses a statement.

    Args:
        table: the SQL that addresses the table (`Addressing.table`); its schema must exist.
        columns: type and comment by name.
    """

    runner: SqlRunner
    table: str
    columns: Mapping[str, tuple[str, str]]
    comment: str

    def append(self, rows: Sequence[Mapping[str, Value]]) -> None:
        """Append rows, up to 500 in a statement; create the table only if it is missing.

        Args:
            rows: values by column; columns that a row does not name are null.
        """
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            self._insert(rows[start : start + _ROWS_AT_ONCE])

    def _insert(self, rows: Sequence[Mapping[str, Value]]) -> None:
        names = idents(self.columns)
        values = ",\n".join(
            f"({', '.join(_literal(row.get(name)) for name in self.columns)})" for row in rows
        )
        # BY NAME: with a column list, Spark resolves the columns before a table by path, and fails.
        sql = f"INSERT INTO {self.table} BY NAME\nSELECT * FROM VALUES\n{values}\nAS found ({names})"
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self.runner.run(sql)
            except StatementError as error:
                if attempt == _ATTEMPTS or not is_missing_table(error):
                    raise
                self._create()
            else:
                return

    def _create(self) -> None:
        """Create the table, unless another writer has just created it."""
        columns = [
            sql_column_definition((name,), AtomicType(type_name), comment=comment)
            for name, (type_name, comment) in self.columns.items()
        ]
        try:
            self.runner.run(
                sql_create_table(self.table, columns=columns, comment=self.comment, properties={})
            )
        except StatementError as error:
            if not is_conflict(error):
                raise


def _run_rows(report: RunReport) -> Iterator[Mapping[str, Value]]:
    common: Mapping[str, Value] = {
        "run_id": report.run_id,
        "environment": report.environment,
        "operation": report.operation,
        "started_at": report.started_at,
    }
    for key, other in report.resources:
        kind, _, name = key.partition(".")
        if kind != "table":
            yield {"row_type": kind, **common, "table_name": name, **_resource_row(other)}
    for table in report.tables:
        facts = {"table_name": table.table, "is_verified": table.is_verified, **_resource_row(table)}
        yield {"row_type": "table", **common, **facts}
    yield {
        "row_type": "run",
        **common,
        "ended_at": report.ended_at,
        "seconds": report.seconds,
        "status": report.status.value,
        "statements": report.counts["statements"],
        "retries": report.counts["retries"],
        "run_by": report.run_by,
        "run_url": report.run_url,
        "lineage": report.lineage,
        "engine_version": report.engine_version,
        "platform_version": report.platform_version,
        "tables": len(report.tables),
        "failed": sum(resource.status in _NOT_DONE for _, resource in report.resources),
        "error": report.unsaved or None,
    }


def _resource_row(resource: SchemaRun | ResourceRun | TableRun) -> Mapping[str, Value]:
    error = resource.error or RunError(message="")
    return {
        "status": resource.status.value,
        "seconds": resource.seconds,
        "statements": sum(statement.is_done for statement in resource.statements),
        "retries": sum(statement.retries for statement in resource.statements),
        "error": error.message or None,
        "error_class": error.error_class,
        "statement": error.sql,
    }


def _report_rows(report: DriftReport, run_id: str) -> Iterator[Mapping[str, Value]]:
    """Yield the findings, then the run."""
    common: Mapping[str, Value] = {
        "run_id": run_id,
        "environment": report.environment,
        "checked_at": report.checked_at,
        "serial": report.serial,
        "lineage": report.lineage,
    }
    for resource, finding in report.findings():
        changed = finding.changed or Attribution()
        yield {
            "row_type": "finding",
            **common,
            "resource": resource,
            "kind": finding.kind.value,
            "field": finding.field,
            "expected": finding.expected,
            "actual": finding.actual,
            "severity": finding.severity.value,
            "changed_by": changed.who,
            "changed_at": changed.at,
            "operation": changed.operation,
        }
    yield {
        "row_type": "run",
        **common,
        "tables_checked": report.tables_checked,
        "max_severity": report.max_severity and report.max_severity.value,
        **report.counts,
    }


def _past_report(row: Row) -> PastReport:
    counts = {name: int(str(value)) for name, value in row.items()}
    return PastReport(at=_EPOCH + timedelta(microseconds=counts.pop("at")), **counts)


def _literal(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case datetime():
            # With its zone: otherwise the session's zone applies.
            moment = value.astimezone(timezone.utc).replace(tzinfo=None)
            return f"TIMESTAMP '{moment.isoformat(sep=' ', timespec='microseconds')} UTC'"
        case str():
            return sql_literal(value)
        case float():
            return f"{value}D"
    return str(value).lower()
