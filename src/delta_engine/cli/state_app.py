"""The `delta-engine state` commands: what was applied, and what to do about it."""

from __future__ import annotations

from typing import Annotated

import typer

from delta_engine.cli.completion import complete_resource, complete_table, complete_version
from delta_engine.cli.options import Json, Yes, argument, command_group, flag, value

state_app = command_group("The deployment state: what was applied last, and by whom.")

Globs = Annotated[
    list[str] | None,
    value(
        "--table -t",
        "GLOB",
        "Select matching tables, functions, policies and views. Repeatable.",
        complete_table,
    ),
]


@state_app.command(epilog="Example: delta-engine -e prod state show dev.silver.orders")
def show(
    ctx: typer.Context,
    resource: Annotated[
        str | None,
        argument(
            "RESOURCE",
            "A table, function, policy, view or resource key. Prints its whole record.",
            complete_resource,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show the deployment state in short.

    The command prints its environment, its age, the resources by status, and the holder of the lock.
    """
    from delta_engine.cli.state_commands import show_state

    show_state(ctx.obj, resource, as_json=json)


@state_app.command(
    "list", epilog="Example: delta-engine -e prod state list --status drifted --status missing"
)
def list_(
    ctx: typer.Context,
    table: Globs = None,
    status: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATUS",
            help="Only this status: healthy, degraded, failed, unknown, missing, drifted, unmanaged. Repeatable.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the resources: status, key, when deployed and by whom."""
    from delta_engine.cli.state_commands import list_resources

    list_resources(ctx.obj, table or (), status or (), as_json=json)


@state_app.command(epilog="Example: delta-engine -e prod state versions")
def versions(ctx: typer.Context, json: Json = False) -> None:
    """List the current and the kept documents, newest first.

    Each line shows when a run saved the document, who ran it, from which commit, and what changed.
    """
    from delta_engine.cli.state_commands import list_versions

    list_versions(ctx.obj, as_json=json)


@state_app.command(epilog="Example: delta-engine -e prod state diff")
def diff(
    ctx: typer.Context,
    earlier: Annotated[
        str | None, argument("EARLIER", "A version. Default: the newest kept version.", complete_version)
    ] = None,
    later: Annotated[
        str | None, argument("LATER", "A version. Default: the current document.", complete_version)
    ] = None,
    json: Json = False,
) -> None:
    """Show what changed between two versions."""
    from delta_engine.cli.state_commands import diff_states

    diff_states(ctx.obj, earlier, later, as_json=json)


@state_app.command(epilog="Example: delta-engine -e prod state restore .delta-engine/errored-12.json")
def restore(
    ctx: typer.Context,
    source: Annotated[
        str, argument("VERSION|FILE", "A kept version, or a file such as errored-12.json.", complete_version)
    ],
    force: Annotated[
        bool, flag("--force", help="Restore even if another run saved since, or if the state_id differs.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Make an earlier or errored document the current one.

    The document gets a new serial. Tables do not change.
    """
    from delta_engine.cli.state_commands import restore_state

    restore_state(ctx.obj, source, force=force, yes=yes)


@state_app.command("start-over", epilog="Example: delta-engine -e prod state start-over")
def start_over(ctx: typer.Context, yes: Yes = False) -> None:
    """Begin a new document in place of a lost one.

    Use it if the document is lost or unreadable, and `state restore` cannot bring it back. The engine forgets what it
    applied: the next sync adopts all tables as they are.
    """
    from delta_engine.cli.state_commands import start_state_over

    start_state_over(ctx.obj, yes=yes)


@state_app.command(epilog="Example: delta-engine -e prod state migrate --dry-run")
def migrate(
    ctx: typer.Context,
    dry_run: Annotated[bool, flag("--dry-run", help="Show what would be done, and stop.")] = False,
    from_format: Annotated[int | None, value("--from", "N", "Refuse a document of another format.")] = None,
    to_format: Annotated[int | None, value("--to", "N", "Refuse to save in another format.")] = None,
    yes: Yes = False,
) -> None:
    """Save the document in the current format.

    The old document is kept as a backup.
    """
    from delta_engine.cli.state_commands import migrate_state

    migrate_state(ctx.obj, from_format, to_format, dry_run=dry_run, yes=yes)


@state_app.command(epilog="Example: delta-engine -e prod state rm dev.silver.old_orders")
def rm(
    ctx: typer.Context,
    resources: Annotated[
        list[str],
        argument("RESOURCE", "Tables, functions, policies, views, keys or globs.", complete_resource),
    ],
    yes: Yes = False,
) -> None:
    """Forget recorded resources. Tables do not change. The next sync records declared resources again.

    Both records of a table or view that an unfinished run was renaming are forgotten together.
    """
    from delta_engine.cli.state_commands import remove_resources

    remove_resources(ctx.obj, resources, yes=yes)


@state_app.command(epilog="Example: delta-engine -e prod state mv dev.silver.orders dev.silver.sales_orders")
def mv(
    ctx: typer.Context,
    old: Annotated[
        str, argument("OLD", "catalog.schema.table or a view's key, as recorded.", complete_resource)
    ],
    new: Annotated[str, argument("NEW", "The current name, in the same form.", complete_table)],
    yes: Yes = False,
) -> None:
    """Record a table or view under another name.

    Rename it in the catalog and in its model first.
    """
    from delta_engine.cli.state_commands import move_resource

    move_resource(ctx.obj, old, new, yes=yes)


@state_app.command(epilog="Example: delta-engine -e prod state sync")
def sync(ctx: typer.Context, table: Globs = None) -> None:
    """Compare the records with the catalog, and record statuses. Changes no table."""
    from delta_engine.cli.state_commands import sync_state

    sync_state(ctx.obj, table or ())


@state_app.command(epilog="Example: delta-engine -e prod state unlock")
def unlock(ctx: typer.Context, yes: Yes = False) -> None:
    """Break the lock of a run that ended without releasing it."""
    from delta_engine.cli.state_commands import break_lock

    break_lock(ctx.obj, yes=yes)


@state_app.command(epilog="Example: delta-engine state schema > deployment-state-v2.json")
def schema() -> None:
    """Print the JSON schema of the document."""
    from delta_engine.deployment.codec import published_schema

    typer.echo(published_schema())
