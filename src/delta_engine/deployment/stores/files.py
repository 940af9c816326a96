"""The files next to a document in any folder: earlier versions, backups and the journals of runs."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from delta_engine.deployment.errors import CorruptStateError
from delta_engine.deployment.files import Files, JournalFiles
from delta_engine.deployment.stored import DocumentIdentity, StateVersion, StoredDocument
from delta_engine.telemetry.context import command

_VERSION_ENDING: Final = ".json.gz"
_ENTRY_ENDING: Final = ".json"
_PARALLEL_READS: Final = 8


class FileVersions:
    """Keeps the earlier documents of one environment, each as a compressed file, `<folder>/<version id>.json.gz`.

    Args:
        kept: the number of versions to keep; None for all.
        current: reads the current document's identity, for stores with that document in the same folder.
    """

    def __init__(
        self,
        files: Files,
        folder: str,
        *,
        kept: int | None = None,
        current: Callable[[], DocumentIdentity | None] | None = None,
    ) -> None:
        self._files = files
        self._folder = folder
        self._kept = kept
        self._current = current

    def keep(self, version_id: str, data: bytes) -> None:
        """Keep a document before its replacement, and delete the versions beyond the limit. Idempotent."""
        self._files.create(self.name(version_id), compressed(data))
        if self._kept is not None:
            for old in self._all()[self._kept :]:
                self._files.delete(self.name(old.version_id))

    def list(self) -> Sequence[StateVersion]:
        """Return the kept versions, newest first, without the current document.

        A folder that holds the current document may hold others of its serial, and later ones, that never became
        current. They are ignored.
        """
        current = self._current() if self._current else None
        versions = self._all(is_replaced=self._current is None or current is not None)
        if current is None:
            return versions
        serial = f"{current.serial:08d}"
        return [version for version in versions if version.version_id[:8] < serial]

    def newest(self) -> StateVersion | None:
        """Return the version of the highest serial, also if it is current; None if no version is kept."""
        return next(iter(self._all()), None)

    def read(self, version_id: str) -> bytes | None:
        """Return a kept version's bytes; None if it does not exist. Raises `CorruptStateError` if it is damaged."""
        name = self.name(version_id)
        data = None if "/" in version_id else self._files.read(name)
        return None if data is None else decompressed(data, self._files.location(name))

    def back_up(self, name: str, data: bytes) -> str:
        """Keep a copy next to the document, such as `prod.state.v0.backup.json`; return its place."""
        return self._files.write(name, data)

    def location(self, name: str) -> str:
        """Return the place of a backup."""
        return self._files.location(name)

    def name(self, version_id: str) -> str:
        """Return the name of a version's file."""
        return f"{self._folder}/{version_id}{_VERSION_ENDING}"

    def _all(self, *, is_replaced: bool = True) -> Sequence[StateVersion]:
        versions = [
            StateVersion(
                version_id=file.name[len(self._folder) + 1 : -len(_VERSION_ENDING)],
                saved_at=file.modified_at,
                size=file.size,
                is_replaced=is_replaced,
            )
            for file in self._files.list(self._folder)
            if file.name.endswith(_VERSION_ENDING)
        ]
        return sorted(versions, key=lambda version: version.version_id, reverse=True)


class FileJournals:
    """Keeps each entry of a journal as a file, `<folder>/<run id>/<position>.json`."""

    def __init__(self, files: JournalFiles, folder: str) -> None:
        self._files = files
        self._folder = folder

    def append(self, run_id: str, position: int, entry: bytes) -> None:
        """Add an entry; a hidden retry that writes it twice is harmless."""
        self._files.write(f"{self._folder}/{run_id}/{position:06d}{_ENTRY_ENDING}", entry)

    def read(self) -> Mapping[str, Sequence[bytes]]:
        """Return the entries of every journal, in order, by run id; ignore other files."""
        places = []
        for file in self._files.list(self._folder):
            run_id, _, entry = file.name[len(self._folder) + 1 :].rpartition("/")
            position = entry.removesuffix(_ENTRY_ENDING)
            if run_id and entry.endswith(_ENTRY_ENDING) and position.isdecimal():
                places.append((run_id, int(position), file.name))
        places.sort()
        with ThreadPoolExecutor(_PARALLEL_READS) as threads:  # an entry per table, a round trip each
            entries = list(threads.map(self._files.read, (name for _, _, name in places)))
        journals: dict[str, list[bytes]] = {}
        for (run_id, _, _), data in zip(places, entries, strict=True):
            if data is not None:
                journals.setdefault(run_id, []).append(data)
        return journals

    def remove(self, run_id: str) -> None:
        """Remove a run's journal."""
        self._files.delete_folder(f"{self._folder}/{run_id}")


def compressed(data: bytes) -> bytes:
    """Return a document in compressed form: the same bytes for the same document."""
    return gzip.compress(data, compresslevel=1, mtime=0)


def decompressed(data: bytes, where: str, stored: StoredDocument | None = None) -> bytes:
    """Return a compressed document's bytes; a damaged one raises `CorruptStateError` with `stored`."""
    try:
        if not data:
            raise EOFError("it is empty")  # gzip accepts an empty file
        return gzip.decompress(data)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptStateError(
            f"it is damaged: {error}",
            where=where,
            way_out=f"{command('state versions')} lists other versions.",
            stored=stored,
        ) from None
