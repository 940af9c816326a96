"""The commands that plan and apply: each opens an environment, calls a use case, and prints."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from enum import Enum
from importlib.metadata import version
from pathlib import Path

import typer

from delta_engine.cli.exits import ExitCode
from delta_engine.cli.options import Context
from delta_engine.cli.output import print_plan, print_plan_summary, print_statements
from delta_engine.cli.run_view import TerminalView
from delta_engine.cli.terminal import print_note, say, status
from delta_engine.errors import raise_all
from delta_engine.orchestrate.deployments import open_deployment
from delta_engine.orchestrate.environment import Environment
from delta_engine.orchestrate.plan_files import make_plan_file, write_plan_file
from delta_engine.orchestrate.planning import PlannedRun, plan_unlocked
from delta_engine.orchestrate.project import Project, load_project, open_backend, open_environment
from delta_engine.orchestrate.use_cases import apply_file, sync
from delta_engine.plan_files.codec import read_plan_file
from delta_engine.plan_files.document import Options
from delta_engine.report.json_documents import plan_document
from delta_engine.report.plan_tree import plan_markdown
from delta_engine.telemetry.context import command
from delta_engine.telemetry.visible import counted


class Rendering(Enum):
    """How to print a plan."""

    TREE = "tree"
    SCRIPT = "tree and statements"
    JSON = "json"
    MARKDOWN = "markdown"


def validate_models(context: Context, tables: Sequence[str]) -> None:
    """Load and check the project; print how many models there are."""
    project = load_project(*context.place(), tables=tables)
    environment = project.settings.environment
    say(f"{environment}: configuration and {counted(len(project.models), 'model')} are valid")


def show_plan(
    context: Context,
    options: Options,
    rendering: Rendering = Rendering.TREE,
    *,
    out: Path | None = None,
    detailed: bool = False,
) -> None:
    """Print the plan, also if it is refused, and the refusals on stderr. Takes no lock and changes nothing.

    Args:
        out: the plan file to write, unless the plan is refused.
        detailed: whether to exit with 2 when changes are pending.
    """
    project, environment = open_project(context, options)
    with status("reading the catalog …"):
        planned = plan_unlocked(
            environment, project.models, is_partial=project.is_partial, allow_cached=out is None
        )
    _print_planned(planned, project, rendering)
    for warning in planned.warnings:
        print_note(warning)
    raise_all(planned.refusals)
    if out is not None:
        write_plan_file(make_plan_file(project, environment, planned, options), out)
        print_note(f"the plan is in {out}: {command(shlex.join(['apply', str(out)]))}")
    if detailed and planned.plan:
        raise typer.Exit(ExitCode.PENDING)


def sync_models(context: Context, options: Options, *, yes: bool, as_json: bool, with_timings: bool) -> None:
    """Bring the catalog to the models."""
    project, environment = open_project(context, options)
    view = TerminalView(
        environment=project.settings.environment,
        models=len(project.models),
        yes=yes,
        as_json=as_json,
        with_timings=with_timings,
    )
    sync(environment, project.models, view, is_partial=project.is_partial)


def apply_plan_file(context: Context, path: Path, *, yes: bool, as_json: bool, with_timings: bool) -> None:
    """Apply a plan file, unless something changed since it was written."""
    name = context.require_environment()
    file = read_plan_file(path, environment=name, engine_version=version("delta-engine"))
    project, environment = open_project(context, file.options)
    view = TerminalView(
        environment=name,
        models=len(project.models),
        yes=yes,
        as_json=as_json,
        with_timings=with_timings,
    )
    apply_file(environment, project, file, path, view)


def open_project(context: Context, options: Options) -> tuple[Project, Environment]:
    """Load the project and open its backend and deployment state."""
    project = load_project(*context.place(), tables=options.tables, allow=options.allow)
    with status("starting …"):
        backend = open_backend(project.settings, notify=print_note)
    deployment = open_deployment(project.settings, backend)
    environment = open_environment(
        project, backend, deployment, counts_checks=options.counts_checks, notify=print_note
    )
    return project, environment


def _print_planned(planned: PlannedRun, project: Project, rendering: Rendering) -> None:
    environment, plan = project.settings.environment, planned.plan
    if rendering is Rendering.JSON:
        statements, unmanaged = planned.compiled.sql_by_table(), planned.unmanaged_parts
        typer.echo(plan_document(plan, environment=environment, statements=statements, left_alone=unmanaged))
        return
    if rendering is Rendering.MARKDOWN:
        sql = planned.compiled.sql_by_table()
        text = plan_markdown(plan, sql, environment=environment, refusals=planned.refusals)
        typer.echo(text, nl=False)
        return
    print_plan(plan)
    if rendering is Rendering.SCRIPT:
        print_statements(planned.compiled.sql())
    print_plan_summary(
        plan,
        environment=environment,
        models=len(project.models),
        unmanaged=planned.unmanaged_parts,
    )
