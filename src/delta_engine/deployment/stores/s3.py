"""The deployment state in an S3 bucket, or on any server with S3's interface and its conditional writes.

Beside the document `<environment>.state.json` lie its versions, `<environment>.versions/<version id>.json.gz`, and the
journals, `<environment>.journal/<run id>/<position>.json`. An object's ETag is what a save compares. Identical
bytes have the identical ETag: only the fresh write id in every document makes the comparison safe.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from delta_engine.deployment.aws.s3_folder import JSON_TYPE, S3Folder
from delta_engine.deployment.errors import ConflictError, CorruptStateError
from delta_engine.deployment.ports import Identity, StateVersion, StoredDocument
from delta_engine.telemetry.context import command

_VERSION_ENDING: Final = ".json.gz"
_GZIP_TYPE: Final = "application/gzip"
_ENTRY_ENDING: Final = ".json"
_REPORT_TYPES: Final = {".html": "text/html; charset=utf-8", ".json": JSON_TYPE}


class S3StateStore:
    """Keeps the document of one environment.

    Args:
        folder: where.
        environment: the environment's name.
    """

    def __init__(self, folder: S3Folder, environment: str) -> None:
        self._folder = folder
        self._document = f"{environment}.state.json"
        self._versions = f"{environment}.versions/"

    @property
    def location(self) -> str:
        """Where the document is."""
        return self._folder.location(self._document)

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        """Return the document; there is no cache here."""
        found = self._folder.get(self._document)
        return None if found is None else StoredDocument(data=found.data, token=found.etag)

    def replace(self, data: bytes, identity: Identity, expected: StoredDocument | None) -> StoredDocument:
        """Write the document if its ETag is still the expected one.

        State id and serial go into the object's metadata, for people who look at the bucket.
        """
        etag = self._folder.replace(
            self._document,
            data,
            None if expected is None else expected.token,
            metadata={"state-id": identity.state_id, "serial": str(identity.serial)},
        )
        return StoredDocument(data=data, token=etag)

    def keep_version(self, version_id: str, data: bytes) -> None:
        """Keep a version, compressed; the first one kept stays."""
        name = self._version(version_id)
        compressed = gzip.compress(data, compresslevel=1, mtime=0)
        try:
            self._folder.replace(name, compressed, None, content_type=_GZIP_TYPE)
        except ConflictError:
            # A 409 is also what S3 says to one of two that write at the same time.
            if not self._folder.list_objects(name):
                raise

    def versions(self) -> Sequence[StateVersion]:
        """Return the kept versions, newest first."""
        kept = [
            StateVersion(
                version_id=found.key[len(self._versions) : -len(_VERSION_ENDING)],
                saved_at=found.modified_at,
                size=found.size,
            )
            for found in self._folder.list_objects(self._versions)
            if found.key.endswith(_VERSION_ENDING)
        ]
        return sorted(kept, key=lambda version: version.version_id, reverse=True)

    def read_version(self, version_id: str) -> bytes | None:
        """Return a kept version's bytes."""
        found = self._folder.get(self._version(version_id))
        if found is None:
            return None
        try:
            return _decompressed(found.data)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise CorruptStateError(
                f"the version cannot be decompressed: {error}",
                where=self._folder.location(self._version(version_id)),
                way_out=f"{command('state versions')} lists others.",
            ) from None

    def keep_backup(self, name: str, data: bytes) -> str:
        """Keep a copy beside the document."""
        self._folder.put(name, data)
        return self._folder.location(name)

    def _version(self, version_id: str) -> str:
        return f"{self._versions}{version_id}{_VERSION_ENDING}"


class S3JournalStore:
    """Keeps the journals of one environment's runs, an object per entry.

    Args:
        folder: where.
        environment: the environment's name.
    """

    def __init__(self, folder: S3Folder, environment: str) -> None:
        self._folder = folder
        self._journals = f"{environment}.journal/"

    def append(self, run_id: str, position: int, entry: bytes) -> None:
        """Add an entry. Written twice, by a hidden retry, it is still one."""
        self._folder.put(f"{self._journals}{run_id}/{position:06d}{_ENTRY_ENDING}", entry)

    def read(self) -> Mapping[str, Sequence[bytes]]:
        """Return the entries of every journal, in order, by run."""
        places = sorted(self._places(""))
        entries = self._folder.get_all(name for _, _, name in places)
        journals: dict[str, list[bytes]] = {}
        for (run_id, _, _), entry in zip(places, entries, strict=True):
            if entry is not None:
                journals.setdefault(run_id, []).append(entry.data)
        return journals

    def remove(self, run_id: str) -> None:
        """Remove a run's journal."""
        self._folder.delete_all(name for _, _, name in self._places(f"{run_id}/"))

    def _places(self, beginning: str) -> Sequence[tuple[str, int, str]]:
        """Return run, position and name of every entry; other people's objects are passed over."""
        places = []
        for found in self._folder.list_objects(f"{self._journals}{beginning}"):
            run_id, _, entry = found.key[len(self._journals) :].rpartition("/")
            position = entry.removesuffix(_ENTRY_ENDING)
            if run_id and entry.endswith(_ENTRY_ENDING) and position.isdecimal():
                places.append((run_id, int(position), found.key))
        return places


class S3ReportFiles:
    """Keeps reports in the deployment state's folder, with the type that makes a browser show them.

    Args:
        folder: where.
    """

    def __init__(self, folder: S3Folder) -> None:
        self._folder = folder

    def write(self, name: str, data: bytes) -> str:
        """Write or replace an object, on no condition: the last report is as good as any. Return where it is."""
        content_type = _REPORT_TYPES.get(PurePosixPath(name).suffix, "application/octet-stream")
        self._folder.put(name, data, content_type=content_type)
        return self._folder.location(name)


def _decompressed(data: bytes) -> bytes:
    if not data:
        raise EOFError("it is empty")  # of which `gzip` makes nothing, without a word
    return gzip.decompress(data)
