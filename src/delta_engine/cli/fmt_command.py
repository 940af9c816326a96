"""The command `fmt`. What it does is in `delta_engine.cli.formatting`, imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from delta_engine.cli.options import argument, flag

FMT_EPILOG = (
    "Examples: delta-engine fmt; delta-engine fmt --check --diff conf/models; delta-engine fmt - < orders.yml"
)


def fmt(
    ctx: typer.Context,
    files: Annotated[
        list[Path] | None,
        argument(
            "FILES",
            "Model files or folders. By default, the model files of the project; - formats stdin to stdout.",
        ),
    ] = None,
    check: Annotated[
        bool, flag("--check", help="Write nothing, and exit with 2 if a file would change.")
    ] = False,
    diff: Annotated[bool, flag("--diff", help="Write nothing, and print the changes instead.")] = False,
) -> None:
    """Put the keys of YAML model files into the documented order.

    Comments, blank lines, quotes and anchors stay. No file changes its meaning: the command loads and compares both
    versions.
    """
    from delta_engine.cli.formatting import format_models

    format_models(ctx.obj, files or (), check=check, diff=diff)
