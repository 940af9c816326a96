"""Tells which projects of a repository have files that changed since a commit of git."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from delta_engine.config.extended import configuration_files
from delta_engine.config.file_patterns import folder_of_pattern, matching_files
from delta_engine.config.project_folders import ProjectFolder
from delta_engine.config.settings import load_settings
from delta_engine.errors import RefusedError
from delta_engine.orchestrate.git_history import compared_with, real_path


def changed_projects(folders: Iterable[ProjectFolder], environment: str, since: str) -> list[ProjectFolder]:
    """Return the projects with files that changed since a commit of git: committed, uncommitted or untracked.

    The files of a project are those in its folder, its model files, and the configurations that it extends. A changed
    submodule changes all projects with files in it.

    Args:
        since: a commit, a branch or a tag. Its changes since the common ancestor do not count.

    Raises:
        ConfigError: this is not a git repository, or the commit does not exist.
    """
    changed = compared_with(since, Path.cwd()).changed
    return [folder for folder in folders if _has_changed(folder, environment, changed)]


def _has_changed(folder: ProjectFolder, environment: str, changed: frozenset[Path]) -> bool:
    inside = real_path(folder.path)
    if any(path.is_relative_to(inside) for path in changed):
        return True
    try:
        read = {inside, *_outside_files(folder, environment, changed)}
    except (RefusedError, OSError):
        return True  # its command says why
    return any(not changed.isdisjoint((path, *path.parents)) for path in read)


def _outside_files(folder: ProjectFolder, environment: str, changed: frozenset[Path]) -> Iterator[Path]:
    """Yield the files that a project reads, and removed ones that its patterns may have matched."""
    yield from configuration_files(folder.conf_dir, environment)
    settings = load_settings(folder.conf_dir, environment)
    removed = [path for path in changed if not path.exists()]
    for pattern in settings.yaml_models:
        yield from map(real_path, matching_files(settings.project_dir, pattern))
        root = real_path(folder_of_pattern(settings.project_dir, pattern))
        yield from (path for path in removed if path.is_relative_to(root))
