"""Replaces the folder of a site as a whole: a site is written next to it, and two renames swap the folders."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from delta_engine.errors import InvalidCommandError

_MARKER: Final = ".delta-engine-docs"
_MARKER_TEXT: Final = "Written by `delta-engine docs`, which replaces this folder as a whole.\n"
_OWN: Final = frozenset((_MARKER, "assets", "policies", "schemas", "index.html"))
_NEW: Final = "new"
_OLD: Final = "old"


class SiteFolder:
    """The folder that a site is written to before it replaces the old one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folders: set[Path] = set()

    def write(self, path: str, text: str) -> None:
        """Write a file with its folders."""
        target = self._path / path
        if target.parent not in self._folders:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._folders.add(target.parent)
        target.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def open_site_folder(out: Path) -> Iterator[SiteFolder]:
    """Yield a new folder next to `out`, which replaces it if the block ends without an error.

    Raises:
        ConfigError: `out` is not a folder, or has files that do not belong to a site.
        OSError: a folder cannot be written.
    """
    target = out.resolve()
    _refuse_other_files(target, out)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive(target.parent):
        fresh, former = (target.with_name(f".{target.name}.{name}.tmp") for name in (_NEW, _OLD))
        if former.exists() and not target.exists():  # a run was killed between the renames
            former.replace(target)
        for stray in (fresh, former):
            shutil.rmtree(stray, ignore_errors=True)
        try:
            fresh.mkdir()
            (fresh / _MARKER).write_text(_MARKER_TEXT, encoding="utf-8")
            yield SiteFolder(fresh)
            _refuse_other_files(target, out)
            if target.exists():
                target.replace(former)
            fresh.replace(target)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.rmtree(former, ignore_errors=True)


def _refuse_other_files(target: Path, out: Path) -> None:
    if target.exists() and not target.is_dir():
        raise InvalidCommandError(f"--out: {out} is a file", way_out="Name a folder.")
    present = sorted(path.name for path in target.iterdir()) if target.exists() else []
    others = [name for name in present if name not in _OWN] if _MARKER in present else present
    if others:
        some = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        raise InvalidCommandError(
            f"--out: {out} has files that `delta-engine docs` did not write: {some}",
            way_out="Name a new or empty folder, and copy the site from there, because a site replaces its "
            "whole folder.",
        )


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Admit one writer at a time of sites in a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
