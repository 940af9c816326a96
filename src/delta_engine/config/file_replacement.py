"""Replaces the contents of files atomically."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Replace the contents of existing files, each in one step; modes stay, and links are followed.

    All contents are on disk before the first file changes, so that a full disk changes none.

    Raises:
        OSError: a file was not written; this file and those after it have their old contents.
    """
    staged: dict[Path, Path] = {}
    try:
        for path, data in contents.items():
            target = path.resolve(strict=True)
            staged[target] = _staged(target, data)
        for target, temporary in staged.items():
            temporary.replace(target)
    except BaseException:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)
        raise
    for folder in {target.parent for target in staged}:
        _sync_folder(folder)


def _staged(target: Path, data: bytes) -> Path:
    """Write a temporary file next to a file, with its mode, and return it."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            os.fsync(file.fileno())
    except BaseException:
        Path(name).unlink()
        raise
    return Path(name)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
