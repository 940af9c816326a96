"""Runs over time: a Delta table with a row for every run and for every table that it was about, for dashboards.

A run's own row is the last one, and rows are only ever added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from delta_engine.execute.history_table import HistoryTable, Value
from delta_engine.report.run_report import RunError, RunReport, TableRun
from delta_engine.sql_runner import SqlRunner

HISTORY_TABLE: Final = "run_history"
"""The table's name, in the schema of the deployment state: the bundle's dashboard asks for it."""

_COMMENT: Final = (
    "Delta Engine: what every run did. A run's row is written after those of its tables; such without one belong to a "
    "run that broke off."
)

_COLUMNS: Final = {
    "row_type": ("string", "run: what a run counted. table: what became of one table."),
    "run_id": ("string", "The run; the same for its tables. The deployment state has it as its write_id."),
    "environment": ("string", "The environment that was deployed to."),
    "operation": ("string", "What was run, such as sync."),
    "started_at": ("timestamp", "When the run had the lock."),
    "ended_at": ("timestamp", "Runs: when everything was recorded."),
    "seconds": ("double", "Runs: from one to the other. Tables: what their statements took."),
    "status": (
        "string",
        "Runs: unchanged, done, partial, failed, stopped or unsaved. Tables: what became of them.",
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
    "failed": ("bigint", "Runs: tables that failed, or depend on one."),
    "table_name": ("string", "Tables: catalog.schema.table."),
    "error": ("string", "Tables: why they are not done; null if they are."),
    "error_class": ("string", "Tables: the platform's error condition."),
    "statement": ("string", "Tables: the statement that was refused."),
}
"""Type and comment by name."""


class RunHistory:
    """The history of every environment that shares a table.

    Args:
        runner: runs the statements.
        table: the SQL that addresses the table (`Addressing.table`); its schema must exist.
    """

    def __init__(self, runner: SqlRunner, table: str) -> None:
        self._rows = HistoryTable(runner, table, columns=_COLUMNS, comment=_COMMENT)

    def append(self, report: RunReport) -> None:
        """Add a run: one statement for up to 499 tables, and the table is made only where it is missing.

        Raises:
            StatementError: the platform refused a statement.
        """
        self._rows.append(list(_rows_of(report)))


def _rows_of(report: RunReport) -> Iterator[Mapping[str, Value]]:
    common: Mapping[str, Value] = {
        "run_id": report.run_id,
        "environment": report.environment,
        "operation": report.operation,
        "started_at": report.started_at,
    }
    for table in report.tables:
        yield {"row_type": "table", **common, **_of_table(table)}
    yield {"row_type": "run", **common, **_of_run(report)}


def _of_table(table: TableRun) -> Mapping[str, Value]:
    error = table.error or RunError(message="")
    return {
        "table_name": table.table,
        "status": table.status.value,
        "seconds": table.seconds,
        "statements": sum(one.is_done for one in table.statements),
        "retries": sum(one.retries for one in table.statements),
        "is_verified": table.is_verified,
        "error": error.message or None,
        "error_class": error.error_class,
        "statement": error.sql,
    }


def _of_run(report: RunReport) -> Mapping[str, Value]:
    return {
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
        "failed": report.counts["failed"] + report.counts["skipped"],
    }
