"""Files that survive crashes: written whole or not at all, and changed by one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from delta_engine.deployment.errors import StoreError

_TEMPORARY_SUFFIX = ".tmp"


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content: durable when this returns, never half there.

    The temporary file, the file's fsync, the rename and the folder's fsync are all needed: without the
    folder's, a power loss takes back an acknowledged write.

    Raises:
        OSError: it was not written; the old content is there.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_TEMPORARY_SUFFIX}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def append_durably(path: Path, data: bytes) -> None:
    """Add to the end of a file, which is made if need be; durable when this returns.

    What a full disk takes of it is taken back, or what is added later would go on in the middle of it.

    Raises:
        OSError: it was not added.
    """
    is_new = not path.exists()
    with path.open("ab", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        try:
            written = 0
            while written < len(data):
                written += file.write(data[written:])
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                file.truncate(end)
            raise
    if is_new:
        sync_folder(path.parent)


def remove_stray_files(path: Path) -> None:
    """Remove the temporary files of killed writers of a file; only while nobody else may write it."""
    for stray in path.parent.glob(f".{path.name}.*{_TEMPORARY_SUFFIX}"):
        stray.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the folder's entries durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Let one process at a time into a short section; the file stays, so that all lock the same one."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def store_errors(where: Path, doing: str) -> Iterator[None]:
    """Turn the operating system's refusals into a `StoreError` that names the place.

    Raises:
        StoreError: the block raised an `OSError`.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(f"{where} cannot be {doing}: {reason}. Make room, or correct its rights.") from error
