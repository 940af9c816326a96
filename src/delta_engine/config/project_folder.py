"""Finds the project that a folder belongs to, for commands that are run somewhere inside it."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Final

CONF_DIR: Final = "conf"
"""The configuration folder of a project, unless another one is named."""

_ENVIRONMENT: Final = re.compile(r"""^environment:\s*["']?([^"'#\s]+)""", re.MULTILINE)


def find_conf_dir(folder: Path) -> Path:
    """Return the configuration folder of the project that a folder is in.

    A folder with a `conf` of its own is taken for a project as it is. Of the folders above, the nearest one counts
    whose `conf` holds an environment: a `conf/<name>.yml` that says `environment: <name>`, which a folder of that name
    for other purposes does not. The search ends with the root of a git repository, and before the home folder, the root
    of the file system and a folder in which everybody may write, such as `/tmp`: configurations name code that is run.

    Args:
        folder: where to begin; absolute.

    Returns:
        `conf` relative to that folder if it has one, or if none is found; else an absolute path.
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
    except RuntimeError:  # a container's user without one
        return None


def _holds_an_environment(conf_dir: Path) -> bool:
    try:
        return any(
            path.stem in _ENVIRONMENT.findall(path.read_text("utf-8", "replace"))
            for path in conf_dir.glob("*.yml")
        )
    except OSError:  # a folder of others that may not be read is no project of ours
        return False
