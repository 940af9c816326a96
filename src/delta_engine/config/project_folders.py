"""Finds the projects of a repository. A project is a folder with a folder `conf` in it."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from delta_engine.config.conf_folder import CONF_DIR, is_environment
from delta_engine.config.file_patterns import matching_files
from delta_engine.errors import ConfigError, InvalidCommandError

EVERYWHERE: Final = ("**",)
"""The pattern of all projects below the current folder."""


@dataclass(frozen=True, slots=True, order=True)
class ProjectFolder:
    """The folder of a project.

    Args:
        path: the path without symbolic links, relative to the current folder if it is inside.
        environments: the environments that have a configuration, of those looked for, sorted.
    """

    path: Path
    environments: tuple[str, ...]

    @property
    def conf_dir(self) -> Path:
        """The configuration folder."""
        return self.path / CONF_DIR

    def __str__(self) -> str:
        return self.path.as_posix()


def find_projects(patterns: Sequence[str], environment: str | None = None) -> list[ProjectFolder]:
    """Return the projects in folders that match patterns relative to the current folder, sorted.

    Args:
        environment: the one that they have to have a configuration for; None for any.

    Raises:
        ConfigError: a pattern matches no such project, or a folder cannot be read.
    """
    names_by_folder: dict[Path, set[str]] = {}
    for pattern in patterns:
        matching = [file for file in _configurations(pattern) if environment in (None, file.stem)]
        if not matching:
            name = f"{environment}.yml" if environment else "<environment>.yml"
            raise InvalidCommandError(
                f"no project matches {pattern!r}",
                way_out=f"A project is a folder with {CONF_DIR}/{name}. The pattern is relative to {Path.cwd()}.",
            )
        for file in matching:
            names_by_folder.setdefault(_plain(file.parent.parent), set()).add(file.stem)
    return sorted(ProjectFolder(path, tuple(sorted(names))) for path, names in names_by_folder.items())


def _configurations(pattern: str) -> list[Path]:
    try:
        folder = glob.escape(pattern) if Path(pattern).is_dir() else pattern
        files = matching_files(Path.cwd(), str(Path(folder, CONF_DIR, "*.yml")))
        return [file for file in files if is_environment(file)]
    except OSError as error:
        raise ConfigError(f"{error.filename} cannot be read: {error.strerror}") from None


def _plain(folder: Path) -> Path:
    here, real = Path.cwd().resolve(), folder.resolve()
    return real.relative_to(here) if real.is_relative_to(here) else real
