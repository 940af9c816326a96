"""Several projects of one repository: finds them, tells which have changed, and refuses names that two of them have.

A project is a folder with a folder `conf` of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from subprocess import CalledProcessError, run
from typing import TYPE_CHECKING, Final

from delta_engine.config.extended import configuration_files
from delta_engine.config.file_patterns import matching_files
from delta_engine.config.settings import CONF_DIR, BackendType, Settings, is_environment, load_settings
from delta_engine.config.state_backend import LocalState
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
    """The folder of a project, relative to the current one if it is below.

    Args:
        environments: the environments that have a configuration, sorted.
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
            found.setdefault(file.parent.parent, set()).add(file.stem)
    return sorted(ProjectFolder(path, tuple(sorted(names))) for path, names in found.items())


def _configurations(pattern: str) -> list[Path]:
    here = Path.cwd()
    try:
        files = matching_files(here, str(Path(pattern, CONF_DIR, "*.yml")))
        found = [file for file in files if is_environment(file)]
    except OSError as error:
        raise ConfigError(f"{error.filename} cannot be read: {error.strerror}") from None
    return [file.relative_to(here) if file.is_relative_to(here) else file for file in found]


def changed_projects(folders: Iterable[ProjectFolder], environment: str, since: str) -> list[ProjectFolder]:
    """Return the projects with files that changed since a commit of git: committed, uncommitted or untracked.

    The files of a project are those in its folder, its model files, and the configurations that it extends.

    Args:
        since: a commit, a branch or a tag. Its changes since the common ancestor do not count.

    Raises:
        ConfigError: this is no git repository, or there is no such commit.
    """
    changed = _changed_files(since)
    return [folder for folder in folders if _has_changed(folder, environment, changed)]


def _has_changed(folder: ProjectFolder, environment: str, changed: frozenset[Path]) -> bool:
    inside = Path(os.path.realpath(folder.path))
    if any(path.is_relative_to(inside) for path in changed):
        return True
    try:
        bases = configuration_files(folder.conf_dir, environment)
        settings = load_settings(folder.conf_dir, environment)
    except Refusal:
        return True  # its command says why
    found = (matching_files(settings.project_dir, pattern) for pattern in settings.yaml_models)
    models = {Path(os.path.realpath(path)) for paths in found for path in paths}
    return not changed.isdisjoint({*bases, *models})


def _changed_files(since: str) -> frozenset[Path]:
    root = _git("rev-parse", "--show-toplevel")[0]
    commit = _git("rev-parse", "--verify", "--end-of-options", f"{since}^{{commit}}")[0]
    ancestor = (_git("merge-base", commit, "HEAD") or [commit])[0]
    names = _git("-C", root, "diff", "--name-only", "--no-renames", "-z", ancestor, separator="\0")
    names += _git("-C", root, "ls-files", "--others", "--exclude-standard", "-z", separator="\0")
    return frozenset(Path(os.path.realpath(Path(root, name))) for name in names)


def _git(*arguments: str, separator: str = "\n") -> list[str]:
    try:
        found = run(["git", *arguments], capture_output=True, check=True)
    except FileNotFoundError:
        raise ConfigError("git is not installed, and tells which files have changed") from None
    except CalledProcessError as error:
        reason = os.fsdecode(error.stderr).strip().removeprefix("fatal: ") or "it knows no such commit"
        raise ConfigError(f"git cannot tell which files have changed: {reason}") from None
    return [one for one in os.fsdecode(found.stdout).split(separator) if one]


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
            if known.backend is settings.backend is BackendType.CATALOG:
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
                f"{environment}: both declare {model.qualified_name}, also at {names[key].declared_at}",
                location=model.declared_at,
                way_out="Remove one of the two.",
            )


def _state_place(project: Project) -> object:
    match project.settings.state_backend.place:
        case LocalState(path=path):
            return os.path.realpath(path)
        case place:
            return place


def _declared(project: Project) -> Mapping[str, Table | Schema]:
    models: tuple[Table | Schema, ...] = (*project.models, *project.schemas)
    return {model.key: model for model in models}
