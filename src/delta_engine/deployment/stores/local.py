"""Deployment states as local files: for laptops, and for what hybrid stores keep at hand."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path

from delta_engine.deployment.errors import ConflictError, CorruptStateError
from delta_engine.deployment.local_files import (
    append_durably,
    exclusive,
    remove_stray_files,
    store_errors,
    write_atomically,
)
from delta_engine.deployment.ports import Identity, StateVersion, StoredDocument

KEPT_VERSIONS = 50
"""How many earlier documents are kept."""

_VERSION_SUFFIX = ".json.gz"


class LocalStateStore:
    """Keeps `<folder>/<environment>.state.json`, and the versions in a folder beside it.

    Args:
        folder: made when something is written.
        environment: the environment's name.
    """

    def __init__(self, folder: Path, environment: str) -> None:
        self._folder = folder
        self._document = folder / f"{environment}.state.json"
        self._guard = folder / f"{environment}.state.guard"
        self._versions = folder / f"{environment}.versions"

    @property
    def location(self) -> str:
        """The document's path."""
        return str(self._document)

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        """Return the document; see `StateStore.read`."""
        with store_errors(self._document, "read"):
            try:
                data = self._document.read_bytes()
            except FileNotFoundError:
                return None
        return StoredDocument(data=data, token=sha256(data).hexdigest())

    def replace(
        self,
        data: bytes,
        identity: Identity,
        expected: StoredDocument | None,
    ) -> StoredDocument:
        """Write the document if the file's content is still the expected one; see `StateStore.replace`."""
        with store_errors(self._document, "written"):
            self._folder.mkdir(parents=True, exist_ok=True)
            with exclusive(self._guard):
                current = self.read()
                if (current and current.token) != (expected and expected.token):
                    raise ConflictError(f"{self._document} is not what was read")
                remove_stray_files(self._document)
                write_atomically(self._document, data)
        return StoredDocument(data=data, token=sha256(data).hexdigest())

    def keep_version(self, version_id: str, data: bytes) -> None:
        """Keep a document that is about to be replaced, and let go of the oldest ones."""
        path = self._version_path(version_id)
        with store_errors(path, "written"):
            self._versions.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                write_atomically(path, gzip.compress(data, compresslevel=1, mtime=0))
            for old in self._version_files()[KEPT_VERSIONS:]:
                old.unlink(missing_ok=True)

    def versions(self) -> Sequence[StateVersion]:
        """Return the kept versions, newest first."""
        with store_errors(self._versions, "read"):
            return [
                StateVersion(
                    version_id=path.name.removesuffix(_VERSION_SUFFIX),
                    saved_at=datetime.fromtimestamp(path.stat().st_mtime, timezone.utc),
                    size=path.stat().st_size,
                )
                for path in self._version_files()
            ]

    def read_version(self, version_id: str) -> bytes | None:
        """Return a kept version's bytes; None if there is no such version."""
        path = self._version_path(version_id)
        if path not in self._version_files():
            return None
        with store_errors(path, "read"):
            try:
                return gzip.decompress(path.read_bytes())
            except (EOFError, gzip.BadGzipFile) as error:
                raise CorruptStateError(f"it is damaged: {error}", where=str(path)) from None

    def keep_backup(self, name: str, data: bytes) -> str:
        """Keep a copy beside the document; return its path."""
        path = self._folder / name
        with store_errors(path, "written"):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data)
        return str(path)

    def _version_path(self, version_id: str) -> Path:
        return self._versions / f"{version_id}{_VERSION_SUFFIX}"

    def _version_files(self) -> list[Path]:
        return sorted(self._versions.glob(f"*{_VERSION_SUFFIX}"), reverse=True)


class LocalJournalStore:
    """Keeps each run's journal as a file of lines in `<folder>/<environment>.journal`.

    Args:
        folder: the deployment state's folder.
        environment: the environment's name.
    """

    def __init__(self, folder: Path, environment: str) -> None:
        self._folder = folder / f"{environment}.journal"

    def append(self, run_id: str, position: int, entry: bytes) -> None:
        """Add a line and make it durable; its position is its place in the file."""
        path = self._path(run_id)
        with store_errors(path, "written"):
            self._folder.mkdir(parents=True, exist_ok=True)
            append_durably(path, entry + b"\n")

    def read(self) -> Mapping[str, Sequence[bytes]]:
        """Return the lines by run; a line that a killed run left half-written is among them."""
        journals: dict[str, Sequence[bytes]] = {}
        with store_errors(self._folder, "read"):
            for path in sorted(self._folder.glob("*.jsonl")):
                with suppress(
                    FileNotFoundError
                ):  # its run has just ended, where this one looks without the lock
                    journals[path.stem] = path.read_bytes().splitlines()
        return journals

    def remove(self, run_id: str) -> None:
        """Remove a run's journal."""
        with store_errors(self._path(run_id), "removed"):
            self._path(run_id).unlink(missing_ok=True)

    def _path(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.jsonl"


class LocalReportFiles:
    """Keeps reports in the deployment state's folder.

    Args:
        folder: made when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, data: bytes) -> str:
        """Write or replace a file, whole or not at all; return its path."""
        path = self._folder / name
        with store_errors(path, "written"):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data)
        return str(path)
