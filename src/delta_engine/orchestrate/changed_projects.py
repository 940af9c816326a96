"""Tells which projects of a repository have files that changed since a commit of git."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from subprocess import CalledProcessError, run

from delta_engine.config.extended import configuration_files
from delta_engine.config.file_patterns import folder_of_pattern, matching_files
from delta_engine.config.project_folders import ProjectFolder
from delta_engine.config.settings import load_settings
from delta_engine.errors import ConfigError, InvalidCommandError, RefusedError


def changed_projects(folders: Iterable[ProjectFolder], environment: str, since: str) -> list[ProjectFolder]:
    """Return the projects with files that changed since a commit of git: committed, uncommitted or untracked.

    The files of a project are those in its folder, its model files, and the configurations that it extends. A changed
    submodule changes all projects with files in it.

    Args:
        since: a commit, a branch or a tag. Its changes since the common ancestor do not count.

    Raises:
        ConfigError: this is no git repository, or there is no such commit.
    """
    changed = _changed_files(since)
    return [folder for folder in folders if _has_changed(folder, environment, changed)]


def _has_changed(folder: ProjectFolder, environment: str, changed: frozenset[Path]) -> bool:
    inside = _real(folder.path)
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
        yield from map(_real, matching_files(settings.project_dir, pattern))
        root = _real(folder_of_pattern(settings.project_dir, pattern))
        yield from (path for path in removed if path.is_relative_to(root))


def _changed_files(since: str) -> frozenset[Path]:
    """Return the changed files and submodules, links both as they are and resolved."""
    root = _git("rev-parse", "--show-toplevel")[0]
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{since}^{{commit}}")
    if not commit:
        way_out = "Fetch it: a checkout in CI may have the last commit only (actions/checkout needs fetch-depth: 0)."
        raise InvalidCommandError(f"git knows no commit {since!r}", way_out=way_out)
    ancestor = _git("merge-base", commit[0], "HEAD")
    if not ancestor:
        reason = f"git finds no common ancestor of {since!r} and HEAD"
        raise InvalidCommandError(
            reason, way_out="Fetch the whole history (actions/checkout needs fetch-depth: 0)."
        )
    names = _git("-C", root, "diff", "--name-only", "--no-renames", "-z", ancestor[0], separator="\0")
    names += _git("-C", root, "ls-files", "--others", "--exclude-standard", "-z", separator="\0")
    paths = [Path(root, name) for name in names]
    return frozenset((*paths, *map(_real, paths)))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _git(*arguments: str, separator: str = "\n") -> list[str]:
    """Return the parts of what git prints; none if it finds nothing, which exit code 1 says."""
    try:
        found = run(["git", *arguments], capture_output=True, check=True)
    except FileNotFoundError:
        raise ConfigError(
            "git is not installed, and only git knows which files changed",
            way_out="Install git, or leave --changed-since out.",
        ) from None
    except CalledProcessError as error:
        if error.returncode == 1:
            return []
        reason = os.fsdecode(error.stderr).strip().removeprefix("fatal: ")
        raise ConfigError(f"git cannot tell which files have changed: {reason}") from None
    return [one for one in os.fsdecode(found.stdout).split(separator) if one]
