"""Where the files of a project are in its repository."""

from __future__ import annotations

import os
from pathlib import Path


def repository_root(folder: Path) -> Path | None:
    """Return the root of the git repository with a folder; None outside of repositories."""
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)


def path_in(root: Path, file: str) -> str:
    """Return the path of a file below a folder, with slashes; one outside of it stays absolute."""
    path = Path(os.path.realpath(file))
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
