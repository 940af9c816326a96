"""A run's report as JSON, as long as it may be; and the schema of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from delta_engine.config.json_schema import described_schema
from delta_engine.report.json_text import json_text
from delta_engine.report.run_report import RunReport

SCHEMA_URI: Final = "urn:delta-engine:run-report:v1"

MOST_BYTES_OF_A_NOTEBOOK: Final = 4_000_000
"""The Jobs API returns the first 5 MB of what a notebook exits with (docs.databricks.com: "NotebookOutput")."""

_LONGEST_MESSAGE: Final = 500


def run_json(report: RunReport) -> str:
    """Return a report as one indented JSON document."""
    return json_text(report)


def short_run_json(report: RunReport, most_bytes: int = MOST_BYTES_OF_A_NOTEBOOK) -> str:
    """Return a report on one line, without what makes it too long: `left_out` says what that was."""
    text = ""
    for candidate in _shorter(report):
        text = json_text(candidate, indent=None)
        if len(text.encode("utf-8")) <= most_bytes:
            break
    return text


def run_schema() -> str:
    """Return the schema as indented JSON: what `docs/schemas/run-report-v1.json` holds."""
    return described_schema(RunReport, uri=SCHEMA_URI, title="Delta Engine run report")


def _shorter(report: RunReport) -> Iterator[RunReport]:
    """Yield a report, and then ever shorter ones: what failed stays longest."""
    yield report
    tables = tuple(
        replace(table, statements=(), actions=()) if table.error is None else table for table in report.tables
    )
    yield replace(report, tables=tables, left_out="actions and statements of tables that are done")
    tables = tuple(
        replace(
            table,
            statements=(),
            actions=(),
            error=replace(table.error, message=table.error.message[:_LONGEST_MESSAGE], sql=None),
        )
        for table in tables
        if table.error is not None
    )
    yield replace(
        report, tables=tables, left_out="tables that are done; actions, statements and the ends of messages"
    )
    yield replace(report, tables=(), warnings=(), left_out="tables and warnings")
