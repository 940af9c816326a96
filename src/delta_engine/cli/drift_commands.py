"""What `delta-engine drift` does: report, revert, accept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text
from typing_extensions import assert_never

from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.cli.commands import apply_plan, open_engine
from delta_engine.cli.context import Context, ExitCode
from delta_engine.cli.plan_view import print_plan
from delta_engine.cli.results import Results
from delta_engine.cli.terminal import confirm, print_note, say, status
from delta_engine.config.edit_instructions import edit_instructions
from delta_engine.config.model_edits import ModelEdit, edit_models, is_editable
from delta_engine.drift.drift_report import DriftReport
from delta_engine.drift.drifted_resources import (
    DriftedResource,
    DriftedTable,
    drifted_schemas,
    drifted_tables,
    is_schema,
    is_table,
)
from delta_engine.drift.handling import accepting, edited, reverted_drift
from delta_engine.drift.revert import renames_of
from delta_engine.errors import raise_all
from delta_engine.models import Schema, Table
from delta_engine.orchestrate.drift_reports import DriftReporting
from delta_engine.orchestrate.project import Project
from delta_engine.report.drift_text import drift_lines, drift_text, summary
from delta_engine.report.json_documents import report_json
from delta_engine.report.plan_tree import counted_resources, plan_summary

_COLOURS = {Severity.HIGH: "red", Severity.MEDIUM: "yellow", Severity.LOW: "cyan"}


class Format(Enum):
    """How to render a report."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What to make of a report.

    Args:
        rendering: how.
        path: where to; stdout for None.
        fail_on: from which severity on the exit code is 2; None for never.
        is_recorded: whether to add it to the history.
    """

    rendering: Format
    path: Path | None
    fail_on: Severity | None
    is_recorded: bool


def report_drift(context: Context, tables: Sequence[str], output: Output) -> None:
    """Report; change nothing. Exit with 2 at or above a severity."""
    project, backend, engine = open_engine(context, tables)
    reporting = DriftReporting(project, backend, engine)
    with status("reading the catalog …"):
        report = reporting.report()
    if output.is_recorded:
        reporting.record(report)
    if output.path is not None:
        output.path.parent.mkdir(parents=True, exist_ok=True)
        output.path.write_text(_rendered(report, reporting, output.rendering), encoding="utf-8")
        print_note(f"{summary(report)}; the report is in {output.path}")
    elif output.rendering is Format.TEXT:
        _print(report)
    else:
        typer.echo(_rendered(report, reporting, output.rendering))
    if output.fail_on is not None and report.reaches(output.fail_on):
        raise typer.Exit(ExitCode.PENDING)


def revert_drift(context: Context, tables: Sequence[str], allow: Sequence[str], *, yes: bool) -> None:
    """Lock, plan what restores what was applied last, show, ask, apply, record."""
    project, _, engine = open_engine(context, tables, allow)
    with engine.run("drift --revert", print_note) as run:
        with status("reading the catalog …"):
            plan = run.plan_revert(project.models, is_partial=project.is_partial)
        print_plan(plan)
        what = f"to revert: {plan_summary(plan)}" if plan else "no changes to revert"
        say(f"{project.settings.environment}: {what}")
        raise_all(run.refusals(plan))
        if plan:
            confirm("Revert these changes?", yes=yes)
        apply_plan(run, plan, Results(verb="reverted"))  # an empty one still records what somebody made anew


def accept_drift(context: Context, tables: Sequence[str], *, yes: bool) -> None:
    """Lock, show, ask, edit the models, record."""
    project, _, engine = open_engine(context, tables)
    with engine.run("drift --accept", print_note) as run:
        with status("reading the catalog …"):
            found = run.detect(project.models, is_partial=project.is_partial)
        known = {schema.key for schema in project.schemas}
        drifted = [one for one in found if one.drift and (is_table(one) or one.name.key in known)]
        for one in drifted:
            _print_findings(one)
        counted = counted_resources(len(drifted_schemas(drifted)), len(drifted_tables(drifted)))
        say(f"{project.settings.environment}: {counted} to accept")
        if not drifted:
            return
        confirm("Take this into the models?", yes=yes)
        _edit_models(project, drifted)
        run.accept(drifted)
        say("accepted. Look at the models' changes, and commit them.")


def _edit_models(project: Project, drifted: Sequence[DriftedResource]) -> None:
    """Edit YAML models in place; print what to change in Python models."""
    models = {model.key: model for model in project.models}
    schemas = {model.key: model for model in project.schemas}
    found = []
    for one in drifted:
        key = one.name.key
        if is_schema(one):
            after = accepting(schemas[key], one) if one.observed.exists else None
            found.append(ModelEdit(before=schemas[key], after=after))
        elif is_table(one) and key in models:
            found.append(_edit(models[key], one))
    edits = [edit for edit in found if edit.before != edit.after]
    afterwards = [edit.after for edit in edits if edit.after is not None]
    raise_all(
        project.violations(
            [after for after in afterwards if isinstance(after, Table)],
            [after for after in afterwards if isinstance(after, Schema)],
        )
    )
    for path in edit_models([edit for edit in edits if is_editable(edit.before)], project.settings):
        say(f"updated: {path}")
    for edit in edits:
        if not is_editable(edit.before):
            say(edit_instructions(edit.before, edit.after, edit.renames))


def _edit(model: Table, table: DriftedTable) -> ModelEdit:
    if not table.observed.exists:
        return ModelEdit(before=model, after=None)
    after = edited(model, table)
    _tell_what_stays(after, table)
    return ModelEdit(before=model, after=after, renames=renames_of(table))


def _tell_what_stays(after: Table, table: DriftedTable) -> None:
    """Say what no edit of a model can take in: properties that the environment gives to every table."""
    for detail in reverted_drift(after, table):
        if detail.ignored_by is None and detail.deviation.kind is not DriftKind.TABLE_REPLACED:
            print_note(
                f"{table.name}: {detail.finding.field} stays declared, and the next sync brings it back: change "
                "defaults.table_properties of the environment, or declare it in the model"
            )


def _rendered(report: DriftReport, reporting: DriftReporting, rendering: Format) -> str:
    match rendering:
        case Format.TEXT:
            return drift_text(report)
        case Format.JSON:
            return report_json(report)
        case Format.HTML:
            return reporting.html(report)
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
