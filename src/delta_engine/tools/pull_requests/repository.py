"""Where the files of a project are in its repository."""

from __future__ import annotations

import os
from pathlib import Path

from delta_engine.errors import SourceLocation


def file_of(place: SourceLocation, project_dir: Path) -> Path | None:
    """Return the file of a place, which is named from the project or from the current folder; None if there is none."""
    paths = (Path(os.path.realpath(folder / place.file)) for folder in (project_dir, Path()))
    return next((path for path in paths if path.is_file()), None)
