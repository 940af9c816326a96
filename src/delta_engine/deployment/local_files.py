"""Files that survive crashes: written completely or not at all, and changed by one process at a time."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from delta_engine.deployment.errors import CorruptStateError, StoreError
from delta_engine.deployment.ports import StateStore
from delta_engine.deployment.stored import DocumentIdentity, StoredDocument
from delta_engine.errors import InvalidCommandError

_TEMPORARY_SUFFIX = ".tmp"
_STRAY_PREFIX = ".delta-engine-"


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content durably and atomically; on `OSError`, the old content is unchanged.

    Without the folder's fsync, a power loss undoes an acknowledged write.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_TEMPORARY_SUFFIX}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        _discard(temporary)
        raise
    sync_folder(path.parent)


def create_atomically(path: Path, data: bytes) -> None:
    """Create a file with its content durably and atomically; FileExistsError if the path exists, even as a broken link.

    The caller makes the folder's entries durable (`sync_folder`), once for many files.
    """
    temporary = unfinished_file(path.parent)
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        move_without_replacing(temporary, path)
    finally:
        _discard(temporary)


def _discard(temporary: Path) -> None:
    """Remove a temporary file if possible; a failure must not hide an error of the write."""
    with suppress(OSError):
        temporary.unlink(missing_ok=True)


def unfinished_file(folder: Path, number: int = 0) -> Path:
    """Return the path of this process's temporary file in a folder; see `remove_unfinished_files`."""
    return folder / f"{_STRAY_PREFIX}{os.getpid()}-{number}{_TEMPORARY_SUFFIX}"


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


def remove_unfinished_files(folder: Path) -> None:
    """Remove temporary files of killed processes from a folder; the caller must be its only writer."""
    for stray in folder.glob(f"{_STRAY_PREFIX}*{_TEMPORARY_SUFFIX}"):
        stray.unlink(missing_ok=True)


def append_durably(path: Path, data: bytes) -> None:
    """Append to a file durably; create a missing file.

    If the disk is full, a partial entry is removed again: the next entry must not continue in its middle.
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
    """Remove the temporary files of killed writers of a file; the caller must be its only writer."""
    for stray in path.parent.glob(f".{path.name}.*{_TEMPORARY_SUFFIX}"):
        stray.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make a folder's entries durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Admit one process at a time; the lock file stays, so that all processes lock the same one."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Admit one command at a time to a folder, without a file in it; ConfigError if another one works there."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = f"another command is writing to {folder}"
            raise InvalidCommandError(reason, way_out="Wait until it ends, or name another folder.") from None
        yield
    finally:
        os.close(descriptor)


@contextmanager
def store_errors(where: Path, doing: str) -> Iterator[None]:
    """Convert an `OSError` into a `StoreError` that names the place."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(f"{where} cannot be {doing}: {reason}. Make room, or correct its rights.") from error


UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors that damaged bytes raise."""


def identity_in(data: bytes) -> DocumentIdentity:
    """Return the identity in a document's bytes, missing parts empty; raises `UNDECODABLE`."""
    return msgspec.json.decode(data, type=DocumentIdentity)


def lost_identity(store: StateStore, stored: StoredDocument | None) -> DocumentIdentity:
    """Return the identity of an unreadable or missing document, with a serial that is at least its own."""
    kept = [version for version in store.versions.list() if version.version_id.partition("-")[0].isdecimal()]
    newest = [version.version_id for version in kept[:1]]
    identities = [*_identities(store, stored, newest), DocumentIdentity()]
    newest_known = next((identity for identity in identities if identity.state_id), identities[-1])
    # The next serial replaced this version.
    reached = [int(version.version_id.partition("-")[0]) + version.is_replaced for version in kept]
    return msgspec.structs.replace(
        newest_known, serial=max([*(identity.serial for identity in identities), *reached])
    )


def _identities(
    store: StateStore, stored: StoredDocument | None, versions: list[str]
) -> Iterator[DocumentIdentity]:
    if stored is not None and stored.identity is not None:
        yield stored.identity
    if stored is not None:
        with suppress(*UNDECODABLE):
            yield identity_in(stored.data)
    for version_id in versions:
        with suppress(CorruptStateError, *UNDECODABLE):
            yield identity_in(store.versions.read(version_id) or b"")
