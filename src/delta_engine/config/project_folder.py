"""Finds the project of a folder, for commands that run in a subfolder."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Final

CONF_DIR: Final = "conf"
"""The default configuration folder of a project."""

_ENVIRONMENT: Final = re.compile(r"""^environment:\s*["']?([^"'#\s]+)""", re.MULTILINE)


def find_conf_dir(folder: Path) -> Path:
    """Return the configuration folder of a folder's project: relative `conf` as default, else an absolute path.

    A folder with its own `conf` is a project. Otherwise, the project is the nearest parent whose `conf` has a
    `<name>.yml` with `environment: <name>`. The search ends at the root of a git repository. It excludes the home
    folder, the file system root and world-writable folders such as `/tmp`, because configurations name
    code that the engine runs.
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


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # a container's user may have none
        return None


def _holds_an_environment(conf_dir: Path) -> bool:
    try:
        return any(
            path.stem in _ENVIRONMENT.findall(path.read_text("utf-8", "replace"))
            for path in conf_dir.glob("*.yml")
        )
    except OSError:  # an unreadable folder is not the user's project
        return False
