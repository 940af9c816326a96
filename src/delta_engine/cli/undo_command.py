"""The `undo` command: its options. `commands.undo_run` does it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from delta_engine.cli.completion import complete_run
from delta_engine.cli.options import Allow, Full, Json, Tables, Yes, argument, flag, plan_options, value

UNDO_EPILOG: Final = (
    "Examples: delta-engine -e prod undo --dry-run; delta-engine -e prod undo 3f2a --out undo.json"
)


def undo(
    ctx: typer.Context,
    run: Annotated[
        str | None,
        argument(
            "RUN",
            "The run's id, or its first characters. Default: the last run that changed something.",
            complete_run,
        ),
    ] = None,
    table: Tables = None,
    allow: Allow = None,
    skip_refused: Annotated[
        bool, flag("--skip-refused", help="Skip tables that cannot be undone, instead of refusing the undo.")
    ] = False,
    dry_run: Annotated[bool, flag("--dry-run", help="Show the plan and its statements, and stop.")] = False,
    out: Annotated[
        Path | None,
        value("--out", "FILE", "Write the plan to this file instead, for a review and a later apply."),
    ] = None,
    yes: Yes = False,
    json: Json = False,
    full: Full = False,
) -> None:
    """Restore what was declared before a run.

    The undo uses ordinary statements, or RESTORE where these would lose values. It refuses a table if RESTORE would
    remove rows that other writers added. An undo is a run, so the next undo reverses it.
    """
    from delta_engine.cli.commands import undo_run

    if out and yes:
        raise typer.BadParameter("--out applies nothing, so --yes has no effect. Remove one of them")
    options = plan_options(table, allow, undoes=run, skips_refused=skip_refused)
    undo_run(ctx.obj, options, out=out, dry_run=dry_run, yes=yes, as_json=json, is_full=full)
