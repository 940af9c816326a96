"""Finds the configuration folder of a project, and its environments."""

from __future__ import annotations

import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from delta_engine.config.extended import EXTENDS, configuration_files
from delta_engine.errors import ConfigError

CONF_DIR: Final = "conf"
"""The default configuration folder of a project."""

DRIFT_POLICY_FILE: Final = "drift-policy.yml"
"""The file with ignored drift, next to the environments' configurations."""

CONSENTS_FILE: Final = "consents.yml"
"""The file with consents, next to the environments' configurations."""

CONSENTS_FOLDER: Final = "consents"
"""The folder with files of consents."""

LINT_FILE: Final = "lint.yml"
"""The file with house rules, next to the environments' configurations."""

_ENVIRONMENT: Final = re.compile(r"""^environment:\s*["']?([^"'#\s]+)""", re.MULTILINE)


def find_conf_dir(folder: Path) -> Path:
    """Return the configuration folder of a folder's project: relative `conf` as default, else an absolute path.

    A folder with its own `conf` is a project. Otherwise, the project is the nearest parent whose `conf` has a
    `<name>.yml` with `environment: <name>`, in the file or in its base. The search ends at the root of a git
    repository. It excludes the home folder, the file system root and world-writable folders such as `/tmp`, because
    configurations name code that the engine runs.
    """
    if (folder / CONF_DIR).is_dir():
        return Path(CONF_DIR)
    home = _home()
    for inside, above in zip((folder, *folder.parents), folder.parents, strict=False):
        if inside == home or (inside / ".git").exists() or above in (home, above.parent):
            break
        if above.stat().st_mode & stat.S_IWOTH:
            break
        if _holds_an_environment(above / CONF_DIR):
            return above / CONF_DIR
    return Path(CONF_DIR)


def repository_root(folder: Path) -> Path | None:
    """Return the root of the git repository with a folder; None outside of repositories."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), None)


def folder_in_repository(folder: Path) -> str:
    """Return the path of a folder inside its git repository; empty for the repository's root, and outside of one."""
    root = repository_root(folder) or folder
    return "" if root == folder else folder.relative_to(root).as_posix()


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # a container's user may have no home folder
        return None


def _holds_an_environment(conf_dir: Path) -> bool:
    try:
        return any(map(is_environment, conf_dir.glob("*.yml")))
    except OSError:  # an unreadable folder is not the user's project
        return False


def environments(conf_dir: Path) -> list[str]:
    """Return the environments that have a configuration file, sorted."""
    others = (DRIFT_POLICY_FILE, CONSENTS_FILE, LINT_FILE)
    return sorted(path.stem for path in conf_dir.glob("*.yml") if path.name not in others)


def is_environment(path: Path) -> bool:
    """Whether a file or a base of it has `environment: <name>` with the file's name."""
    text = path.read_text("utf-8", "replace")
    texts = [text]
    if f"{EXTENDS}:" in text and path.stem not in _ENVIRONMENT.findall(text):
        with suppress(ConfigError):
            texts = [
                file.read_text("utf-8", "replace") for file in configuration_files(path.parent, path.stem)
            ]
    return any(path.stem in _ENVIRONMENT.findall(text) for text in texts)
