"""The `init` command: its options. `project_files` writes the files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from delta_engine.cli.options import argument, flag

INIT_EPILOG: Final = "Example: delta-engine init retail && cd retail && delta-engine -e local sync"


def init(
    directory: Annotated[Path, argument("DIR", "The folder of the project.")] = Path(),
    force: Annotated[bool, flag("--force", help="Replace existing files.")] = False,
    skip_existing: Annotated[
        bool, flag("--skip-existing", help="Keep existing files, and write the rest.")
    ] = False,
) -> None:
    """Create a project: configuration, a model, and the bundle.

    If a file exists, the command writes nothing, unless an option allows it. It adds missing lines to an existing
    .gitignore. At the end, it lists the lines to edit (# EDIT) and the next commands.
    """
    from delta_engine.cli.project_files import Existing, init_project

    if force and skip_existing:
        raise typer.BadParameter("--force and --skip-existing cannot be combined. Choose one of them")
    chosen = Existing.REPLACE if force else Existing.KEEP if skip_existing else Existing.REFUSE
    init_project(directory, chosen)
