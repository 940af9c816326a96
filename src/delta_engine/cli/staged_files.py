"""Files that a command writes together: all are on the disk before the first one appears."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from delta_engine.deployment.local_files import (
    move_without_replacing,
    remove_unfinished_files,
    sync_folder,
    unfinished_file,
)


@dataclass(frozen=True, slots=True)
class _Staged:
    temporary: Path
    path: Path
    replaces: bool


class StagedFiles:
    """Writes files under temporary names; `publish` gives them their own. Without it, the exit removes all of them.

    The caller must be the only writer of the folders. A run that was killed leaves whole files, and temporary ones that
    the next run removes.
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
        with suppress(OSError):
            for staged in self._staged:
                staged.temporary.unlink(missing_ok=True)
        for folder in reversed(self._made):
            with suppress(OSError):  # it has files
                folder.rmdir()

    def add(self, path: Path, content: bytes, *, replaces: bool) -> None:
        """Write a file; one that replaces another, or a link, gets the rights of what it replaces."""
        self._enter_folder(path.parent)
        temporary = unfinished_file(path.parent, len(self._staged))
        self._staged.append(_Staged(temporary, path, replaces))
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replaces and path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))

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
        remove_unfinished_files(folder)
        self._folders.append(folder)
