"""Several projects of one repository: finds them, tells which have changed, and checks that none takes another's names.

A project is a folder with a folder `conf` of its own.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

from delta_engine.config.file_patterns import matching_files
from delta_engine.config.policies import DRIFT_POLICY_FILE
from delta_engine.config.settings import CONF_DIR, Settings, load_settings
from delta_engine.config.state_backend import StateBackend
from delta_engine.errors import ConfigError, RefusedError, Refusal
from delta_engine.models import Schema, Table
from delta_engine.orchestrate.project import Project, load_project
from delta_engine.validation.owned_names import common_table

EVERYWHERE: Final = ("**",)
"""The pattern of all projects."""


@dataclass(frozen=True, slots=True, order=True)
class ProjectFolder:
    """The folder of a project, relative to the current one.

    Args:
        environments: the environments that it has a configuration for, sorted.
    """

    path: Path
    environments: tuple[str, ...]

    @property
    def conf_dir(self) -> Path:
        """The configuration folder."""
        return self.path / CONF_DIR


def find_projects(patterns: Sequence[str]) -> list[ProjectFolder]:
    """Return the projects in folders that match patterns relative to the current folder, sorted.

    Raises:
        ConfigError: a pattern matches no project, or a folder cannot be read.
    """
    found: dict[Path, set[str]] = {}
    for pattern in patterns:
        files = _configurations(pattern)
        if not files:
            raise ConfigError(
                f"no project matches {pattern!r}",
                way_out=f"A project is a folder with {CONF_DIR}/<environment>.yml. The pattern is relative to {Path.cwd()}.",
            )
        for file in files:
            found.setdefault(file.parent.parent, set()).add(file.stem)
    return sorted(ProjectFolder(path, tuple(sorted(names))) for path, names in found.items())


def _configurations(pattern: str) -> list[Path]:
    here = Path.cwd()
    try:
        files = matching_files(here, f"{pattern.rstrip('/')}/{CONF_DIR}/*.yml")
    except OSError as error:
        raise ConfigError(f"{error.filename} cannot be read: {error.strerror}") from None
    relative = (file.relative_to(here) if file.is_relative_to(here) else file for file in files)
    return [file for file in relative if file.name != DRIFT_POLICY_FILE]
