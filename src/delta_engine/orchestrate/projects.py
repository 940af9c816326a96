"""Several projects of one repository: finds them, opens what they share, and refuses names that two of them have.

A project is a folder with a folder `conf` of its own.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Final

from typing_extensions import assert_never

from delta_engine.config.conf_folder import CONF_DIR, is_environment
from delta_engine.config.file_patterns import matching_files
from delta_engine.config.loading import forget_modules
from delta_engine.config.settings import BackendType, Settings
from delta_engine.config.state_backend import DatabricksState, LocalState, S3State
from delta_engine.errors import ConfigError, Refusal, RefusedError
from delta_engine.models import Schema, Table
from delta_engine.orchestrate.project import Project, load_project
from delta_engine.validation.owned_names import common_table

if TYPE_CHECKING:
    from delta_engine.orchestrate.backend import Backend

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
    found: dict[Path, set[str]] = {}
    for pattern in patterns:
        matching = [file for file in _configurations(pattern) if environment in (None, file.stem)]
        if not matching:
            name = f"{environment}.yml" if environment else "<environment>.yml"
            raise ConfigError(
                f"no project matches {pattern!r}",
                way_out=f"A project is a folder with {CONF_DIR}/{name}. The pattern is relative to {Path.cwd()}.",
            )
        for file in matching:
            found.setdefault(_plain(file.parent.parent), set()).add(file.stem)
    return sorted(ProjectFolder(path, tuple(sorted(names))) for path, names in found.items())


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


@dataclass(frozen=True, slots=True)
class SharedBackends:
    """Opens one backend for all projects with the same settings of it: one Spark session, one SQL warehouse."""

    opened: list[tuple[Settings, Backend]] = field(default_factory=list)

    def get(self, settings: Settings, opener: Callable[[], Backend]) -> Backend:
        """Return the backend of a project; `opener` opens one that no other project has opened.

        Raises:
            ConfigError: the Spark session has another project's catalogs.
        """
        for known, backend in self.opened:
            if _backend_settings(known) == _backend_settings(settings):
                return backend
            is_catalog = known.backend is settings.backend is BackendType.CATALOG
            if is_catalog and known.spark != settings.spark:
                raise ConfigError(
                    "its backend.spark differs from another project's, and all projects share one Spark session",
                    location=settings.locate(("backend",)),
                    way_out="Run a command for each of the two.",
                )
        backend = opener()
        self.opened.append((settings, backend))
        return backend


def _backend_settings(settings: Settings) -> tuple[object, ...]:
    one = settings
    return (one.backend, one.warehouse, one.spark, one.sql_warehouse, one.parallelism)


def project_conflicts(
    folders: Sequence[ProjectFolder], environments: Iterable[str]
) -> Iterator[tuple[str, RefusedError]]:
    """Yield what is refused in the projects of some environments, each with the projects that it is about."""
    for environment in environments:
        loaded: dict[str, Project] = {}
        for folder in folders:
            if environment not in folder.environments:
                continue
            try:
                loaded[str(folder)] = load_project(folder.conf_dir, environment)
            except Refusal as refusal:
                yield from ((str(folder), one) for one in refusal.refusals)
            forget_modules(folder.path.absolute())
        for (one, project), (other, another) in combinations(loaded.items(), 2):
            yield from ((f"{one} and {other}", found) for found in _conflicts(project, another))


def _conflicts(one: Project, other: Project) -> Iterator[RefusedError]:
    environment = one.settings.environment
    if _state_place(one) == _state_place(other):
        yield ConfigError(
            f"{environment}: they have the same deployment state, so each takes the other's tables for removed ones",
            location=one.settings.locate(("state_backend",)),
            way_out="Give each project a state_backend of its own.",
        )
    catalogs = sorted({model.catalog_name.lower() for model in (*one.models, *other.models)})
    common = common_table(one.settings.owns, other.settings.owns, catalogs)
    if common is not None:
        yield ConfigError(
            f"{environment}: both own tables that match {common[0]!r} and {common[1]!r}",
            location=one.settings.locate(("owns",)),
            way_out="Change owns in one of the two, so that each table is one project's.",
        )
    names = _declared(other)
    for key, model in _declared(one).items():
        if key in names:
            yield ConfigError(
                f"{environment}: both declare {model.qualified_name}, the second at {names[key].declared_at}",
                location=model.declared_at,
                way_out="Remove one of the two.",
            )


def _state_place(project: Project) -> tuple[str | None, ...]:
    """Return what tells the places of two deployment states apart."""
    match project.settings.state_backend.place:
        case LocalState(path=path):
            return (os.path.realpath(path),)
        case S3State(bucket=bucket, prefix=prefix, endpoint_url=endpoint):
            return bucket, prefix, endpoint
        case DatabricksState(catalog=catalog, schema=schema):
            return catalog, schema  # its tables have a row per environment, whatever the volume
        case other:
            assert_never(other)


def _declared(project: Project) -> Mapping[str, Table | Schema]:
    models: tuple[Table | Schema, ...] = (*project.models, *project.schemas)
    return {model.key: model for model in models}
