"""A local copy over an authoritative remote store: for commands that only look.

The copy is taken while it is young enough, and only where the caller says that a copy will do. It is never
written back: every save and every locked run goes to the remote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from delta_engine.deployment.local_files import write_atomically
from delta_engine.deployment.lock_record import Moment
from delta_engine.deployment.ports import Identity, StateStore, StateVersion, StoredDocument
from delta_engine.deployment.remnants import UNDECODABLE, identity_in
from delta_engine.deployment.stamps import utc_now

_UNREADABLE = (OSError, *UNDECODABLE)
"""What a damaged file comes to."""


class _Key(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy is a copy of."""

    location: str
    state_id: str
    serial: int
    sha256: str
    token: str
    cached_at: Moment


class HybridStateStore:
    """Reads through a local copy.

    Args:
        remote: the authoritative store.
        folder: where the copy lies.
        environment: the environment's name.
        max_age_seconds: how old a copy may be.
        now: the clock, UTC.
    """

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
        self._copy = folder / f"{environment}.cache"
        self._max_age_seconds = max_age_seconds
        self._now = now

    @property
    def location(self) -> str:
        """Where the remote document is."""
        return self._remote.location

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        """Return the copy if it will do, else the remote document; see `StateStore.read`."""
        copy = self._young_copy() if allow_cached else None
        if copy is not None:
            return copy
        stored = self._remote.read()
        if stored is not None:
            self._keep_copy(stored)
        return stored

    def replace(self, data: bytes, identity: Identity, expected: StoredDocument | None) -> StoredDocument:
        """Write to the remote; see `StateStore.replace`."""
        stored = self._remote.replace(data, identity, expected)
        self._keep_copy(stored)
        return stored

    def keep_version(self, version_id: str, data: bytes) -> None:
        """Keep a document in the remote."""
        self._remote.keep_version(version_id, data)

    def versions(self) -> Sequence[StateVersion]:
        """Return the remote's versions."""
        return self._remote.versions()

    def read_version(self, version_id: str) -> bytes | None:
        """Return one of the remote's versions."""
        return self._remote.read_version(version_id)

    def keep_backup(self, name: str, data: bytes) -> str:
        """Keep a copy in the remote."""
        return self._remote.keep_backup(name, data)

    def _young_copy(self) -> StoredDocument | None:
        """Return the copy, if it is whole, of this remote and young; a broken one is as good as none."""
        try:
            header, _, data = self._copy.read_bytes().partition(b"\n")
            key = msgspec.json.decode(header, type=_Key)
        except _UNREADABLE:
            return None
        age = (self._now() - key.cached_at).total_seconds()
        is_usable = (
            0 <= age <= self._max_age_seconds
            and key.location == self._remote.location
            and key.sha256 == sha256(data).hexdigest()
            and (key.state_id, key.serial) == _state_id_and_serial(data)
        )
        return StoredDocument(data=data, token=key.token) if is_usable else None

    def _keep_copy(self, stored: StoredDocument) -> None:
        """Write the copy; a folder that cannot be written only costs the next reader a round trip."""
        try:
            state_id, serial = _state_id_and_serial(stored.data)
            key = _Key(
                location=self._remote.location,
                state_id=state_id,
                serial=serial,
                sha256=sha256(stored.data).hexdigest(),
                token=stored.token,
                cached_at=self._now(),
            )
            self._copy.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._copy, msgspec.json.encode(key) + b"\n" + stored.data)
        except _UNREADABLE:
            with suppress(OSError):  # an old copy is still what it says it is, and too old soon
                self._copy.unlink()


def _state_id_and_serial(data: bytes) -> tuple[str, int]:
    found = identity_in(data)
    return found.state_id, found.serial
