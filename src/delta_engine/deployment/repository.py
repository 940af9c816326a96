"""Loads and saves the deployment state of one environment.

Every save is a compare-and-swap on state id, serial and write id. The lock cannot prevent that two runs lose each
other's records; the compare-and-swap can. A conflict or a lost answer is resolved by reading back: a document with
our write id is ours, whatever the store answered.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from tempfile import gettempdir

import msgspec

from delta_engine.config.whole_files import write_atomically
from delta_engine.deployment.codec import decode_state, encode_state, lost_document
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
from delta_engine.deployment.local_files import UNDECODABLE, lost_identity
from delta_engine.deployment.ports import StateStore
from delta_engine.deployment.stored import DocumentIdentity, StateVersion, StoredDocument
from delta_engine.deployment.stores.files import FileVersions
from delta_engine.telemetry.context import command, new_id, utc_now
from delta_engine.telemetry.visible import shown_moment

_ATTEMPTS = 3

_REPLACED_SINCE = "replaced since"
"""The token of a saved document that was replaced since; no store returns it."""

_UNUSABLE = (CorruptStateError, NewerStateError, StateMismatchError)


class _Ancestry(DocumentIdentity, frozen=True, kw_only=True):
    """A document's identity, with the write ids of the latest saves before it, newest first."""

    recent_write_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedState:
    """A loaded or saved deployment state; the next save replaces exactly `stored`."""

    state: DeploymentState
    stored: StoredDocument = field(repr=False)
    format_version: int = VERSION

    @property
    def identity(self) -> DocumentIdentity:
        """What distinguishes it from every other document."""
        return _identity(self.state)

    @property
    def version_id(self) -> str:
        """Its name among the kept versions once it is replaced."""
        return self.identity.version_id


class StateRepository:
    """The documents of one environment; refuses those of others, and writes unsaved ones to `errored_dir`."""

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
        self._unused_serial = 0  # of a kept document that no run has used

    @property
    def location(self) -> str:
        """The document's place."""
        return self._store.location

    def load(self, *, allow_cached: bool = False) -> LoadedState | None:
        """Return the current document, migrated if necessary; None before the first save.

        A first save that was killed may have left its document among the versions. Nothing is lost with it.

        Raises:
            CorruptStateError, NewerStateError, StateMismatchError: it is unusable, or gone although versions are kept.
            StoreError: it cannot be read.
        """
        stored = self._store.read(allow_cached=allow_cached)
        if stored is not None:
            return _loaded(stored, self._environment, self.location)
        newest = self._store.versions.newest()
        if newest is not None:
            self._unused_serial = self._serial_of_unused()
            if not self._unused_serial:
                raise lost_document(f"its version {newest.version_id} is kept", self.location)
        return None

    def save(
        self, state: DeploymentState, base: LoadedState | None, *, write_id: str | None = None
    ) -> LoadedState:
        """Save the successor of `base` (None: the first document); return it with its new serial, write id and time.

        Raises:
            StaleStateError: another run saved since `base` was loaded; nothing was written.
            UnsavedStateError: it could not be saved; the user restores it from a file.
        """
        earlier = (base.state.write_id, *base.state.recent_write_ids) if base else ()
        serial = base.state.serial if base else self._unused_serial
        successor = self._successor(state, serial, earlier, write_id)
        return self._save(successor, base.stored if base else None, lambda: _keep(self._store.versions, base))

    def versions(self) -> Sequence[StateVersion]:
        """Return the kept earlier documents, newest first, without those of saves that failed."""
        kept = self._store.versions.list()
        current = _ancestry(self._current_data) if kept else _Ancestry()
        return [
            version
            for version in self._without_failed_saves(kept, current.recent_write_ids)
            if version.version_id != current.version_id
        ]

    def load_version(self, version_id: str) -> DeploymentState:
        """Return a kept or the current document, by version id or serial; raise `StateMismatchError` if unknown."""
        if version_id.isdecimal():
            current = None
            with suppress(CorruptStateError):  # a damaged current document makes the versions more important
                current = self.load()
            if current and current.state.serial == int(version_id):
                return current.state
            serial = f"{int(version_id):08d}-"
            saves = current.state.recent_write_ids if current else ()
            kept = self._without_failed_saves(self._store.versions.list(), saves)
            matching = [version.version_id for version in kept if version.version_id.startswith(serial)]
            version_id = matching[0] if matching else version_id
        data = self._store.versions.read(version_id)
        if data is None:
            raise StateMismatchError(
                f"there is no version {version_id!r}",
                where=self.location,
                way_out=f"{command('state versions', self._environment)} lists them.",
            )
        return self.decode(data, where=f"version {version_id} of {self.location}")

    def backup_location(self, version: int) -> str:
        """Return the place of the backup that a migration from a format makes."""
        return self._store.versions.location(_backup(self._environment, f"v{version}"))

    def decode(self, data: bytes, *, where: str) -> DeploymentState:
        """Parse a document from elsewhere, such as a file; raise as `load` if it is unusable."""
        return _loaded(StoredDocument(data=data, token=""), self._environment, where).state

    def replace_lost(
        self, state: DeploymentState, require_successor: Callable[[DeploymentState, DocumentIdentity], None]
    ) -> LoadedState:
        """Save a document in place of a missing or unreadable one, above every known serial; back up the remains.

        `require_successor` refuses a document that must not follow the given identity.
        """
        stored = _current(self._store)
        lost = lost_identity(self._store, stored)
        if lost.state_id:  # a file with the lost document's own serial may replace it
            require_successor(state, lost.with_values(serial=lost.serial - 1))
        earlier = (lost.write_id,) if lost.write_id else ()
        successor = self._successor(state, max(lost.serial, state.serial), earlier)
        versions = self._store.versions
        return self._save(successor, stored, lambda: _keep_remains(versions, self._environment, stored))

    def _serial_of_unused(self) -> int:
        """Return the serial of the kept documents if all are first ones in which nothing was applied, 0 otherwise."""
        serial = 0
        with suppress(*_UNUSABLE):
            for version in self._store.versions.list():
                state = self.load_version(version.version_id)
                if state.recent_write_ids or any(record.ours for record in state.resources.values()):
                    return 0
                serial = max(serial, state.serial)
            return serial
        return 0

    def _without_failed_saves(
        self, kept: Sequence[StateVersion], saves: Sequence[str]
    ) -> Iterator[StateVersion]:
        """Yield of several versions with one serial only the one that a later document names.

        A save that fails may leave its document beside the one of another run. If no document tells which of them was
        current, all are yielded.

        Args:
            kept: newest first.
            saves: the write ids of the latest saves before the current document.
        """
        later: StateVersion | None = None
        for _, group in groupby(kept, lambda version: version.version_id.partition("-")[0]):
            versions: Sequence[StateVersion] = list(group)
            if len(versions) > 1:
                if later is not None and not _saved_by(versions, saves):
                    saves = _ancestry(partial(self._store.versions.read, later.version_id)).recent_write_ids
                versions = _saved_by(versions, saves) or versions
            yield from versions
            later = versions[0]

    def _current_data(self) -> bytes | None:
        stored = self._store.read()
        return stored.data if stored else None

    def _successor(
        self, state: DeploymentState, serial: int, earlier: Sequence[str], write_id: str | None = None
    ) -> DeploymentState:
        """Number a document after the highest serial; a restored one keeps its write id, since this one contains it."""
        restored = (state.write_id,) if state.serial else ()
        return state.numbered(
            serial + 1,
            write_id=write_id or self._new_write_id(),
            recent_write_ids=tuple(dict.fromkeys((*restored, *earlier)))[:KEPT_WRITE_IDS],
            at=self._now(),
        )

    def _save(
        self, successor: DeploymentState, expected: StoredDocument | None, keep: Callable[[], None]
    ) -> LoadedState:
        data = encode_state(successor)
        try:
            keep()
            stored = _written(self._store, self._environment, successor, data, expected)
        except (StoreError, CorruptStateError) as error:
            raise _unsaved(data, successor, self._errored_dir, error) from error
        saved = LoadedState(state=successor, stored=stored)
        with suppress(
            StoreError
        ):  # a copy for the case that the document is lost; the next save keeps it otherwise
            self._store.versions.keep(saved.version_id, data)
        return saved


def _ancestry(read: Callable[[], bytes | None]) -> _Ancestry:
    """Read a document's ancestry; an empty one if the document is gone or unreadable."""
    try:
        return msgspec.json.decode(read() or b"", type=_Ancestry)
    except (CorruptStateError, *UNDECODABLE):
        return _Ancestry()


def _saved_by(versions: Sequence[StateVersion], write_ids: Sequence[str]) -> Sequence[StateVersion]:
    """Return the versions with one of the given write ids."""
    return [version for version in versions if version.version_id.partition("-")[2] in write_ids]


def _keep(versions: FileVersions, base: LoadedState | None) -> None:
    """Keep the document that the save replaces as a version; one of an old format also as a backup."""
    if base is None:
        return
    if base.format_version != VERSION:
        _back_up(versions, base.state.environment.name, base.stored, f"v{base.format_version}")
    versions.keep(base.version_id, base.stored.data)


def _keep_remains(versions: FileVersions, environment: str, stored: StoredDocument | None) -> None:
    if stored is not None and stored.data:
        why = f"unreadable-{sha256(stored.data).hexdigest()[:12]}"
        _back_up(versions, environment, stored, why)


def _back_up(versions: FileVersions, environment: str, stored: StoredDocument, why: str) -> None:
    versions.back_up(_backup(environment, why), stored.data)


def _backup(environment: str, why: str) -> str:
    return f"{environment}.state.{why}.backup.json"


def _loaded(stored: StoredDocument, environment: str, where: str) -> LoadedState:
    state, version = decode_state(stored.data, environment=environment, where=where)
    name = state.environment.name
    if name != environment:
        raise StateMismatchError(
            f"it is the deployment state of the environment {name!r}, not of {environment!r}",
            where=where,
            way_out="Give each environment a place of its own in state_backend.",
        )
    return LoadedState(state=state, stored=stored, format_version=version)


def _current(store: StateStore) -> StoredDocument | None:
    try:
        return store.read()
    except CorruptStateError as error:
        if error.stored is None:
            raise
        return error.stored


def _written(
    store: StateStore,
    environment: str,
    successor: DeploymentState,
    data: bytes,
    expected: StoredDocument | None,
) -> StoredDocument:
    """Write a document, and resolve a conflict or a lost answer by reading back."""
    attempt = 1
    while True:
        try:
            return store.replace(data, _identity(successor), expected)
        except (ConflictError, UncertainWriteError) as error:
            current = _current(store)
            if current and current.data == data:
                return current
            present: LoadedState | Exception | None = None
            try:
                present = _loaded(current, environment, store.location) if current else None
            except _UNUSABLE as unusable:
                present = unusable
            if isinstance(present, LoadedState) and successor.write_id in present.state.recent_write_ids:
                return StoredDocument(data=data, token=_REPLACED_SINCE)
            if (current and current.token) != (expected and expected.token):
                raise _stale(store.location, present) from error
            if attempt == _ATTEMPTS:
                raise
        attempt += 1


def _stale(where: str, present: LoadedState | Exception | None) -> StaleStateError:
    match present:
        case None:
            reason = "it does not exist any more"
        case LoadedState(state=state):
            reason = f"it is now at serial {state.serial}, of {shown_moment(state.updated_at)}"
        case unusable:
            reason = str(unusable)
    return StaleStateError(where, reason)


def _unsaved(data: bytes, state: DeploymentState, errored_dir: Path, error: Exception) -> UnsavedStateError:
    """Write an unsaved document to a file, and return the error that names the file."""
    name = f"errored-{state.serial}.json"
    for folder in (errored_dir, Path(gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / name, data)
        except OSError:
            continue
        restore = command(f"state restore {shlex.quote(str(folder / name))}", state.environment.name)
        return UnsavedStateError(
            f"the deployment state could not be saved: {error}\nIt lies in {folder / name}. When the store "
            f"works again: {restore}",
            file=folder / name,
        )
    return UnsavedStateError(
        f"the deployment state could not be saved, nor written to {errored_dir} or {gettempdir()}: "
        f"{error}\nThe next sync reads the catalog and records what it finds.",
        file=None,
    )


def _identity(state: DeploymentState) -> DocumentIdentity:
    return DocumentIdentity(
        state_id=state.state_id,
        serial=state.serial,
        write_id=state.write_id,
        updated_at=state.updated_at.isoformat(),
        updated_by=state.updated_by,
    )
