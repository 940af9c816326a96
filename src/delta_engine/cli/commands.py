"""The commands themselves: each loads a project, calls the orchestrator, and prints."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from delta_engine.actions import TablePlan
from delta_engine.backends import Backend
from delta_engine.cli.context import Context, ExitCode
from delta_engine.cli.plan_view import print_plan, print_statements
from delta_engine.cli.progress import shown
from delta_engine.cli.results import Results
from delta_engine.cli.terminal import confirm, print_note, status
from delta_engine.errors import raise_all
from delta_engine.execute.action_runner import (
    ApplyFailedError,
    ScriptLine,
    TableOutcome,
    by_table,
)
from delta_engine.orchestrate.deployments import open_deployment
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.orchestrate.project import (
    Project,
    load_project,
    open_backend,
    orchestrator,
    rendered_script,
)
from delta_engine.orchestrate.sync_run import SyncRun
from delta_engine.report.plan_document import plan_document
from delta_engine.report.plan_tree import counted, plan_summary


def validate_models(context: Context, tables: Sequence[str]) -> None:
    """Load and check; say how many models there are."""
    project = _load(context, tables)
    environment = project.settings.environment
    typer.echo(f"{environment}: configuration and {counted(len(project.models), 'model')} are valid")


def show_plan(
    context: Context,
    tables: Sequence[str],
    allow: Sequence[str],
    *,
    as_json: bool,
    with_sql: bool,
    detailed: bool,
    counts_checks: bool = False,
) -> None:
    """Show the plan, also when it is refused; the refusals go to stderr. Takes no lock, writes nothing."""
    project, backend, engine = open_engine(context, tables, allow, counts_checks=counts_checks)
    with status("reading the catalog …"):
        preview = engine.preview(project.models, is_partial=project.is_partial)
    plan = preview.plan
    script = rendered_script(plan, backend) if as_json or with_sql else ()
    _show(plan, project, script, as_json=as_json, with_sql=with_sql)
    raise_all(preview.refusals)
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
        if results.as_json:
            print_plan(plan, to_stderr=True)  # stdout is for the one document at the end
        else:
            _show(plan, project, (), as_json=False, with_sql=False)
        raise_all(run.refusals(plan))
        if plan:
            confirm("Apply these changes?", yes=yes)
        apply_plan(run, plan, results)


def apply_plan(run: SyncRun, plan: TablePlan, results: Results) -> tuple[TableOutcome, ...]:
    """Apply a plan, show how it gets on, and print what became of it, also if tables failed."""
    try:
        with shown(plan) as display:
            outcomes = run.apply(plan, display.on_outcome, display.control)
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
    return load_project(context.conf_dir, context.require_environment(), tables=tables, allow=allow)


def _show(
    plan: TablePlan,
    project: Project,
    script: Sequence[ScriptLine],
    *,
    as_json: bool,
    with_sql: bool,
) -> None:
    environment = project.settings.environment
    if as_json:
        typer.echo(plan_document(plan, environment=environment, statements=by_table(script)))
        return
    print_plan(plan)
    if with_sql:
        print_statements(line.sql for line in script)
    for schema in plan.kept_schemas:
        typer.echo(f"kept: schema {schema} is not declared any more, and stays as it is")
    for table in plan.kept_tables:
        typer.echo(f"kept: {table} is not declared any more (policy.removed_tables: keep)")
    typer.echo(f"{environment}: {plan_summary(plan)} ({counted(len(project.models), 'model')})")
