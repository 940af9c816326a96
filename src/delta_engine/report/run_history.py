"""The history of runs: a Delta table with a row per run, and per schema and table of its plan.

The table is append-only. A run's own row comes last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.execute.history_table import HistoryTable, Value
from delta_engine.report.run_report import RunError, RunReport, SchemaRun, TableRun, TableStatus

HISTORY_TABLE: Final = "run_history"
"""The table's name, in the schema of the deployment state; the bundle's dashboard queries it."""

_COMMENT: Final = (
    "Delta Engine: what every run did. A run's row is written after those of its schemas and tables; such without one "
    "belong to a run that broke off."
)

_COLUMNS: Final = {
    "row_type": ("string", "run: what a run counted. schema, table: what became of one of them."),
    "run_id": (
        "string",
        "The run; the same for its schemas and tables. The deployment state has it as its write_id.",
    ),
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
    "failed": ("bigint", "Runs: schemas and tables that failed, or depend on one."),
    "table_name": ("string", "Tables: catalog.schema.table. Schemas: catalog.schema."),
    "error": ("string", "Why it is not done, or, runs, could not be recorded; null if it is."),
    "error_class": ("string", "Schemas and tables: the platform's error condition."),
    "statement": ("string", "Schemas and tables: the statement that was refused."),
}
"""Type and comment by column name."""

_NOT_DONE: Final = (TableStatus.FAILED, TableStatus.SKIPPED)


class RunHistory:
    """The history of all environments that share a table; its SQL address is `table`, and its schema must exist."""

    def __init__(self, runner: SqlRunner, table: str) -> None:
        self._rows = HistoryTable(runner, table, columns=_COLUMNS, comment=_COMMENT)

    def append(self, report: RunReport) -> None:
        """Append a run, with one statement for up to 499 tables; create a missing table. May raise StatementError."""
        self._rows.append(list(_rows_of(report)))


def _rows_of(report: RunReport) -> Iterator[Mapping[str, Value]]:
    common: Mapping[str, Value] = {
        "run_id": report.run_id,
        "environment": report.environment,
        "operation": report.operation,
        "started_at": report.started_at,
    }
    for schema in report.schemas:
        yield {"row_type": "schema", **common, "table_name": schema.schema, **_of_resource(schema)}
    for table in report.tables:
        facts = {"table_name": table.table, "is_verified": table.is_verified, **_of_resource(table)}
        yield {"row_type": "table", **common, **facts}
    yield {"row_type": "run", **common, **_of_run(report)}


def _of_resource(resource: SchemaRun | TableRun) -> Mapping[str, Value]:
    error = resource.error or RunError(message="")
    return {
        "status": resource.status.value,
        "seconds": resource.seconds,
        "statements": sum(one.is_done for one in resource.statements),
        "retries": sum(one.retries for one in resource.statements),
        "error": error.message or None,
        "error_class": error.error_class,
        "statement": error.sql,
    }


def _of_run(report: RunReport) -> Mapping[str, Value]:
    resources: Sequence[SchemaRun | TableRun] = (*report.schemas, *report.tables)
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
        "failed": sum(one.status in _NOT_DONE for one in resources),
        "error": report.unsaved or None,
    }
