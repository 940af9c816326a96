"""Several projects of one repository: opens what they share, and refuses names that two of them have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import assert_never

from delta_engine.config.loading import forget_modules
from delta_engine.config.project_folders import ProjectFolder
from delta_engine.config.settings import BackendType, Settings
from delta_engine.config.state_backend import DatabricksState, S3State
from delta_engine.errors import ConfigError, RefusedError
from delta_engine.models import by_resource
from delta_engine.orchestrate.project import Project, load_project
from delta_engine.validation.owned_names import common_table

if TYPE_CHECKING:
    from delta_engine.orchestrate.backend import Backend


@dataclass(frozen=True, slots=True)
class SharedBackends:
    """Opens one backend for all projects with the same settings of it: one Spark session, one SQL warehouse."""

    opened: list[tuple[Settings, Backend]] = field(default_factory=list)

    def get(self, settings: Settings, opener: Callable[[], Backend]) -> Backend:
        """Return the backend of a project; `opener` opens one that no other project has opened.

        Raises:
            ConfigError: the Spark session has another project's catalogs.
        """
        for opened_settings, backend in self.opened:
            if _backend_settings(opened_settings) == _backend_settings(settings):
                return backend
            is_catalog = opened_settings.backend is settings.backend is BackendType.CATALOG
            if is_catalog and opened_settings.spark != settings.spark:
                raise ConfigError(
                    "its backend.spark differs from another project's, and all projects share one Spark session",
                    location=settings.locate(("backend",)),
                    way_out="Run a command for each of the two.",
                )
        backend = opener()
        self.opened.append((settings, backend))
        return backend


def _backend_settings(settings: Settings) -> tuple[object, ...]:
    return (
        settings.backend,
        settings.warehouse,
        settings.spark,
        settings.sql_warehouse,
        settings.parallelism,
    )


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
            except RefusedError as refusal:
                yield from ((str(folder), problem) for problem in refusal.refusals)
            forget_modules(folder.path.absolute())
        for (first_folder, project), (second_folder, other) in combinations(loaded.items(), 2):
            yield from (
                (f"{first_folder} and {second_folder}", conflict) for conflict in _conflicts(project, other)
            )


def _conflicts(project: Project, other: Project) -> Iterator[RefusedError]:
    environment = project.settings.environment
    if _state_place(project) == _state_place(other):
        yield ConfigError(
            f"{environment}: they have the same deployment state, so each takes the other's tables for removed ones",
            location=project.settings.locate(("state_backend",)),
            way_out="Give each project a separate state_backend.",
        )
    catalogs = sorted({table.catalog_name.lower() for table in (*project.tables, *other.tables)})
    common = common_table(project.settings.owns, other.settings.owns, catalogs)
    if common is not None:
        yield ConfigError(
            f"{environment}: both own tables that match {common[0]!r} and {common[1]!r}",
            location=project.settings.locate(("owns",)),
            way_out="Change owns in one of the two, so that each table is one project's.",
        )
    names = by_resource(other.models)
    for key, model in by_resource(project.models).items():
        if key in names:
            yield ConfigError(
                f"{environment}: both declare {model.qualified_name}, the second at {names[key].declared_at}",
                location=model.declared_at,
                way_out="Remove one of them.",
            )


def _state_place(project: Project) -> tuple[str | None, ...]:
    """Return the identity of the place of a deployment state, equal for projects that share it."""
    match project.settings.state_backend.place:
        case Path() as path:
            return (os.path.realpath(path),)
        case S3State(bucket=bucket, prefix=prefix, endpoint_url=endpoint):
            return bucket, prefix, endpoint
        case DatabricksState(catalog=catalog, schema=schema):
            return catalog, schema  # its tables have a row per environment, whatever the volume
        case other:
            assert_never(other)
