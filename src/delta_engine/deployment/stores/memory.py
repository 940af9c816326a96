"""A deployment state that lives as long as its process, without a lock, for callers that record nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

from delta_engine.deployment.errors import ConflictError
from delta_engine.deployment.ports import LockLease
from delta_engine.deployment.stored import DocumentIdentity, LockHolder, StoredDocument, StoredFile
from delta_engine.deployment.stores.files import FileJournals, FileVersions
from delta_engine.telemetry.context import utc_now


class MemoryStateStore:
    """Keeps the document and its versions in memory."""

    location = "memory"

    def __init__(self) -> None:
        self._current: StoredDocument | None = None
        self.versions = FileVersions(MemoryFiles(), "versions")

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        """Return the document."""
        return self._current

    def replace(
        self, data: bytes, identity: DocumentIdentity, expected: StoredDocument | None
    ) -> StoredDocument:
        """Write the document if it is still the expected one; see `StateStore.replace`."""
        if self._current != expected:
            raise ConflictError("the document is not what was read")
        self._current = StoredDocument(data=data, token=sha256(data).hexdigest())
        return self._current


class MemoryFiles:
    """Keeps files in memory."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, StoredFile]] = {}

    def location(self, name: str) -> str:
        """Return a name for messages."""
        return f"memory:{name}"

    def read(self, name: str) -> bytes | None:
        """Return a file's bytes."""
        return self._files[name][0] if name in self._files else None

    def write(self, name: str, data: bytes) -> str:
        """Write or replace a file."""
        self._files[name] = data, StoredFile(name=name, size=len(data), modified_at=utc_now())
        return self.location(name)

    def create(self, name: str, data: bytes) -> None:
        """Write a file unless it exists."""
        if name not in self._files:
            self.write(name, data)

    def list(self, folder: str) -> Sequence[StoredFile]:
        """Return all files below a folder."""
        return [file for _, file in self._files.values() if file.name.startswith(f"{folder}/")]

    def delete(self, name: str) -> None:
        """Delete a file."""
        self._files.pop(name, None)

    def delete_folder(self, folder: str) -> None:
        """Delete all files in a folder."""
        for file in self.list(folder):
            self.delete(file.name)


def memory_journals() -> FileJournals:
    """Return journals in memory."""
    return FileJournals(MemoryFiles(), "journal")


class NoLock:
    """A lock that is always free, for a deployment state that no other run can reach."""

    location = "memory"

    def acquire(
        self,
        holder: LockHolder,
        *,
        timeout_seconds: float,
        on_wait: Callable[[LockHolder], None] = lambda _holder: None,
    ) -> LockLease:
        """Return a lease that never expires."""
        return _NoLease()

    def holder(self) -> LockHolder | None:
        """Return None."""
        return None

    def break_lock(self) -> LockHolder | None:
        """Return None."""
        return None


class _NoLease:
    fence = 1
    taken_over_from = None

    def check(self) -> None:
        """Accept."""

    def release(self) -> None:
        """Do nothing."""
