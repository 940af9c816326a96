"""The `delta-engine projects` commands: several projects in one repository."""

from __future__ import annotations

import typer

from delta_engine.cli.options import ChangedSince, Json, command_group

projects_app = command_group(
    "Several projects in one repository. A project is a folder that contains conf. Default: all; -p selects some."
)


@projects_app.command(epilog="Example: delta-engine projects check")
def check(ctx: typer.Context) -> None:
    """Refuse tables, schemas and states that two projects share.

    The command checks all environments, or only the environment of -e.
    """
    from delta_engine.cli.many_projects import check_projects

    check_projects(ctx.obj)


@projects_app.command(
    "list", epilog="Example: delta-engine -e prod projects list --changed-since origin/main --json"
)
def list_(ctx: typer.Context, changed_since: ChangedSince = None, json: Json = False) -> None:
    """List the folders of the projects that have the environment."""
    from delta_engine.cli.many_projects import list_projects

    list_projects(ctx.obj, changed_since, as_json=json)
