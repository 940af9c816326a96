"""The `init` command: its options. `project_files` writes the files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from delta_engine.cli.options import argument, flag

INIT_EPILOG: Final = "Example: delta-engine init retail && cd retail && delta-engine -e local sync"


def init(
    directory: Annotated[Path, argument("DIR", "The folder of the project.")] = Path(),
    force: Annotated[bool, flag("--force", help="Replace files that exist.")] = False,
    skip_existing: Annotated[
        bool, flag("--skip-existing", help="Keep files that exist, and write the others.")
    ] = False,
) -> None:
    """Make a working project: configuration, a model, and the bundle.

    Without an option, nothing is written if a file exists. An existing .gitignore gets the lines that it lacks. At the
    end, the command lists the lines to edit (# EDIT) and the next commands.
    """
    from delta_engine.cli.project_files import Existing, init_project

    if force and skip_existing:
        raise typer.BadParameter("--force replaces files, and --skip-existing keeps them: choose one")
    chosen = Existing.REPLACE if force else Existing.KEEP if skip_existing else Existing.REFUSE
    init_project(directory, chosen)
