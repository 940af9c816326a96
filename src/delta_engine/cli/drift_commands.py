"""What `delta-engine drift` does: report, revert, accept."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text
from typing_extensions import assert_never

from delta_engine.actions.drift_policy import Severity
from delta_engine.cli.commands import open_project
from delta_engine.cli.exits import ExitCode
from delta_engine.cli.options import Context
from delta_engine.cli.run_view import TerminalView
from delta_engine.cli.terminal import confirm, print_note, say, status
from delta_engine.drift.drift_report import DriftReport
from delta_engine.drift.drifted_resources import DriftedResource, drifted_schemas, drifted_tables
from delta_engine.orchestrate.acceptance import accept
from delta_engine.orchestrate.drift_reports import drift_page, record_drift, report_drift
from delta_engine.orchestrate.environment import Environment
from delta_engine.orchestrate.use_cases import revert
from delta_engine.orchestrate.views import EditedModels
from delta_engine.plan_files.document import Options
from delta_engine.report.drift_text import drift_lines, drift_text, summary
from delta_engine.report.json_documents import report_json
from delta_engine.telemetry.visible import counted_resources

_COLOURS = {Severity.HIGH: "red", Severity.MEDIUM: "yellow", Severity.LOW: "cyan"}


class Format(Enum):
    """How to render a report."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What to do with a report.

    Args:
        path: the file to write; None for stdout.
        fail_on: the lowest severity that makes the exit code 2; None for never.
        is_recorded: whether to add it to the history.
    """

    rendering: Format
    path: Path | None
    fail_on: Severity | None
    is_recorded: bool


def print_drift(context: Context, options: Options, output: Output) -> None:
    """Report drift; change nothing. Exit with 2 at or above a severity."""
    project, environment = open_project(context, options)
    with status("reading the catalog …"):
        report = report_drift(environment, project.models, is_partial=project.is_partial)
    if output.is_recorded:
        record_drift(environment, report)
    if output.path is not None:
        output.path.parent.mkdir(parents=True, exist_ok=True)
        output.path.write_text(_rendered(report, environment, output.rendering), encoding="utf-8")
        print_note(f"{summary(report)}; the report is in {output.path}")
    elif output.rendering is Format.TEXT:
        _print(report)
    else:
        typer.echo(_rendered(report, environment, output.rendering))
    if output.fail_on is not None and report.reaches(output.fail_on):
        raise typer.Exit(ExitCode.PENDING)


def revert_drift(context: Context, options: Options, *, yes: bool) -> None:
    """Bring drifted tables and schemas back to what was applied last."""
    project, environment = open_project(context, options)
    view = TerminalView(environment=project.settings.environment, yes=yes, is_revert=True)
    revert(environment, project.models, view, is_partial=project.is_partial)


def accept_drift(context: Context, options: Options, *, yes: bool) -> None:
    """Take drift into the models and the deployment state."""
    project, environment = open_project(context, options)
    if accept(environment, project, _AcceptView(environment=project.settings.environment, yes=yes)):
        say("accepted. Look at the models' changes, and commit them.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _AcceptView:
    """Shows drift and edits on stdout, and asks on the terminal."""

    environment: str
    yes: bool

    def notify(self, note: str) -> None:
        print_note(note)

    def reading(self) -> AbstractContextManager[None]:
        return status("reading the catalog …")

    def show_drift(self, drifted: Sequence[DriftedResource]) -> None:
        for one in drifted:
            _print_findings(one)
        counted = counted_resources(len(drifted_schemas(drifted)), len(drifted_tables(drifted)))
        say(f"{self.environment}: {counted} to accept")

    def confirm(self) -> None:
        confirm("Take this into the models?", yes=self.yes)

    def show_edits(self, models: EditedModels) -> None:
        for path in models.files:
            say(f"updated: {path}")
        for instruction in models.instructions:
            say(instruction)


def _rendered(report: DriftReport, environment: Environment, rendering: Format) -> str:
    match rendering:
        case Format.TEXT:
            return drift_text(report)
        case Format.JSON:
            return report_json(report)
        case Format.HTML:
            return drift_page(environment, report)
    assert_never(rendering)


def _print(report: DriftReport) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for line in drift_lines(report):
        console.print(Text(line.text, style=_COLOURS[line.severity] if line.severity else ""))


def _print_findings(drifted: DriftedResource) -> None:
    say(f"~ {drifted.resource}")
    for detail in drifted.drift:
        finding = detail.finding
        say(f"    {finding.field}: {finding.expected or 'absent'} → {finding.actual or 'gone'}")
