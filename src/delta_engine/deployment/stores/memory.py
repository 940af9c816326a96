"""A deployment state that lives as long as its run: for callers that keep none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256

from delta_engine.deployment.errors import ConflictError
from delta_engine.deployment.ports import Identity, StateVersion, StoredDocument
from delta_engine.deployment.stamps import utc_now


class MemoryStateStore:
    """Keeps the document and its versions in memory."""

    location = "memory"

    def __init__(self) -> None:
        self._current: StoredDocument | None = None
        self._versions: dict[str, tuple[datetime, bytes]] = {}

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        """Return the document."""
        return self._current

    def replace(
        self,
        data: bytes,
        identity: Identity,
        expected: StoredDocument | None,
    ) -> StoredDocument:
        """Write the document if it is still the expected one; see `StateStore.replace`."""
        if self._current != expected:
            raise ConflictError("the document is not what was read")
        self._current = StoredDocument(data=data, token=sha256(data).hexdigest())
        return self._current

    def keep_version(self, version_id: str, data: bytes) -> None:
        """Keep a document that is about to be replaced."""
        self._versions.setdefault(version_id, (utc_now(), data))

    def versions(self) -> Sequence[StateVersion]:
        """Return the kept versions, newest first."""
        return [
            StateVersion(version_id=version_id, saved_at=saved_at, size=len(data))
            for version_id, (saved_at, data) in sorted(self._versions.items(), reverse=True)
        ]

    def read_version(self, version_id: str) -> bytes | None:
        """Return a kept version's bytes; None if there is no such version."""
        return self._versions[version_id][1] if version_id in self._versions else None

    def keep_backup(self, name: str, data: bytes) -> str:
        """Keep a copy."""
        self.keep_version(name, data)
        return f"{self.location}:{name}"


class MemoryJournalStore:
    """Keeps journals in memory."""

    def __init__(self) -> None:
        self._entries: dict[str, list[bytes]] = {}

    def append(self, run_id: str, position: int, entry: bytes) -> None:
        """Add an entry."""
        self._entries.setdefault(run_id, []).append(entry)

    def read(self) -> Mapping[str, Sequence[bytes]]:
        """Return the entries by run."""
        return {run_id: tuple(entries) for run_id, entries in self._entries.items()}

    def remove(self, run_id: str) -> None:
        """Remove a run's journal."""
        self._entries.pop(run_id, None)
