"""Loads and saves the deployment state of one environment.

Every save is a compare-and-swap on state id, serial and write id. That, and not the lock, is what keeps two runs
from losing each other's records. A conflict or a lost answer is resolved by reading back: a document that
carries our write id is ours, whatever the store said.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir

import msgspec

from delta_engine.deployment.codec import Decoded, decode_state, encode_state
from delta_engine.deployment.document import KEPT_WRITE_IDS, VERSION, DeploymentState
from delta_engine.deployment.errors import (
    ConflictError,
    CorruptStateError,
    NewerStateError,
    StaleStateError,
    StateMismatchError,
    StoreError,
    UncertainWriteError,
    UnsavedStateError,
)
from delta_engine.deployment.local_files import write_atomically
from delta_engine.deployment.ports import Identity, StateStore, StateVersion, StoredDocument
from delta_engine.deployment.remnants import lost_identity
from delta_engine.deployment.stamps import new_id, utc_now
from delta_engine.telemetry.context import command

_ATTEMPTS = 3

_REPLACED_SINCE = "replaced since"
"""The token of a document that was saved, and is not the current one any more: no store hands it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedState:
    """A deployment state as it was loaded or saved.

    Args:
        state: the document.
        stored: what the store has; the next save replaces exactly this.
        format_version: the format in which it is stored.
    """

    state: DeploymentState
    stored: StoredDocument = field(repr=False)
    format_version: int = VERSION

    @property
    def identity(self) -> Identity:
        """What makes it different from every other document."""
        return _identity(self.state)

    @property
    def version_id(self) -> str:
        """The name under which it is kept once it is replaced."""
        return self.identity.version_id


class StateRepository:
    """The documents of one environment.

    Args:
        store: where they are.
        environment: the environment's name; documents of others are refused.
        errored_dir: where a document goes that cannot be saved.
        now: the clock.
        new_write_id: makes the id of each save.
    """

    def __init__(
        self,
        store: StateStore,
        environment: str,
        *,
        errored_dir: Path,
        now: Callable[[], datetime] = utc_now,
        new_write_id: Callable[[], str] = new_id,
    ) -> None:
        self._store = store
        self._environment = environment
        self._errored_dir = errored_dir
        self._now = now
        self._new_write_id = new_write_id

    @property
    def location(self) -> str:
        """Where the document is."""
        return self._store.location

    def load(self, *, allow_cached: bool = False) -> LoadedState | None:
        """Return the current document, migrated if need be; None if there is none yet.

        Args:
            allow_cached: whether a recent copy will do.

        Raises:
            CorruptStateError, NewerStateError, StateMismatchError: it is not one that can be used.
            StoreError: it cannot be read.
        """
        stored = self._store.read(allow_cached=allow_cached)
        return self._decoded(stored) if stored else None

    def save(
        self, state: DeploymentState, base: LoadedState | None, *, write_id: str | None = None
    ) -> LoadedState:
        """Save the successor of a document.

        Args:
            state: what to save; serial, write id and time are set here.
            base: the document that it replaces; None for the first.
            write_id: an id of the caller's, used for this save alone; a fresh one by default.

        Returns:
            What was saved.

        Raises:
            StaleStateError: somebody else saved since `base` was loaded; nothing was written.
            UnsavedStateError: it could not be saved; it lies in a file, to be restored by hand.
        """
        before = base.state.serial if base else 0
        earlier = (base.state.write_id, *base.state.recent_write_ids) if base else ()
        successor = self._successor(state, before, earlier, write_id or self._new_write_id())
        return self._save(successor, base.stored if base else None, lambda: self._keep(base))

    def versions(self) -> Sequence[StateVersion]:
        """Return the earlier documents that are kept, newest first."""
        return self._store.versions()

    def load_version(self, version_id: str) -> DeploymentState:
        """Return an earlier document.

        Args:
            version_id: a version's id, or a serial, which may be the current one's.

        Raises:
            StateMismatchError: there is no such version.
            CorruptStateError, NewerStateError: it cannot be used.
        """
        if version_id.isdecimal():
            with suppress(CorruptStateError):  # the more reason to want another one
                current = self.load()
                if current and current.state.serial == int(version_id):
                    return current.state
            serial = f"{int(version_id):08d}-"
            matching = [one.version_id for one in self._store.versions() if one.version_id.startswith(serial)]
            version_id = matching[0] if matching else version_id
        data = self._store.read_version(version_id)
        if data is None:
            raise StateMismatchError(
                f"there is no version {version_id!r}",
                where=self.location,
                way_out=f"{command('state versions', self._environment)} lists them.",
            )
        return self.decode(data, where=f"version {version_id} of {self.location}")

    def decode(self, data: bytes, *, where: str) -> DeploymentState:
        """Read a document that came from elsewhere, such as a file.

        Raises:
            CorruptStateError, NewerStateError, StateMismatchError: it cannot be used.
        """
        return self._checked(decode_state(data, environment=self._environment, where=where), where).state

    def replace_lost(
        self, state: DeploymentState, require_successor: Callable[[DeploymentState, Identity], None]
    ) -> LoadedState:
        """Save a document where the current one cannot be read or is gone, above every serial that is known.

        What is left of the lost one is kept as a backup.

        Args:
            state: what to save.
            require_successor: refuses what must not follow a document of that identity.

        Raises:
            StoreError, StaleStateError, UnsavedStateError: as `save`.
        """
        stored = self._current()
        lost = lost_identity(self._store, stored)
        if lost.state_id:  # of the lost one nothing can be saved: those before it count
            require_successor(state, dataclasses.replace(lost, serial=lost.serial - 1))
        earlier = (lost.write_id,) if lost.write_id else ()
        successor = self._successor(state, max(lost.serial, state.serial), earlier, self._new_write_id())
        return self._save(successor, stored, lambda: self._keep_remnant(stored))

    def _save(
        self, successor: DeploymentState, expected: StoredDocument | None, keep: Callable[[], None]
    ) -> LoadedState:
        data = encode_state(successor)
        try:
            keep()
            stored = self._write(data, successor, expected)
            return LoadedState(state=successor, stored=stored)
        except (StoreError, CorruptStateError) as error:
            raise self._unsaved(data, successor, error) from error

    def _decoded(self, stored: StoredDocument) -> LoadedState:
        decoded = decode_state(stored.data, environment=self._environment, where=self.location)
        self._checked(decoded, self.location)
        return LoadedState(state=decoded.state, stored=stored, format_version=decoded.version)

    def _checked(self, decoded: Decoded, where: str) -> Decoded:
        name = decoded.state.environment.name
        if name != self._environment:
            raise StateMismatchError(
                f"it is the deployment state of the environment {name!r}, not of {self._environment!r}",
                where=where,
                way_out="Give each environment a place of its own in state_backend.",
            )
        return decoded

    def _successor(
        self, state: DeploymentState, before: int, earlier: Sequence[str], write_id: str
    ) -> DeploymentState:
        """Number a document. A restored one brings its own write id along: what it holds is in this one.

        Args:
            state: the document.
            before: the highest serial so far.
            earlier: the latest write ids so far.
            write_id: its own.
        """
        restored = (state.write_id,) if state.serial else ()
        return msgspec.structs.replace(
            state,
            serial=before + 1,
            write_id=write_id,
            recent_write_ids=tuple(dict.fromkeys((*restored, *earlier)))[:KEPT_WRITE_IDS],
            updated_at=self._now(),
            resources=dict(sorted(state.resources.items())),
        )

    def _keep(self, base: LoadedState | None) -> None:
        """Keep what is about to be replaced: a version, or for an old format a backup as well."""
        if base is None:
            return
        if base.format_version != VERSION:
            self._back_up(base.stored, f"v{base.format_version}")
        self._store.keep_version(base.version_id, base.stored.data)

    def _keep_remnant(self, stored: StoredDocument | None) -> None:
        if stored is not None and stored.data:
            self._back_up(stored, f"unreadable-{sha256(stored.data).hexdigest()[:12]}")

    def _back_up(self, stored: StoredDocument, why: str) -> None:
        self._store.keep_backup(f"{self._environment}.state.{why}.backup.json", stored.data)

    def _current(self) -> StoredDocument | None:
        """Return what the store has, also what it knows to be damaged."""
        try:
            return self._store.read()
        except CorruptStateError as error:
            if error.stored is None:
                raise
            return error.stored

    def _write(
        self, data: bytes, successor: DeploymentState, expected: StoredDocument | None
    ) -> StoredDocument:
        """Write, and resolve every answer but a plain yes by reading back."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._store.replace(data, _identity(successor), expected)
            except (ConflictError, UncertainWriteError) as error:
                current = self._current()
                if current and current.data == data:
                    return current
                if self._was_saved(successor.write_id, current):
                    return StoredDocument(data=data, token=_REPLACED_SINCE)
                if (current and current.token) != (expected and expected.token):
                    raise self._stale(current) from error
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("the loop returns or raises")

    def _was_saved(self, write_id: str, current: StoredDocument | None) -> bool:
        """Whether others have saved on top of our save."""
        if current is None:
            return False
        try:
            state = self._decoded(current).state
        except (CorruptStateError, NewerStateError, StateMismatchError):
            return False
        return write_id in state.recent_write_ids

    def _stale(self, current: StoredDocument | None) -> StaleStateError:
        found = "there is none any more"
        if current is not None:
            try:
                state = self._decoded(current).state
                found = f"it is now at serial {state.serial}, of {state.updated_at:%Y-%m-%d %H:%M:%S} UTC"
            except (CorruptStateError, NewerStateError, StateMismatchError) as error:
                found = str(error)
        return StaleStateError(
            f"{self.location}: the deployment state was saved by somebody else since it was loaded ({found}). "
            "Run again: nothing of theirs is lost."
        )

    def _unsaved(self, data: bytes, state: DeploymentState, error: Exception) -> UnsavedStateError:
        name = f"errored-{state.serial}.json"
        for folder in (self._errored_dir, Path(gettempdir())):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write_atomically(folder / name, data)
            except OSError:
                continue
            restore = command(f"state restore {shlex.quote(str(folder / name))}", self._environment)
            return UnsavedStateError(
                f"the deployment state could not be saved: {error}\nIt lies in {folder / name}. When the store "
                f"works again: {restore}"
            )
        return UnsavedStateError(
            f"the deployment state could not be saved, nor written to {self._errored_dir} or {gettempdir()}: "
            f"{error}\nThe next sync reads the catalog and records what it finds."
        )


def _identity(state: DeploymentState) -> Identity:
    return Identity(state_id=state.state_id, serial=state.serial, write_id=state.write_id)
