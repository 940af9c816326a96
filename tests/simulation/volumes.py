"""A deployment state on Databricks: the engine's own store over the doubles of a volume and of small tables.

Each call of the Files API, and each statement about the head, takes its turn and may meet a fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from databricks.sdk.errors import PermissionDenied, ResourceConflict, TemporarilyUnavailable, TooManyRequests
from databricks.sdk.service.files import DirectoryEntry, DownloadResponse

from delta_engine.backends.sql_runner import Row
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.stores.databricks import DatabricksStateStore
from delta_engine.deployment.stores.files import FileJournals
from delta_engine.deployment.stores.volume_files import VolumeFiles
from delta_engine.errors import StatementError
from tests.fakes.files_api import FakeFilesApi
from tests.fakes.warehouse_sql import SmallTables
from tests.simulation.ports import state_in, statement_errors
from tests.simulation.processes import PortErrors, Process

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

_ROOT: Final = "/Volumes/dev/ops/state/test"
_JOURNALS: Final = "journal"
_HEADS: Final = "`dev`.`ops`.`deployment_heads`"

_FILE_ERRORS: Final = PortErrors(
    refused=partial(PermissionDenied, "simulated"),
    throttled=partial(TooManyRequests, "simulated"),
    unavailable=partial(TemporarilyUnavailable, "simulated"),
    lost=partial(TimeoutError, "simulated"),
    conflict=partial(ResourceConflict, "simulated"),
)
_WORDS: Final = {
    "SELECT": "reads the head",
    "CREATE": "creates the table of heads",
    "MERGE": "writes the first head",
    "UPDATE": "moves the head",
    "DELETE": "takes the head back",
}


class Volume:
    """The files and heads of all processes of a team."""

    def __init__(self) -> None:
        self.api = FakeFilesApi()
        self.heads = SmallTables()

    def files(self, process: Process) -> VolumeFiles:
        """Return the engine's files of a volume for a process."""
        client = SimpleNamespace(files=SimulatedFilesApi(process, self.api))
        return VolumeFiles(cast("WorkspaceClient", client), _ROOT)


class VolumeDocuments:
    """The document of all processes: a file that the head names."""

    def __init__(self, volume: Volume) -> None:
        self._volume = volume

    def state(self) -> DeploymentState | None:
        rows: Sequence[Row] = ()
        with suppress(StatementError):  # there is no table yet
            rows = self._volume.heads.run(f"SELECT blob FROM {_HEADS}")
        return state_in(self._volume.api.files[str(rows[0]["blob"])]) if rows else None

    def store(self, process: Process) -> DatabricksStateStore:
        runner = SimulatedHeads(process, self._volume.heads)
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


class SimulatedHeads:
    """Runs statements about the head for a process."""

    def __init__(self, process: Process, heads: SmallTables) -> None:
        self._process = process
        self._heads = heads

    def run(self, sql: str) -> Sequence[Row]:
        if sql.startswith("SELECT current_user"):
            return [{"current_user()": self._process.actor}]

        def effect() -> Sequence[Row]:
            rows = self._heads.run(sql)
            if rows and rows[0].get("num_affected_rows"):
                state = self._process.team.documents.state()
                assert state is not None
                self._process.world.judge.on_saved(self._process, state)
            return rows

        return self._process.call(_WORDS[sql.split()[0]], effect, statement_errors(sql))


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
