"""The `delta-engine` command. Heavy imports wait until a command needs them."""

from __future__ import annotations

import gc
import sys
from functools import cache, partial
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from delta_engine.cli.completion import complete_environment
from delta_engine.cli.config_app import config_app
from delta_engine.cli.contract_command import CONTRACT_EPILOG, contract
from delta_engine.cli.docs_command import DOCS_EPILOG, docs
from delta_engine.cli.drift_command import DRIFT_EPILOG, drift
from delta_engine.cli.explain_command import EXPLAIN_EPILOG, explain
from delta_engine.cli.fmt_command import FMT_EPILOG, fmt
from delta_engine.cli.import_command import IMPORT_EPILOG, import_models
from delta_engine.cli.init_command import INIT_EPILOG, init
from delta_engine.cli.lint_command import LINT_EPILOG, lint
from delta_engine.cli.options import (
    Allow,
    CountsChecks,
    Full,
    Json,
    Sarif,
    Tables,
    Timings,
    Yes,
    argument,
    command_group,
    flag,
    plan_options,
    print_version,
    value,
)
from delta_engine.cli.project_options import root_context
from delta_engine.cli.projects_app import projects_app
from delta_engine.cli.state_app import state_app
from delta_engine.cli.terminal import exits
from delta_engine.cli.undo_command import UNDO_EPILOG, undo
from delta_engine.errors import InvalidCommandError

EPILOG = (
    "Exit codes: 0 done, or nothing to do; 1 failed; 2 changes pending (plan --detailed-exitcode), "
    "drift (drift --fail-on), findings (lint), or files not formatted (fmt --check); "
    "3 refused: invalid model or config, unsafe or stale plan, wrong usage, neither a terminal nor --yes; "
    "4 another run holds the lock; "
    "5 done in part, or applied but not recorded; "
    "130 stopped by Ctrl-C, with the applied changes recorded, or answered with no"
)

app = command_group(
    "Declarative schema management for Delta Lake tables on Unity Catalog.",
    epilog=EPILOG,
    pretty_exceptions_enable=False,
)


@app.callback()
def main_options(
    ctx: typer.Context,
    env: Annotated[
        list[str] | None,
        value(
            "--env -e",
            "ENV",
            "The environment: the name of a file in the configuration folder.",
            complete_environment,
            envvar="DELTA_ENGINE_ENV",
        ),
    ] = None,
    conf_dir: Annotated[
        list[Path] | None,
        value(
            "--conf-dir",
            "DIR",
            "The configuration folder. By default, the folder conf of the project around the current folder.",
        ),
    ] = None,
    project: Annotated[
        list[str] | None,
        value(
            "--project -p",
            "GLOB",
            "The folders of projects, such as 'teams/*'. validate, lint, plan and drift run in all matching "
            "projects. Most other commands need exactly one. Repeatable.",
        ),
    ] = None,
    log_json: Annotated[
        bool,
        flag("--log-json", help="Write the log as JSON lines to stderr, for log collectors."),
    ] = False,
    _version: Annotated[
        bool,
        flag("--version", is_eager=True, callback=print_version, help="Print the version and exit."),
    ] = False,
) -> None:
    """Declarative schema management for Delta Lake tables on Unity Catalog.

    Declare tables in conf/models, review the changes with `plan`, and apply them with `sync`.
    """
    ctx.obj = root_context(ctx, env, conf_dir, project)
    if log_json:
        from delta_engine.telemetry.logs import log_json_lines

        log_json_lines()


app.command(epilog=INIT_EPILOG)(init)


@app.command(epilog="Example: delta-engine -e dev validate")
def validate(ctx: typer.Context, table: Tables = None, sarif: Sarif = None) -> None:
    """Check configuration and models. Needs no Spark and no network."""
    from delta_engine.cli.many_projects import run_in_projects
    from delta_engine.cli.sarif_file import writing_refusals
    from delta_engine.cli.validate_command import validate_models

    work = writing_refusals(lambda project: validate_models(project, table or ()), sarif)
    run_in_projects(ctx.obj, work)


app.command(epilog=LINT_EPILOG)(lint)


@app.command(
    epilog="Examples: delta-engine -e prod doctor; delta-engine -e dev doctor --conformance dev.scratch --out reports"
)
def doctor(
    ctx: typer.Context,
    conformance: Annotated[
        str | None,
        value(
            "--conformance",
            "CATALOG.SCHEMA",
            "Create scratch tables in this schema, run every kind of statement and read once, and drop the tables.",
        ),
    ] = None,
    external_location: Annotated[
        str | None, value("--external-location", "URL", "Where --conformance may create an external table.")
    ] = None,
    out: Annotated[Path | None, value("--out", "DIR", "The folder for the reports of --conformance.")] = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Check login, rights, state and versions, as this identity.

    The command leaves nothing behind, and exits with 3 if something is missing. With --conformance, it asks first,
    works on scratch tables in one schema, and exits with 1 if the platform differs from what the engine expects.
    """
    from delta_engine.cli.doctor_commands import run_conformance, run_doctor

    if conformance is not None:
        run_conformance(ctx.obj, conformance, out, yes=yes, as_json=json, external_location=external_location)
    else:
        if external_location or out or yes:
            raise typer.BadParameter(
                "--external-location, --out and --yes need --conformance. Add --conformance, or remove them"
            )
        run_doctor(ctx.obj, as_json=json)


@app.command(epilog="Example: delta-engine -e prod rules")
def rules(ctx: typer.Context, json: Json = False) -> None:
    """List the rules that refuse models and plans.

    With -e, the list includes the environment's own rules (policy.rules).
    """
    from delta_engine.cli.rules_command import show_rules

    show_rules(ctx.obj, as_json=json)


@app.command(epilog="Example: delta-engine -e dev plan -t 'silver.*' --sql")
def plan(
    ctx: typer.Context,
    table: Tables = None,
    allow: Allow = None,
    json: Json = False,
    sql: Annotated[bool, flag("--sql", help="Also print the exact statements.")] = False,
    markdown: Annotated[bool, flag("--markdown", help="Print a summary for a pull request instead.")] = False,
    out: Annotated[
        Path | None,
        value("--out", "FILE", "Also write the plan to this file, for a review and a later apply."),
    ] = None,
    preflight: CountsChecks = True,
    detailed_exitcode: Annotated[
        bool, flag("--detailed-exitcode", help="Exit with 2 if changes are pending.")
    ] = False,
    write_consents: Annotated[
        bool,
        flag(
            "--write-consents",
            help="Write entries that allow the refused changes to conf/consents.yml, and plan again with them.",
        ),
    ] = False,
    reason: Annotated[
        str | None,
        value("--reason", "TEXT", "Why the changes are allowed: the reason for entries that lack a reason."),
    ] = None,
    changed_since: Annotated[
        str | None,
        value(
            "--changed-since",
            "REF",
            "Plan only tables whose declaration changed since this Git commit; with -p, projects with changed files.",
        ),
    ] = None,
    sarif: Sarif = None,
    full: Full = False,
) -> None:
    """Show what `sync` would do. Changes no table.

    --out writes the plan to a file, with its exact SQL, for `delta-engine apply FILE`.

    --changed-since compares resolved models with the common ancestor of HEAD and REF: model files, the configuration
    with its bases, and variables. The plan includes tables that are no longer declared.
    """
    from delta_engine.cli.commands import Rendering, show_plan
    from delta_engine.cli.many_projects import OutputForm, run_in_projects
    from delta_engine.cli.sarif_file import writing_refusals

    if json and markdown:
        raise typer.BadParameter("--json and --markdown cannot be combined. Choose one of them")
    if reason is not None and not (write_consents and reason.strip()):
        raise typer.BadParameter("--reason needs a text and --write-consents. Add them, or remove --reason")
    if write_consents and (out or allow):
        raise typer.BadParameter(
            "--write-consents cannot be combined with --out or --allow. Remove these options"
        )
    rendering = Rendering.SQL if sql else Rendering.TREE
    rendering = Rendering.JSON if json else Rendering.MARKDOWN if markdown else rendering
    form = OutputForm.JSON if json else OutputForm.MARKDOWN if markdown else OutputForm.TEXT
    options = plan_options(table, allow, counts_checks=preflight)
    work = partial(
        show_plan,
        options=options,
        rendering=rendering,
        out=out,
        detailed=detailed_exitcode,
        is_full=full,
        writes_consents=write_consents,
        reason=reason,
        changed_since=None if ctx.obj.projects else changed_since,
    )
    run_in_projects(
        ctx.obj,
        writing_refusals(work, sarif),
        form,
        changed_since=changed_since,
        files={"--out": out},
    )


@app.command(
    epilog="Example: delta-engine -e prod plan --out plan.json, review it, then delta-engine -e prod apply plan.json"
)
def apply(
    ctx: typer.Context,
    file: Annotated[Path, argument("FILE", "A file that `plan --out` wrote.")],
    yes: Yes = False,
    json: Json = False,
    timings: Timings = False,
    full: Full = False,
) -> None:
    """Apply a plan file: exactly its SQL, or nothing.

    If anything that the plan touches changed after the plan was made, nothing runs.

    The file contains the options of `plan`: -t, --allow and --no-preflight.
    """
    from delta_engine.cli.commands import apply_plan_file

    apply_plan_file(ctx.obj, file, yes=yes, as_json=json, with_timings=timings, is_full=full)


@app.command(epilog="Example: delta-engine -e prod sync --yes --allow drop_column:silver.orders")
def sync(
    ctx: typer.Context,
    table: Tables = None,
    allow: Allow = None,
    dry_run: Annotated[bool, flag("--dry-run", help="Show the plan and its statements, and stop.")] = False,
    yes: Yes = False,
    json: Json = False,
    timings: Timings = False,
    preflight: CountsChecks = True,
    full: Full = False,
) -> None:
    """Change the catalog so that it matches the models."""
    from delta_engine.cli.commands import Rendering, show_plan, sync_models

    options = plan_options(table, allow, counts_checks=preflight)
    if dry_run:
        show_plan(ctx.obj, options, Rendering.JSON if json else Rendering.SQL)
    else:
        sync_models(ctx.obj, options, yes=yes, as_json=json, with_timings=timings, is_full=full)


app.command(epilog=DRIFT_EPILOG)(drift)


@app.command(epilog="Example: delta-engine schema model > conf/schemas/model.json")
def schema(
    name: Annotated[
        str,
        argument(
            "model|config|policy|consents|lint",
            "The kind of file: models, a configuration, the drift policy, consents, or house rules.",
        ),
    ],
) -> None:
    """Print the JSON schema that editors use to check YAML files."""
    from delta_engine.cli.commands import print_schema

    print_schema(name)


app.command("import", epilog=IMPORT_EPILOG)(import_models)
app.command(epilog=CONTRACT_EPILOG)(contract)
app.command(epilog=UNDO_EPILOG)(undo)


@app.command(epilog="Example: delta-engine -e prod history --limit 5")
def history(
    ctx: typer.Context,
    limit: Annotated[int, value("--limit", "N", "How many of the latest runs.", min=1)] = 20,
    json: Json = False,
) -> None:
    """List the latest runs: when, who, and what changed.

    Each line also shows the commit and the run's id, which `undo RUN` accepts. The list covers the kept versions of the
    deployment state, which `state versions` shows.
    """
    from delta_engine.cli.state_commands import list_runs

    list_runs(ctx.obj, limit, as_json=json)


app.command(epilog=DOCS_EPILOG)(docs)
app.command(epilog=FMT_EPILOG)(fmt)
app.command(epilog=EXPLAIN_EPILOG)(explain)
app.add_typer(config_app, name="config")
app.add_typer(state_app, name="state")
app.add_typer(projects_app, name="projects")


@cache
def _root_command() -> Any:
    """Return the command that has all others, made once: making it takes longer than to parse a line."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line and exit with a code of `ExitCode`."""
    from delta_engine.telemetry.context import in_context
    from delta_engine.telemetry.logs import kept_from_libraries

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for output encodings without arrows and boxes
    gc.set_threshold(
        *gc.get_threshold()[:2], 1_000
    )  # models stay: looking through all of them again takes long
    with kept_from_libraries(), in_context(), exits():
        if find_spec("fcntl") is None:
            raise InvalidCommandError(
                "the engine needs POSIX file locks, which Windows lacks", way_out="Run delta-engine in WSL."
            )
        sys.exit(int(_root_command().main(standalone_mode=False, prog_name="delta-engine") or 0))
