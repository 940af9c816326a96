"""A deployment state on Databricks: the engine's own store and lock over the doubles of a volume and of small tables.

Each call of the Files API, and each statement about the head or the lock, takes its turn and may meet a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from databricks.sdk.errors import PermissionDenied, ResourceConflict, TemporarilyUnavailable, TooManyRequests
from databricks.sdk.service.files import DirectoryEntry, DownloadResponse

from delta_engine.backends.sql_runner import Row
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.locks.records import decode_lock_record
from delta_engine.deployment.stored import LockRecord
from delta_engine.deployment.stores.databricks import DatabricksStateStore, DeltaLockRecords
from delta_engine.deployment.stores.files import FileJournals
from delta_engine.deployment.stores.volume_files import VolumeFiles
from delta_engine.errors import StatementError
from tests.fakes.files_api import FakeFilesApi
from tests.fakes.warehouse_sql import SmallTables
from tests.simulation.ports import replacing, state_in, statement_errors
from tests.simulation.processes import PortErrors, Process

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

_ROOT: Final = "/Volumes/dev/ops/state/test"
_JOURNALS: Final = "journal"
_HEADS: Final = "`dev`.`ops`.`deployment_heads`"
_LOCKS: Final = "`dev`.`ops`.`deployment_locks`"

_FILE_ERRORS: Final = PortErrors(
    refused=partial(PermissionDenied, "simulated"),
    throttled=partial(TooManyRequests, "simulated"),
    unavailable=partial(TemporarilyUnavailable, "simulated"),
    lost=partial(TimeoutError, "simulated"),
    conflict=partial(ResourceConflict, "simulated"),
)
_WORDS: Final = {
    "SELECT": "reads the {}",
    "CREATE": "creates the table of the {}",
    "MERGE": "writes the first row of the {}",
    "DELETE": "takes the row of the {} back",
}


class Volume:
    """The files and small tables of all processes of a team."""

    def __init__(self) -> None:
        self.api = FakeFilesApi()
        self.tables = SmallTables()

    def files(self, process: Process) -> VolumeFiles:
        """Return the engine's files of a volume for a process."""
        client = SimpleNamespace(files=SimulatedFilesApi(process, self.api))
        return VolumeFiles(cast("WorkspaceClient", client), _ROOT)

    def row(self, table: str, column: str) -> str | None:
        """Return the text of a row; None if there is no row, or no table yet."""
        with suppress(StatementError):
            for row in self.tables.run(f"SELECT {column} FROM {table}"):
                return str(row[column])
        return None


class VolumeDocuments:
    """The document of all processes: a file that the head names."""

    def __init__(self, volume: Volume) -> None:
        self._volume = volume

    def state(self) -> DeploymentState | None:
        path = self._volume.row(_HEADS, "blob")
        return state_in(self._volume.api.files[path]) if path else None

    def store(self, process: Process) -> DatabricksStateStore:
        runner = SimulatedRow(process, self._volume.tables, "head", lambda: _note_save(process))
        return DatabricksStateStore(runner, self._volume.files(process), heads=_HEADS, environment="test")


class VolumeJournals:
    """The journals of all processes: a folder for each."""

    def __init__(self, volume: Volume) -> None:
        self._volume = volume

    @property
    def entries(self) -> Mapping[str, Mapping[int, bytes]]:
        entries: dict[str, dict[int, bytes]] = {}
        for path, data in self._volume.api.files.items():
            folder, run_id, name = path.rsplit("/", 2)
            if folder == f"{_ROOT}/{_JOURNALS}":
                entries.setdefault(run_id, {})[int(name.partition(".")[0])] = data
        return entries

    def store(self, process: Process) -> SimulatedVolumeJournals:
        return SimulatedVolumeJournals(process, FileJournals(self._volume.files(process), _JOURNALS))


class SimulatedVolumeJournals:
    """Keeps journals for a process, and which ones it read."""

    def __init__(self, process: Process, journals: FileJournals) -> None:
        self._process = process
        self.append = journals.append
        self.remove = journals.remove
        self._read = journals.read

    def read(self) -> Mapping[str, Sequence[bytes]]:
        journals = self._read()
        self._process.read_journals = frozenset(journals)
        return journals


class VolumeLock:
    """The record of the lock: a row."""

    def __init__(self, volume: Volume) -> None:
        self._volume = volume

    @property
    def record(self) -> LockRecord | None:
        text = self._volume.row(_LOCKS, "record")
        return decode_lock_record(text.encode(), where=_LOCKS, token=text) if text else None

    def records(self, process: Process) -> SimulatedDeltaLockRecords:
        return SimulatedDeltaLockRecords(process, SimulatedRow(process, self._volume.tables, "lock"))


class SimulatedDeltaLockRecords:
    """Reads and replaces the record of the lock for a process, which it knows again by its ids."""

    location = "the lock"

    def __init__(self, process: Process, row: SimulatedRow) -> None:
        self._process = process
        self._row = row
        self._records = DeltaLockRecords(row, _LOCKS, "test")

    def read(self) -> tuple[LockRecord, str] | None:
        with self._process.at_lock():
            return self._records.read()

    def replace(self, record: LockRecord, expected: str | None) -> str:
        self._process.lock_ids.add(record.lock_id)
        self._row.update, self._row.is_release = replacing(record), record.released
        with self._process.at_lock():
            return self._records.replace(record, expected)


class SimulatedRow:
    """Runs statements about a row for a process.

    Attributes:
        update: what an update does, in words.
        is_release: whether statements release the lock.
    """

    def __init__(
        self,
        process: Process,
        tables: SmallTables,
        name: str,
        on_written: Callable[[], None] = lambda: None,
    ) -> None:
        self._process = process
        self._tables = tables
        self._name = name
        self._on_written = on_written
        self.update = f"moves the {name}"
        self.is_release = False

    def run(self, sql: str) -> Sequence[Row]:
        if sql.startswith("SELECT current_user"):
            return [{"current_user()": self._process.actor}]

        def effect() -> Sequence[Row]:
            rows = self._tables.run(sql)
            if rows and rows[0].get("num_affected_rows"):
                self._on_written()
            return rows

        words = _WORDS.get(sql.split()[0], self.update).format(self._name)
        return self._process.call(words, effect, statement_errors(sql), is_release=self.is_release)


class SimulatedFilesApi:
    """Calls the Files API for a process."""

    def __init__(self, process: Process, api: FakeFilesApi) -> None:
        self._process = process
        self._api = api

    def upload(self, path: str, contents: BinaryIO, *, overwrite: bool) -> None:
        def effect() -> None:
            self._api.upload(path, contents, overwrite=overwrite)
            if f"/{_JOURNALS}/" in path:
                self._process.world.judge.on_journaled(self._process)

        self._process.call(f"uploads {_short(path)}", effect, _FILE_ERRORS)

    def download(self, path: str) -> DownloadResponse:
        return self._process.call(f"downloads {_short(path)}", lambda: self._api.download(path), _FILE_ERRORS)

    def get_metadata(self, path: str) -> None:
        self._process.call(f"looks for {_short(path)}", lambda: self._api.get_metadata(path), _FILE_ERRORS)

    def list_directory_contents(self, path: str) -> Sequence[DirectoryEntry]:
        return self._process.call(
            f"lists {_short(path)}", lambda: self._api.list_directory_contents(path), _FILE_ERRORS
        )

    def create_directory(self, path: str) -> None:
        self._process.call(f"creates {_short(path)}", lambda: self._api.create_directory(path), _FILE_ERRORS)

    def delete(self, path: str) -> None:
        self._process.call(f"deletes {_short(path)}", lambda: self._api.delete(path), _FILE_ERRORS)

    def delete_directory(self, path: str) -> None:
        self._process.call(f"deletes {_short(path)}", lambda: self._api.delete_directory(path), _FILE_ERRORS)


def _short(path: str) -> str:
    return path.removeprefix(f"{_ROOT}/")


def _note_save(process: Process) -> None:
    state = process.team.documents.state()
    assert state is not None
    process.world.judge.on_saved(process, state)
