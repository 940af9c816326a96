"""The options that commands share."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def flag(*names: str, help: str, **settings: Any) -> Any:
    """Return an option that takes no value: typer would show a `<bool>` behind it."""
    return typer.Option(*names, help=help, metavar="", **settings)


Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        "-t",
        metavar="GLOB",
        help="Only tables that match: catalog.schema.table, schema.table or table. Repeatable.",
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND[:GLOB]",
        help="Allow a destructive kind of change in this run: drop_column, drop_table, drop_constraint, "
        "drop_row_filter or drop_column_mask. Repeatable.",
    ),
]
Json = Annotated[bool, flag("--json", help="Print one JSON document instead.")]
CountsChecks = Annotated[
    bool,
    flag("--preflight", help="Count the rows that added CHECK constraints refuse, before anything runs."),
]
Timings = Annotated[bool, flag("--timings", help="Say at the end which tables took how long.")]
Yes = Annotated[bool, flag("--yes", "-y", help="Agree beforehand: required without a terminal.")]
