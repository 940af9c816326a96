"""Deployment states in local files, and local copies of remote ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path

import msgspec

from delta_engine.config.whole_files import write_atomically
from delta_engine.deployment.errors import ConflictError
from delta_engine.deployment.local_files import (
    UNDECODABLE,
    append_durably,
    exclusive,
    identity_in,
    remove_stray_files,
    store_errors,
)
from delta_engine.deployment.ports import StateStore
from delta_engine.deployment.stored import DocumentIdentity, StoredDocument, StoredFile
from delta_engine.deployment.stores.files import FileVersions
from delta_engine.models.open_struct import Moment
from delta_engine.telemetry.context import utc_now

KEPT_VERSIONS = 50
"""The number of earlier documents that a local folder keeps."""

_UNREADABLE = (OSError, *UNDECODABLE)
"""The errors of reading a damaged copy."""


class LocalFiles:
    """A folder of the file system; a write creates missing folders."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def location(self, name: str) -> str:
        """Return a file's path."""
        return str(self._folder / name)

    def read(self, name: str) -> bytes | None:
        """Return a file's bytes; None if it does not exist."""
        path = self._folder / name
        with store_errors(path, "read"):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                return None

    def write(self, name: str, data: bytes) -> str:
        """Write or replace a file atomically; return its path."""
        path = self._folder / name
        with store_errors(path, "written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data)
        return str(path)

    def create(self, name: str, data: bytes) -> None:
        """Write a file unless it exists."""
        if not (self._folder / name).exists():
            self.write(name, data)

    def list(self, folder: str) -> Sequence[StoredFile]:
        """Return all files below a folder."""
        with store_errors(self._folder / folder, "read"):
            paths = [path for path in (self._folder / folder).rglob("*") if path.is_file()]
            return [file for file in map(self._stored, paths) if file is not None]

    def delete(self, name: str) -> None:
        """Delete a file."""
        with store_errors(self._folder / name, "removed"):
            (self._folder / name).unlink(missing_ok=True)

    def _stored(self, path: Path) -> StoredFile | None:
        """Return a file's entry; None if another process has just removed it."""
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        modified_at = datetime.fromtimestamp(status.st_mtime, timezone.utc)
        name = path.relative_to(self._folder).as_posix()
        return StoredFile(name=name, size=status.st_size, modified_at=modified_at)


class LocalStateStore:
    """Keeps `<folder>/<environment>.state.json`, and the versions in a folder next to it."""

    def __init__(self, folder: Path, environment: str) -> None:
        self._name = f"{environment}.state.json"
        self._document = folder / self._name
        self._guard = folder / f"{environment}.state.guard"
        self._files = LocalFiles(folder)
        self.versions = FileVersions(self._files, f"{environment}.versions", kept=KEPT_VERSIONS)

    @property
    def location(self) -> str:
        """The document's path."""
        return str(self._document)

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        """Return the document; see `StateStore.read`."""
        data = self._files.read(self._name)
        return None if data is None else StoredDocument(data=data, token=sha256(data).hexdigest())

    def replace(
        self, data: bytes, identity: DocumentIdentity, expected: StoredDocument | None
    ) -> StoredDocument:
        """Write the document if the file's content is still the expected one; see `StateStore.replace`."""
        with store_errors(self._document, "written"):
            self._document.parent.mkdir(parents=True, exist_ok=True)
            with exclusive(self._guard):
                current = self.read()
                if (current and current.token) != (expected and expected.token):
                    raise ConflictError(f"{self._document} is not what was read")
                remove_stray_files(self._document)
                write_atomically(self._document, data)
        return StoredDocument(data=data, token=sha256(data).hexdigest())


class LocalJournalStore:
    """Keeps each run's journal as one file of lines in `<folder>/<environment>.journal`."""

    def __init__(self, folder: Path, environment: str) -> None:
        self._folder = folder / f"{environment}.journal"

    def append(self, run_id: str, position: int, entry: bytes) -> None:
        """Append a line durably; its position is its place in the file."""
        path = self._path(run_id)
        with store_errors(path, "written"):
            self._folder.mkdir(parents=True, exist_ok=True)
            append_durably(path, entry + b"\n")

    def read(self) -> Mapping[str, Sequence[bytes]]:
        """Return the lines by run id, including a line that a killed run left incomplete."""
        journals: dict[str, Sequence[bytes]] = {}
        with store_errors(self._folder, "read"):
            for path in sorted(self._folder.glob("*.jsonl")):
                with suppress(FileNotFoundError):  # a run may end at this moment: this read has no lock
                    journals[path.stem] = path.read_bytes().splitlines()
        return journals

    def remove(self, run_id: str) -> None:
        """Remove a run's journal."""
        with store_errors(self._path(run_id), "removed"):
            self._path(run_id).unlink(missing_ok=True)

    def _path(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.jsonl"


def copy_of_remote(folder: Path, environment: str) -> bytes | None:
    """Return the local copy of a remote document, of any age; None if there is none."""
    try:
        _, _, data = _copy(folder, environment).read_bytes().partition(b"\n")
    except FileNotFoundError:
        return None
    return data


def _copy(folder: Path, environment: str) -> Path:
    return folder / f"{environment}.cache"


class _CopyHeader(msgspec.Struct, frozen=True, kw_only=True):
    location: str
    state_id: str
    serial: int
    sha256: str
    token: str
    cached_at: Moment


class HybridStateStore:
    """A remote store with a local copy for commands that only read; saves and locked runs use the remote store."""

    def __init__(
        self,
        remote: StateStore,
        folder: Path,
        environment: str,
        *,
        max_age_seconds: float,
        now: Callable[[], Moment] = utc_now,
    ) -> None:
        self._remote = remote
        self._copy = _copy(folder, environment)
        self._max_age_seconds = max_age_seconds
        self._now = now

    @property
    def location(self) -> str:
        """The remote document's place."""
        return self._remote.location

    @property
    def versions(self) -> FileVersions:
        """The remote's versions."""
        return self._remote.versions

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        """Return a young copy if the caller accepts one, else the remote document; see `StateStore.read`."""
        copy = self._young_copy() if allow_cached else None
        if copy is not None:
            return copy
        stored = self._remote.read()
        if stored is not None:
            self._keep_copy(stored)
        return stored

    def replace(
        self, data: bytes, identity: DocumentIdentity, expected: StoredDocument | None
    ) -> StoredDocument:
        """Write to the remote; see `StateStore.replace`."""
        stored = self._remote.replace(data, identity, expected)
        self._keep_copy(stored)
        return stored

    def _young_copy(self) -> StoredDocument | None:
        """Return the copy if it is complete, young and of this remote, else None."""
        try:
            header, _, data = self._copy.read_bytes().partition(b"\n")
            copied = msgspec.json.decode(header, type=_CopyHeader)
        except _UNREADABLE:
            return None
        age = (self._now() - copied.cached_at).total_seconds()
        is_usable = (
            0 <= age <= self._max_age_seconds
            and copied.location == self._remote.location
            and copied.sha256 == sha256(data).hexdigest()
        )
        return StoredDocument(data=data, token=copied.token) if is_usable else None

    def _keep_copy(self, stored: StoredDocument) -> None:
        """Write the copy; after a failure, the next reader pays a round trip."""
        try:
            identity = identity_in(stored.data)
            header = _CopyHeader(
                location=self._remote.location,
                state_id=identity.state_id,
                serial=identity.serial,
                sha256=sha256(stored.data).hexdigest(),
                token=stored.token,
                cached_at=self._now(),
            )
            self._copy.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._copy, msgspec.json.encode(header) + b"\n" + stored.data)
        except _UNREADABLE:
            with suppress(OSError):  # an old copy is still valid, and soon expires
                self._copy.unlink()
