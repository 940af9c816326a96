"""The `docs` command: a site of the declared tables, views, functions and policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from delta_engine.cli.options import Tables, flag, value

DOCS_EPILOG: Final = (
    "Example: delta-engine -e prod docs --out site --source-url https://github.com/OWNER/REPOSITORY"
)


def docs(
    ctx: typer.Context,
    out: Annotated[
        Path, value("--out", "DIR", "The folder to write: a new or empty one, or one that `docs` wrote.")
    ],
    table: Tables = None,
    source_url: Annotated[
        str,
        value(
            "--source-url",
            "URL",
            "The repository's address, or that of a model's file with {file} and {line}: places of models become "
            "links.",
        ),
    ] = "",
    no_state: Annotated[
        bool, flag("--no-state", help="Leave out the deployment state: needs no login and no network.")
    ] = False,
    finds_drift: Annotated[
        bool, flag("--drift", help="Read the catalog for drift, instead of the drift that was recorded last.")
    ] = False,
) -> None:
    """Write a site of what the models declare.

    It has search, columns, keys, diagrams, and what masks and filters protect: one folder of static files that needs no
    server and no network. It shows models, when each was applied, and the drift that the deployment state recorded
    last. Open DIR/index.html.
    """
    from delta_engine.cli.docs_site import write_docs

    if finds_drift and no_state:
        raise typer.BadParameter("--drift compares with the deployment state: leave out --no-state")
    write_docs(
        ctx.obj, out, table or (), source_url=source_url, reads_state=not no_state, finds_drift=finds_drift
    )
