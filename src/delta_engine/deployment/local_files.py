"""Files of the deployment state: changed by one process at a time, and read although they are damaged."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from delta_engine.config.whole_files import TEMPORARY_SUFFIX, sync_folder
from delta_engine.deployment.errors import CorruptStateError, StoreError
from delta_engine.deployment.ports import StateStore
from delta_engine.deployment.stored import DocumentIdentity, StoredDocument
from delta_engine.errors import InvalidCommandError


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
    for stray in path.parent.glob(f".{path.name}.*{TEMPORARY_SUFFIX}"):
        stray.unlink(missing_ok=True)


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
    return newest_known.with_values(serial=max([*(identity.serial for identity in identities), *reached]))


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
