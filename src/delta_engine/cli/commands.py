"""What the commands do, but for `state` and `doctor`: each opens what it needs, calls a use case, and prints."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text
from typing_extensions import assert_never

from delta_engine.actions.drift_policy import Severity
from delta_engine.cli.many_projects import out_file
from delta_engine.cli.run_view import (
    TerminalView,
    print_plan_summary,
    print_planned,
    print_statements,
)
from delta_engine.cli.terminal import Context, Ended, ExitCode, confirm, print_note, say, status
from delta_engine.config.consents import REASON_TO_WRITE
from delta_engine.config.editor_schemas import EDITOR_SCHEMAS, editor_schema
from delta_engine.config.settings import Settings
from delta_engine.drift.drift_report import DriftReport
from delta_engine.drift.drifted_resources import ComparedResource
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.drift.renames import renamed_notes
from delta_engine.errors import InvalidCommandError, RefusedError, engine_version, raise_all, unknown
from delta_engine.orchestrate.acceptance import acceptable, edit_project, record_accepted, replaced_edits
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.changed_tables import ChangedProject, since_commit
from delta_engine.orchestrate.consents import write_consents, write_reasons, written_consents
from delta_engine.orchestrate.deployments import open_deployment
from delta_engine.orchestrate.drift_reports import drift_page, record_drift, report_drift
from delta_engine.orchestrate.judging import judged, judged_with_consents
from delta_engine.orchestrate.opening import open_backend, open_environment
from delta_engine.orchestrate.orchestrator import apply_file, find_drift, revert, sync, undo
from delta_engine.orchestrate.planning import draft_unlocked
from delta_engine.orchestrate.project import Project, load_project
from delta_engine.orchestrate.reviewed_plans import make_plan_file, write_plan_file
from delta_engine.orchestrate.runs import Environment, open_run
from delta_engine.orchestrate.undoing import plan_undo, undo_note, undo_of
from delta_engine.plan_files.codec import read_plan_file
from delta_engine.plan_files.document import Options
from delta_engine.report.drift_text import drift_lines, drift_text, summary
from delta_engine.report.json_documents import plan_document, report_json
from delta_engine.report.plan_tree import plan_summary
from delta_engine.telemetry.context import command
from delta_engine.telemetry.visible import counted_resources
from delta_engine.validation.rules import needed_by

_COLOURS = {Severity.HIGH: "red", Severity.MEDIUM: "yellow", Severity.LOW: "cyan"}


class Rendering(Enum):
    """How to print a plan."""

    TREE = "tree"
    SQL = "tree and statements"
    JSON = "json"
    MARKDOWN = "markdown"


class Format(Enum):
    """How to render a report."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


def show_plan(
    context: Context,
    options: Options,
    rendering: Rendering = Rendering.TREE,
    *,
    out: Path | None = None,
    detailed: bool = False,
    is_full: bool = False,
    writes_consents: bool = False,
    reason: str | None = None,
    changed_since: str | None = None,
) -> Ended:
    """Print the plan, also if it is refused, and the refusals on stderr. Takes no lock and changes no table.

    Args:
        out: the plan file to write, unless the plan is refused.
        detailed: whether to end with 2 when changes are pending.
        is_full: whether a tree of many tables is shown in full.
        writes_consents: whether to write the entries that allow the changes without consent.
        reason: the reason of these entries, and of earlier ones without a reason; None lets the author write it.
        changed_since: a commit of git; only tables whose declaration changed since are planned.
    """
    out = out_file(out, context)
    reasons = reason if writes_consents else None
    if changed_since is None:
        project = _load_project(context, options, reasons)
    else:
        whole = _load_project(context, options, reasons, tables=())
        selection = since_commit(whole, changed_since, options.tables)
        print_note(selection.note)
        if selection.is_unchanged:
            return _show_no_changes(selection, rendering, out)
        project, options = selection.project, options.with_values(changed=selection.changed)
    environment = _open_environment(context, project, options)
    with status("reading the catalog …"):
        draft = draft_unlocked(
            environment, project.synced, is_partial=project.is_partial, allow_cached=out is None
        )
        planned = judged(environment, draft)
    if writes_consents and planned.needed_consents:
        _write_consents(project.settings, planned, reason)
        with status("checking the plan again …"):
            planned = _judged_again(environment, project.settings, draft, planned)
    return _shown(
        project, environment, planned, options, rendering, out=out, detailed=detailed, is_full=is_full
    )


def _write_consents(settings: Settings, planned: PlannedRun, reason: str | None) -> None:
    todo = "commit them" if reason else "write the reasons, or repeat the command with --reason TEXT"
    for path in write_consents(settings, planned.needed_consents, reason or REASON_TO_WRITE):
        print_note(f"consents were added to {path}: {todo}")


def _judged_again(
    environment: Environment, settings: Settings, draft: PlannedRun, planned: PlannedRun
) -> PlannedRun:
    """Return the verdict on a plan with the consents as they are now; entries without a reason refuse it."""
    try:
        consents = written_consents(settings)
    except RefusedError as unreadable:
        unanswered = (refusal for refusal in planned.refusals if not needed_by([refusal]))
        return replace(planned, refusals=(*unreadable.refusals, *unanswered), consent_entries="")
    return judged_with_consents(environment, draft, consents, planned)


def sync_models(
    context: Context, options: Options, *, yes: bool, as_json: bool, with_timings: bool, is_full: bool
) -> None:
    """Change the catalog so that it matches the models."""
    project, environment = _open_project(context, options)
    view = _view(project, yes=yes, as_json=as_json, with_timings=with_timings, is_full=is_full)
    sync(environment, project.synced, view, is_partial=project.is_partial)


def _view(
    project: Project, *, yes: bool, as_json: bool, is_full: bool, with_timings: bool = False
) -> TerminalView:
    return TerminalView(
        environment=project.settings.environment,
        models=len(project.selectable),
        yes=yes,
        as_json=as_json,
        with_timings=with_timings,
        is_full=is_full,
    )


def apply_plan_file(
    context: Context, path: Path, *, yes: bool, as_json: bool, with_timings: bool, is_full: bool
) -> None:
    """Apply a plan file, unless something changed since it was written."""
    name = context.require_environment()
    file = read_plan_file(path, environment=name, engine_version=engine_version())
    project, environment = _open_project(context, file.options)
    view = _view(project, yes=yes, as_json=as_json, with_timings=with_timings, is_full=is_full)
    apply_file(environment, project, file, path, view)


def undo_run(
    context: Context,
    options: Options,
    *,
    out: Path | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    is_full: bool,
) -> Ended:
    """Bring back what was declared before a run, or only show the plan.

    Args:
        out: the plan file to write instead.
        dry_run: whether to show the plan and its statements alone.
    """
    out = out_file(out, context)
    project, environment = _open_project(context, options, tables=())
    if not (dry_run or out):
        view = _view(project, yes=yes, as_json=as_json, is_full=is_full)
        undo(environment, options, view)
        return Ended("", ExitCode.DONE)
    with status("reading the catalog …"):
        planned = plan_undo(environment, environment.deployment.peek_replayed(), options)
    print_note(undo_note(planned))
    options = options.with_values(undoes=undo_of(planned).run)
    rendering = Rendering.JSON if as_json else Rendering.SQL if dry_run else Rendering.TREE
    return _shown(project, environment, planned, options, rendering, out=out, is_full=is_full)


def print_drift(
    context: Context,
    options: Options,
    rendering: Format,
    *,
    path: Path | None,
    fail_on: Severity | None,
    is_recorded: bool,
    is_full: bool,
) -> Ended:
    """Report drift; change nothing. End with 2 at or above the severity `fail_on`.

    Args:
        path: the file to write; None for stdout.
        is_recorded: whether to add the report to the history.
        is_full: whether a text of many tables on stdout is shown in full.
    """
    path = out_file(path, context)
    project, environment = _open_project(context, options)
    with status("reading the catalog …"):
        report = report_drift(environment, project.synced, is_partial=project.is_partial)
    if is_recorded:
        record_drift(environment, report)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_rendered(report, environment, rendering), encoding="utf-8")
        print_note(f"{summary(report)}; the report is in {path}")
    elif rendering is Format.TEXT:
        _print_drift(report, is_full=is_full)
    else:
        typer.echo(_rendered(report, environment, rendering))
    has_failed = fail_on is not None and report.reaches(fail_on)
    return Ended(summary(report), ExitCode.PENDING if has_failed else ExitCode.DONE)


def revert_drift(context: Context, options: Options, *, yes: bool, is_full: bool) -> None:
    """Bring what drifted back to what was applied last."""
    project, environment = _open_project(context, options)
    view = TerminalView(environment=project.settings.environment, yes=yes, is_revert=True, is_full=is_full)
    revert(environment, project.models, view, is_partial=project.is_partial)


def accept_drift(context: Context, options: Options, *, yes: bool) -> None:
    """Take drift into the models: lock, show, ask, edit, record that it is accepted."""
    project, environment = _open_project(context, options)
    with open_run(environment, "drift --accept", print_note) as run:
        with status("reading the catalog …"):
            report = find_drift(run, project.synced, is_partial=project.is_partial)
        drifted = acceptable(project, report, print_note)
        for drifted_resource in drifted:
            _print_findings(drifted_resource)
        counted = counted_resources(resource.name.kind for resource in drifted)
        say(f"{environment.name}: {counted} to accept")
        if not drifted:
            return
        for sentence in (*renamed_notes(drifted), *replaced_edits(project, drifted)):
            print_note(sentence)
        confirm("Write these changes into the models?", yes=yes)
        files, instructions = edit_project(project, drifted, print_note)
        for path in files:
            say(f"updated: {path}")
        if instructions:
            say("edit these Python models by hand, because the engine does not edit Python:")
        for line in instructions:
            say(line)
        record_accepted(run, drifted)
    say(
        "accepted. It remains drift until a sync reads the changed models. Review the changes of the models, and "
        "commit them."
    )


def opened_backend(settings: Settings) -> Backend:
    """Open the backend of a configuration, for a command that needs no models."""
    with status("starting …"):
        return open_backend(settings, notify=print_note)


def print_schema(name: str) -> None:
    """Print one of the JSON schemas for editors.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in EDITOR_SCHEMAS:
        reason, way_out = unknown("schema", name, EDITOR_SCHEMAS)
        raise InvalidCommandError(reason, way_out=way_out)
    typer.echo(editor_schema(name))


def _open_project(
    context: Context, options: Options, *, tables: Sequence[str] | None = None
) -> tuple[Project, Environment]:
    """Load the project and open its backend and deployment state; `tables` replaces the globs of the options."""
    project = _load_project(context, options, tables=tables)
    return project, _open_environment(context, project, options)


def _load_project(
    context: Context, options: Options, reason: str | None = None, *, tables: Sequence[str] | None = None
) -> Project:
    """Load the project; first write the reason into consents without a reason."""
    conf_dir, environment = context.place()
    for path in write_reasons(conf_dir, reason) if reason else ():
        print_note(f"the reason was written into {path}: commit it")
    globs = options.tables if tables is None else tables
    return load_project(conf_dir, environment, tables=globs, allow=options.allow, changed=options.changed)


def _open_environment(context: Context, project: Project, options: Options) -> Environment:
    opener = partial(open_backend, project.settings, notify=print_note)
    with status("starting …"):
        backend = context.backends.get(project.settings, opener) if context.backends else opener()
    deployment = open_deployment(project.settings, backend)
    return open_environment(
        project, backend, deployment, counts_checks=options.counts_checks, notify=print_note
    )


def _show_no_changes(selection: ChangedProject, rendering: Rendering, out: Path | None) -> Ended:
    """Print an empty plan; what runs statements is not opened."""
    environment, unchanged = selection.project.settings.environment, PlannedRun()
    if out is not None:
        print_note("no plan file was written, because there is nothing to plan")
    if rendering is Rendering.JSON:
        typer.echo(plan_document(unchanged, environment=environment, changed_since=selection.changed))
    elif rendering is Rendering.MARKDOWN:
        from delta_engine.tools.pull_requests.markdown import planned_markdown

        typer.echo(planned_markdown(unchanged, environment), nl=False)
    else:
        say(f"{environment}: {plan_summary(unchanged.plan)}")
    return Ended(plan_summary(unchanged.plan), ExitCode.DONE)


def _shown(
    project: Project,
    environment: Environment,
    planned: PlannedRun,
    options: Options,
    rendering: Rendering,
    *,
    out: Path | None,
    detailed: bool = False,
    is_full: bool,
) -> Ended:
    """Print a plan and what speaks against it, and write its file."""
    _print_planned(planned, project, options, rendering, is_full=is_full)
    for warning in planned.warnings:
        print_note(warning)
    raise_all(planned.refusals)
    if out is not None:
        write_plan_file(make_plan_file(project, environment, planned, options), out)
        print_note(f"the plan is in {out}: {command(shlex.join(['apply', str(out)]))}")
    is_pending = detailed and bool(planned.plan)
    return Ended(plan_summary(planned.plan), ExitCode.PENDING if is_pending else ExitCode.DONE)


def _print_planned(
    planned: PlannedRun, project: Project, options: Options, rendering: Rendering, *, is_full: bool
) -> None:
    environment = project.settings.environment
    if rendering is Rendering.JSON:
        typer.echo(plan_document(planned, environment=environment, changed_since=options.changed))
        return
    if rendering is Rendering.MARKDOWN:
        from delta_engine.tools.pull_requests.code_owners import owners_of
        from delta_engine.tools.pull_requests.markdown import planned_markdown

        owners = owners_of(planned.plan, project.settings.project_dir)
        typer.echo(planned_markdown(planned, environment, owners), nl=False)
        return
    is_full = is_full or rendering is Rendering.SQL
    print_planned(planned, is_full=is_full)
    if rendering is Rendering.SQL:
        print_statements(planned.compiled.sql())
    print_plan_summary(planned, environment=environment, models=len(project.selectable), is_full=is_full)


def _rendered(report: DriftReport, environment: Environment, rendering: Format) -> str:
    match rendering:
        case Format.TEXT:
            return drift_text(report)
        case Format.JSON:
            return report_json(report)
        case Format.HTML:
            return drift_page(environment, report)
    assert_never(rendering)


def _print_drift(report: DriftReport, *, is_full: bool) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for line in drift_lines(report, is_full=is_full):
        console.print(Text(line.text, style=_COLOURS[line.severity] if line.severity else ""))


def _print_findings(drifted: ComparedResource) -> None:
    say(f"~ {drifted.key}")
    for detail in drifted.drift:
        finding = detail.finding
        say(f"    {finding.field}: {finding.expected or 'absent'} → {finding.actual or 'gone'}")
