"""Deployment states on Databricks: documents in a volume, and which of them is current in a Delta table.

A volume has no compare-and-swap, a Delta commit has, but is no place for megabytes. So every document is an
immutable file, and the head, one row per environment, says which one counts.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256

from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.deployment.codec import restore_hint
from delta_engine.deployment.databricks.delta_row import DeltaRow, Value
from delta_engine.deployment.databricks.volume_files import VolumeFiles
from delta_engine.deployment.errors import ConflictError, CorruptStateError, StoreError, UncertainWriteError
from delta_engine.deployment.ports import Identity, StateVersion, StoredDocument
from delta_engine.deployment.stamps import utc_now

HEADS = "deployment_heads"

_COLUMNS: Mapping[str, type] = {
    "state_id": str,
    "serial": int,
    "write_id": str,
    "sha256": str,
    "size": int,
    "blob": str,
    "saved_at": str,
}
_IDENTITY = ("state_id", "serial", "write_id")
_COMMENT = "Delta Engine: which document of each environment is current. Changed by the engine alone."
_SEVERAL = (
    "Keep the row of the highest serial; of equal ones, that of the run that succeeded. Delete each other one, adding "
    "`AND write_id = '…'` with its own write_id:"
)
_SUFFIX = ".json.gz"


class DatabricksStateStore:
    """Keeps the documents of one environment in `<volume>/<environment>/documents`.

    Args:
        runner: runs SQL: one SELECT a load, one UPDATE a save.
        files: the volume's files.
        heads: the SQL that addresses the table of heads.
        volume: the volume's path, `/Volumes/<catalog>/<schema>/<volume>`.
        environment: the environment's name.
    """

    def __init__(
        self, runner: SqlRunner, files: VolumeFiles, *, heads: str, volume: str, environment: str
    ) -> None:
        self._files = files
        self._folder = f"{volume}/{environment}"
        self._head = DeltaRow(runner, heads, environment, _COLUMNS, _COMMENT, one_of_several=_SEVERAL)

    @property
    def location(self) -> str:
        """The head's row."""
        return self._head.location

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        """Return the document that the head names; see `StateStore.read`."""
        head = self._head.read()
        if head is None:
            return None
        blob = str(head["blob"])
        compressed = self._files.download(blob)
        left = StoredDocument(data=compressed or b"", token=_token(head), identity=_identity(head))
        if compressed is None or sha256(compressed).hexdigest() != head["sha256"]:
            what = "is gone" if compressed is None else "does not match the head's checksum"
            raise CorruptStateError(
                f"the document {blob} {what}", where=self.location, way_out=restore_hint(), stored=left
            )
        return StoredDocument(data=_decompressed(compressed, blob, left), token=left.token)

    def replace(self, data: bytes, identity: Identity, expected: StoredDocument | None) -> StoredDocument:
        """Upload the document, and move the head if it is still the expected one; see `StateStore.replace`."""
        compressed = _compressed(data)
        path = self._path(identity.version_id)
        self._upload(path, compressed)
        head: dict[str, Value] = {
            "state_id": identity.state_id,
            "serial": identity.serial,
            "write_id": identity.write_id,
            "sha256": sha256(compressed).hexdigest(),
            "size": len(compressed),
            "blob": path,
            "saved_at": utc_now().isoformat(timespec="seconds"),
        }
        try:
            self._head.replace(head, None if expected is None else json.loads(expected.token))
        except ConflictError:
            self._remove_unless_current(path)
            raise
        return StoredDocument(data=data, token=_token(head))

    def keep_version(self, version_id: str, data: bytes) -> None:
        """Keep a document: its file is there already, unless it came from somewhere else."""
        if not self._files.exists(self._path(version_id)):
            self._upload(self._path(version_id), _compressed(data))

    def versions(self) -> Sequence[StateVersion]:
        """Return the documents but the current one, newest first; what never became current is left out.

        Without a head, no document is known to be current or never to have been: all are returned.
        """
        head = self._head.read()
        found = [
            StateVersion(
                version_id=file.name.removesuffix(_SUFFIX),
                saved_at=file.modified_at,
                size=file.size,
                is_replaced=head is not None,
            )
            for file in self._files.list_folder(f"{self._folder}/documents")
            if file.name.endswith(_SUFFIX) and (head is None or file.path != head["blob"])
        ]
        if head is not None:
            serial = f"{int(str(head['serial'])):08d}"
            found = [version for version in found if version.version_id[:8] <= serial]
        return sorted(found, key=lambda version: version.version_id, reverse=True)

    def read_version(self, version_id: str) -> bytes | None:
        """Return a document's bytes; None if there is none of that name."""
        if "/" in version_id:
            return None
        compressed = self._files.download(self._path(version_id))
        return None if compressed is None else _decompressed(compressed, self._path(version_id))

    def keep_backup(self, name: str, data: bytes) -> str:
        """Keep a copy beside the documents; return its path."""
        path = f"{self._folder}/{name}"
        self._files.upload(path, data, overwrite=True)
        return path

    def _path(self, version_id: str) -> str:
        return f"{self._folder}/documents/{version_id}{_SUFFIX}"

    def _upload(self, path: str, compressed: bytes) -> None:
        """Upload and look: databricks-sdk before 0.38 could upload nothing and report success.

        Raises:
            StoreError: the file is not there, or not whole; no head names it.
        """
        doubt: StoreError | None = None
        try:
            self._files.upload(path, compressed, overwrite=False)
        except (ConflictError, UncertainWriteError) as error:
            doubt = error  # by a hidden retry it may be there all the same
        if self._files.download(path) != compressed:
            raise StoreError(f"{path}: the upload did not arrive whole. Run again.") from doubt

    def _remove_unless_current(self, path: str) -> None:
        """Remove a document that lost; if that fails it is a file that no head names."""
        with suppress(StoreError, CorruptStateError):
            head = self._head.read()
            if head is not None and head["blob"] != path:
                self._files.delete(path)


class DatabricksJournalStore:
    """Keeps journals as small files in `<volume>/<environment>/journal/<run>`.

    Args:
        files: the volume's files.
        volume: the volume's path.
        environment: the environment's name.
    """

    def __init__(self, files: VolumeFiles, *, volume: str, environment: str) -> None:
        self._files = files
        self._folder = f"{volume}/{environment}/journal"

    def append(self, run_id: str, position: int, entry: bytes) -> None:
        """Add an entry; written twice, by a hidden retry, it is still one."""
        self._files.upload(f"{self._folder}/{run_id}/{position:06d}.json", entry, overwrite=True)

    def read(self) -> Mapping[str, Sequence[bytes]]:
        """Return the entries by run, in order."""
        runs = [entry for entry in self._files.list_folder(self._folder) if entry.is_folder]
        return {run.name: [entry for _, entry in self._entries(run.path)] for run in runs}

    def remove(self, run_id: str) -> None:
        """Remove a run's journal."""
        folder = f"{self._folder}/{run_id}"
        files = self._files.list_folder(folder)
        for file in files:
            self._files.delete(file.path)
        if files:
            self._files.delete_folder(folder)

    def _entries(self, folder: str) -> Sequence[tuple[str, bytes]]:
        files = sorted(self._files.list_folder(folder), key=lambda file: file.name)
        found = ((file.name, self._files.download(file.path)) for file in files)
        return [(name, entry) for name, entry in found if entry is not None]


class VolumeReportFiles:
    """Keeps reports in the volume itself, beside the folders of the environments.

    Args:
        files: the volume's files.
        volume: the volume's path.
    """

    def __init__(self, files: VolumeFiles, *, volume: str) -> None:
        self._files = files
        self._volume = volume

    def write(self, name: str, data: bytes) -> str:
        """Write or replace a file; return its path."""
        path = f"{self._volume}/{name}"
        self._files.upload(path, data, overwrite=True)
        return path


def _token(head: Row | Mapping[str, Value]) -> str:
    return json.dumps({name: head[name] for name in _IDENTITY})


def _identity(head: Row) -> Identity:
    return Identity(
        state_id=str(head["state_id"]), serial=int(str(head["serial"])), write_id=str(head["write_id"])
    )


def _compressed(data: bytes) -> bytes:
    return gzip.compress(data, compresslevel=1, mtime=0)


def _decompressed(compressed: bytes, where: str, stored: StoredDocument | None = None) -> bytes:
    try:
        return gzip.decompress(compressed)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptStateError(f"it is damaged: {error}", where=where, stored=stored) from None
