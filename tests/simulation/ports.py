"""The ports of a process: the catalog, the store, the journals and the lock, each call of which may meet a fault."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from delta_engine.backends.sql_runner import Row
from delta_engine.deployment.codec import decode_state
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.errors import ConflictError, StoreError, UncertainWriteError
from delta_engine.deployment.stored import DocumentIdentity, LockRecord, StoredDocument
from delta_engine.deployment.stores.files import FileVersions
from delta_engine.deployment.stores.memory import MemoryStateStore
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import Function, QualifiedName, Securable
from delta_engine.state.states import CatalogState
from tests.simulation.judge import grants_on
from tests.simulation.lagging import shown
from tests.simulation.processes import PortErrors, Process

_QUESTIONS = ("SELECT", "SHOW", "DESCRIBE")


class SimulatedCatalog:
    """Reads the catalog and runs statements for a process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._catalog = process.world.catalog

    def run(self, sql: str) -> Sequence[Row]:
        def effect() -> Sequence[Row]:
            return self._process.world.run_sql(sql, self._process)

        if not sql.startswith(_QUESTIONS):
            self._process.world.judge.on_sent(self._process, sql)
            self._process.is_changing = True
        return self._process.call(_shortened(sql), effect, statement_errors(sql))

    def count(self, tables: Iterable[QualifiedName]) -> dict[str, int]:
        keys = [table.key for table in tables]
        return self._process.call("counts rows", lambda: dict.fromkeys(keys, 0), READ_ERRORS)

    def snapshot(self, models: Sequence[Securable]) -> CatalogState:
        return self._read("reads the catalog", models, directly=False)

    def snapshot_directly(self, models: Sequence[Securable]) -> CatalogState:
        return self._read("reads again, directly", models, directly=True)

    def _read(self, what: str, models: Sequence[Securable], *, directly: bool) -> CatalogState:
        world = self._process.world

        def effect() -> CatalogState:
            if any(isinstance(model, Function) for model in models):
                self._process.seen_grants = grants_on(self._catalog.functions)
            state = self._catalog.snapshot(models)
            return shown(
                state,
                world.lags,
                world.past,
                world.stage.now,
                directly=directly,
                is_listed=world.scenario.is_listed,
            )

        return self._process.call(what, effect, READ_ERRORS)


class SimulatedStore:
    """Reads and replaces the document for a process."""

    location = "the store"

    def __init__(self, process: Process, documents: Documents) -> None:
        self._process = process
        self._documents = documents

    @property
    def versions(self) -> FileVersions:
        return self._documents.versions

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        return self._process.call("reads the deployment state", self._documents.read, _STORE_READ_ERRORS)

    def replace(
        self, data: bytes, identity: DocumentIdentity, expected: StoredDocument | None
    ) -> StoredDocument:
        def effect() -> StoredDocument:
            stored = self._documents.replace(data, identity, expected)
            self._process.world.judge.on_saved(self._process, state_in(data))
            return stored

        return self._process.call(f"saves serial {identity.serial}", effect, _STORE_ERRORS)


class Documents(MemoryStateStore):
    """The document of all processes, and its versions."""

    def store(self, process: Process) -> SimulatedStore:
        return SimulatedStore(process, self)

    def state(self) -> DeploymentState | None:
        stored = self.read()
        return state_in(stored.data) if stored else None


class Journals:
    """The journals of all processes."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[int, bytes]] = {}

    def store(self, process: Process) -> SimulatedJournals:
        return SimulatedJournals(process, self)


class SimulatedJournals:
    """Keeps journals for a process."""

    def __init__(self, process: Process, journals: Journals) -> None:
        self._process = process
        self._journals = journals

    def append(self, run_id: str, position: int, entry: bytes) -> None:
        def effect() -> None:
            self._journals.entries.setdefault(run_id, {})[position] = entry
            self._process.world.judge.on_journaled(self._process)

        self._process.call(f"journals entry {position}", effect, _STORE_ERRORS)

    def read(self) -> Mapping[str, Sequence[bytes]]:
        def effect() -> Mapping[str, Sequence[bytes]]:
            entries = self._journals.entries
            self._process.read_journals = frozenset(entries)
            return {run_id: [lines[place] for place in sorted(lines)] for run_id, lines in entries.items()}

        return self._process.call("reads the journals", effect, _STORE_READ_ERRORS)

    def remove(self, run_id: str) -> None:
        def effect() -> None:
            self._journals.entries.pop(run_id, None)

        if run_id in self._journals.entries:
            self._process.call("removes a journal", effect, _STORE_ERRORS)


class LockRecordOfAll:
    """The record of the lock."""

    def __init__(self) -> None:
        self.record: LockRecord | None = None

    def records(self, process: Process) -> SimulatedLockRecords:
        return SimulatedLockRecords(process, self)

    @property
    def token(self) -> str | None:
        record = self.record
        return f"{record.lock_id} {record.beat} {record.released}" if record else None

    def replace(self, record: LockRecord, expected: str | None) -> str:
        if expected != self.token:
            raise ConflictError("something else is there")
        self.record = record
        return str(self.token)


class SimulatedLockRecords:
    """Reads and replaces the record of the lock for a process."""

    location = "the lock"

    def __init__(self, process: Process, lock: LockRecordOfAll) -> None:
        self._process = process
        self._lock = lock

    def read(self) -> tuple[LockRecord, str] | None:
        def effect() -> tuple[LockRecord, str] | None:
            record = self._lock.record
            return (record, str(self._lock.token)) if record else None

        with self._process.at_lock():
            return self._process.call("reads the lock", effect, _STORE_READ_ERRORS)

    def replace(self, record: LockRecord, expected: str | None) -> str:
        def effect() -> str:
            token = self._lock.replace(record, expected)
            self._process.lock_ids.add(record.lock_id)
            return token

        with self._process.at_lock():
            return self._process.call(replacing(record), effect, _STORE_ERRORS, is_release=record.released)


def replacing(record: LockRecord) -> str:
    """Return what a process does that writes a record of the lock."""
    return "releases the lock" if record.released else "renews the lock" if record.beat else "takes the lock"


def state_in(data: bytes) -> DeploymentState:
    """Return the deployment state in a document."""
    state, _version = decode_state(data, environment="test", where="the store")
    return state


def statement_errors(sql: str) -> PortErrors:
    def error(condition: str | None) -> StatementError:
        return StatementError("simulated", sql=sql, error_class=condition, is_outcome_unknown=not condition)

    return PortErrors(
        refused=partial(error, "INSUFFICIENT_PERMISSIONS"),
        throttled=partial(error, "RESOURCE_EXHAUSTED"),
        unavailable=partial(error, "TEMPORARILY_UNAVAILABLE"),
        lost=partial(error, None),
        conflict=partial(error, "DELTA_METADATA_CHANGED"),
    )


def _of(kind: type[Exception], lost: type[Exception], conflict: type[Exception]) -> PortErrors:
    refused = partial(kind, "simulated")
    return PortErrors(
        refused=refused,
        throttled=refused,
        unavailable=partial(lost, "simulated"),
        lost=partial(lost, "simulated"),
        conflict=partial(conflict, "simulated"),
    )


READ_ERRORS = _of(CatalogReadError, CatalogReadError, CatalogReadError)
_STORE_READ_ERRORS = _of(StoreError, StoreError, StoreError)
_STORE_ERRORS = _of(StoreError, UncertainWriteError, ConflictError)


def _shortened(sql: str) -> str:
    text = " ".join(sql.replace("`dev`.`silver`.", "").replace("`", "").split())
    return text if len(text) <= 110 else f"{text[:109]}…"
