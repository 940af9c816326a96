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
            "The run's id, or how it starts: by default the last one that changed something.",
            complete_run,
        ),
    ] = None,
    table: Tables = None,
    allow: Allow = None,
    skip_refused: Annotated[
        bool, flag("--skip-refused", help="Leave out the tables that cannot be undone, instead of refusing.")
    ] = False,
    dry_run: Annotated[bool, flag("--dry-run", help="Show the plan and its statements, and stop.")] = False,
    out: Annotated[
        Path | None, value("--out", "FILE", "Write the plan there instead, to be reviewed and applied later.")
    ] = None,
    yes: Yes = False,
    json: Json = False,
    full: Full = False,
) -> None:
    """Bring back what was declared before a run.

    It uses statements, or RESTORE where these would lose values. A table is refused if RESTORE would take back rows of
    others. An undo is a run: the next undo takes it back.
    """
    from delta_engine.cli.commands import undo_run

    if out and yes:
        raise typer.BadParameter("--out applies nothing, and --yes agrees to an apply: choose one")
    options = plan_options(table, allow, undoes=run, skips_refused=skip_refused)
    undo_run(ctx.obj, options, out=out, dry_run=dry_run, yes=yes, as_json=json, is_full=full)
