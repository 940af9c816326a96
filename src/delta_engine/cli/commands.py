"""The commands themselves: each loads a project, calls the orchestrator, and prints."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

import typer

from delta_engine.actions import TablePlan
from delta_engine.cli.context import Context, ExitCode
from delta_engine.cli.plan_view import print_plan, print_statements
from delta_engine.cli.progress import shown
from delta_engine.cli.results import Results
from delta_engine.cli.terminal import asks, confirm, print_note, say, status
from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.compile.compiler import compile_plan
from delta_engine.drift.drift_report import UnmanagedPart
from delta_engine.errors import RefusedError, raise_all
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.execute.outcomes import TableOutcome
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.deployments import open_deployment
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.orchestrate.plan_files import (
    make_plan_file,
    write_plan_file,
)
from delta_engine.orchestrate.project import (
    Project,
    load_project,
    open_backend,
    orchestrator,
)
from delta_engine.orchestrate.sync_run import SyncRun
from delta_engine.plan_files.document import Options
from delta_engine.plan_files.staleness import ReviewedPlan
from delta_engine.report.plan_document import plan_document
from delta_engine.report.plan_markdown import plan_markdown
from delta_engine.report.plan_tree import counted, plan_summary, unmanaged_lines
from delta_engine.telemetry.context import command


def validate_models(context: Context, tables: Sequence[str]) -> None:
    """Load and check; say how many models there are."""
    project = _load(context, tables)
    environment = project.settings.environment
    say(f"{environment}: configuration and {counted(len(project.models), 'model')} are valid")


class Rendering(Enum):
    """How to print a plan."""

    TREE = "tree"
    SCRIPT = "tree and statements"
    JSON = "json"
    MARKDOWN = "markdown"


def show_plan(
    context: Context,
    options: Options,
    rendering: Rendering = Rendering.TREE,
    *,
    out: Path | None = None,
    detailed: bool = False,
) -> None:
    """Show the plan, also when it is refused; the refusals go to stderr. Takes no lock, changes nothing.

    Args:
        context: the global options.
        options: what to plan, and what to allow.
        rendering: how to print it.
        out: the plan file to write, unless the plan is refused; None for none.
        detailed: whether to exit with 2 when changes are pending.
    """
    project, backend, engine = open_engine(
        context, options.tables, options.allow, counts_checks=options.counts_checks
    )
    with status("reading the catalog …"):
        preview = engine.preview(project.models, is_partial=project.is_partial, allow_cached=out is None)
    plan = preview.plan
    is_tree = rendering is Rendering.TREE
    compiled = CompiledPlan() if is_tree else compile_plan(plan, backend.addressing, backend.capabilities)
    _show(plan, project, compiled, rendering, preview.refusals, engine.left_alone(preview))
    for warning in preview.warnings:
        print_note(warning)
    raise_all(preview.refusals)
    if out is not None:
        write_plan_file(make_plan_file(project, backend, engine, preview, options), out)
        print_note(f"the plan is in {out}: {command(shlex.join(['apply', str(out)]))}")
    if detailed and plan:
        raise typer.Exit(ExitCode.PENDING)


def sync_models(
    context: Context,
    tables: Sequence[str],
    allow: Sequence[str],
    results: Results,
    *,
    yes: bool,
    counts_checks: bool = False,
) -> None:
    """Lock, plan, show, ask, apply, record."""
    project, _, engine = open_engine(context, tables, allow, counts_checks=counts_checks)
    with engine.run("sync", print_note) as run:
        with status("reading the catalog …"):
            plan = run.plan(project.models, is_partial=project.is_partial)
        carry_out(run, plan, project, results, yes=yes)


def carry_out(
    run: SyncRun,
    plan: TablePlan,
    project: Project,
    results: Results,
    *,
    yes: bool,
    reviewed: ReviewedPlan | None = None,
) -> None:
    """Show the plan of a locked run, judge it, ask, apply it, and print what became of it.

    Args:
        run: the run.
        plan: what it planned.
        project: what it is about.
        results: how to print.
        yes: whether to go on without asking.
        reviewed: the plan file that says the same, if there is one.
    """
    if results.as_json or (asks(yes=yes) and not sys.stdout.isatty()):
        print_plan(
            plan, to_stderr=True
        )  # where people look; of JSON, stdout gets the one document at the end
    if not results.as_json:
        _show(plan, project, CompiledPlan(), Rendering.TREE)
    raise_all(run.refusals(plan))
    if plan:
        confirm("Apply these changes?", yes=yes)
    apply_plan(run, plan, results, reviewed)


def apply_plan(
    run: SyncRun, plan: TablePlan, results: Results, reviewed: ReviewedPlan | None = None
) -> tuple[TableOutcome, ...]:
    """Apply a plan, show how it gets on, and print what became of it, also if tables failed."""
    try:
        with shown(plan) as display:
            outcomes = run.apply(plan, display.on_outcome, display.control, reviewed=reviewed)
    except ApplyFailedError:
        results.print(run.report)
        raise
    results.print(run.report)
    return outcomes


def open_engine(
    context: Context, tables: Sequence[str], allow: Sequence[str] = (), *, counts_checks: bool = False
) -> tuple[Project, Backend, Orchestrator]:
    """Load the project and open its backend and deployment state."""
    project = _load(context, tables, allow)
    with status("starting …"):
        backend = open_backend(project.settings, notify=print_note)
    deployment = open_deployment(project.settings, backend)
    engine = orchestrator(project, backend, deployment, counts_checks=counts_checks, notify=print_note)
    return project, backend, engine


def _load(context: Context, tables: Sequence[str], allow: Sequence[str] = ()) -> Project:
    return load_project(*context.place(), tables=tables, allow=allow)


def _show(
    plan: TablePlan,
    project: Project,
    compiled: CompiledPlan,
    rendering: Rendering,
    refusals: Sequence[RefusedError] = (),
    left_alone: Sequence[UnmanagedPart] = (),
) -> None:
    environment = project.settings.environment
    if rendering is Rendering.JSON:
        statements = compiled.sql_by_table()
        typer.echo(plan_document(plan, environment=environment, statements=statements, left_alone=left_alone))
        return
    if rendering is Rendering.MARKDOWN:
        typer.echo(
            plan_markdown(plan, compiled.sql_by_table(), environment=environment, refusals=refusals), nl=False
        )
        return
    print_plan(plan)
    if rendering is Rendering.SCRIPT:
        print_statements(compiled.sql())
    for schema in plan.kept_schemas:
        say(f"kept: schema {schema} is not declared any more, and stays as it is")
    for table in plan.kept_tables:
        say(f"kept: {table} is not declared any more (policy.removed_tables: keep)")
    for line in unmanaged_lines(left_alone):
        say(line)
    say(f"{environment}: {plan_summary(plan)} ({counted(len(project.models), 'model')})")
