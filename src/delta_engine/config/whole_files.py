"""Files that survive crashes: written completely or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

TEMPORARY_SUFFIX: Final = ".tmp"
_STRAY_PREFIX: Final = ".delta-engine-"


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content durably and atomically; on `OSError`, the old content is unchanged.

    Without the folder's fsync, a power loss undoes an acknowledged write.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        _write(temporary, path, data)
        temporary.replace(path)
    except BaseException:
        _discard(temporary)
        raise
    sync_folder(path.parent)


def create_atomically(path: Path, data: bytes) -> None:
    """Create a file with its content durably and atomically; FileExistsError if the path exists, even as a broken link.

    The caller makes the folder's entries durable (`sync_folder`), once for many files.
    """
    temporary = _unfinished_file(path.parent)
    try:
        _write(temporary, path, data)
        move_without_replacing(temporary, path)
    finally:
        _discard(temporary)


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Replace existing files, each atomically; keep modes and follow links.

    All contents are on disk before the first replacement, so a full disk changes no file. After an OSError, the failed
    file and later ones have their old contents.
    """
    with StagedFiles() as files:
        for path, data in contents.items():
            files.add(path.resolve(strict=True), data, replaces=True)
        files.publish()


@dataclass(frozen=True, slots=True)
class _Staged:
    temporary: Path
    path: Path
    replaces: bool


class StagedFiles:
    """Writes files under temporary names; `publish` gives them their own. Without it, the exit removes all of them.

    A run that was killed leaves whole files, and temporary ones (`remove_unfinished_files`).
    """

    def __init__(self) -> None:
        self._staged: list[_Staged] = []
        self._folders: list[Path] = []
        self._made: list[Path] = []

    def __enter__(self) -> StagedFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for staged in self._staged:
            _discard(staged.temporary)
        for folder in reversed(self._made):
            with suppress(OSError):  # it has files
                folder.rmdir()

    def add(self, path: Path, content: bytes, *, replaces: bool) -> None:
        """Write a file; one that replaces another, or a link, gets the rights of what it replaces."""
        self._enter_folder(path.parent)
        temporary = _unfinished_file(path.parent, len(self._staged))
        self._staged.append(_Staged(temporary, path, replaces))
        mode = stat.S_IMODE(path.stat().st_mode) if replaces and path.exists() else None
        _write(temporary, path, content, mode)

    def publish(self) -> None:
        """Give the files their names."""
        for staged in self._staged:
            if staged.replaces:
                staged.temporary.replace(staged.path)
            else:
                move_without_replacing(staged.temporary, staged.path)
                staged.temporary.unlink(missing_ok=True)
        for folder in self._folders:
            sync_folder(folder)

    def _enter_folder(self, folder: Path) -> None:
        if folder in self._folders:
            return
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        for made in reversed(missing):
            made.mkdir()
            self._made.append(made)
        self._folders.append(folder)


def remove_unfinished_files(folder: Path) -> None:
    """Remove temporary files of killed processes from a folder; the caller must be its only writer."""
    for stray in folder.glob(f"{_STRAY_PREFIX}*{TEMPORARY_SUFFIX}"):
        stray.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make a folder's entries durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(temporary: Path, path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a temporary file durably, with the rights of the file that it replaces before its content.

    Errors name the path that it is for.
    """
    try:
        with temporary.open("wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = str(path)
        raise


def _discard(temporary: Path) -> None:
    """Remove a temporary file if possible; a failure must not hide an error of the write."""
    with suppress(OSError):
        temporary.unlink(missing_ok=True)


def _unfinished_file(folder: Path, number: int = 0) -> Path:
    """Return the path of this process's temporary file in a folder; see `remove_unfinished_files`."""
    return folder / f"{_STRAY_PREFIX}{os.getpid()}-{number}{TEMPORARY_SUFFIX}"


def move_without_replacing(temporary: Path, path: Path) -> None:
    """Give a temporary file its name; FileExistsError if the path exists. The temporary name may stay too."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        temporary.replace(path)
