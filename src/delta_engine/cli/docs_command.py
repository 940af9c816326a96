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
        Path, value("--out", "DIR", "The folder to write: new, empty, or written by an earlier `docs`.")
    ],
    table: Tables = None,
    source_url: Annotated[
        str,
        value(
            "--source-url",
            "URL",
            "The address of the repository, or of a model file with {file} and {line}. Models then link to their "
            "source.",
        ),
    ] = "",
    no_state: Annotated[
        bool, flag("--no-state", help="Do not read the deployment state. Needs no login and no network.")
    ] = False,
    finds_drift: Annotated[
        bool, flag("--drift", help="Read the catalog for drift, instead of showing the drift recorded last.")
    ] = False,
) -> None:
    """Write a site that documents the models.

    The site has search, columns, keys, diagrams, and what masks and filters protect. It shows when each model was
    applied, and the drift that the deployment state recorded last. It is one folder of static files that needs no
    server and no network. Open DIR/index.html.
    """
    from delta_engine.cli.docs_site import write_docs

    if finds_drift and no_state:
        raise typer.BadParameter("--drift needs the deployment state. Remove --no-state")
    write_docs(
        ctx.obj, out, table or (), source_url=source_url, reads_state=not no_state, finds_drift=finds_drift
    )
