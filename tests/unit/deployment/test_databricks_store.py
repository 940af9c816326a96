"""Documents in a volume whose head row is gone."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from databricks.sdk.errors import AlreadyExists, NotFound
from databricks.sdk.service.files import DirectoryEntry

from delta_engine.backends.error_conditions import statement_error
from delta_engine.backends.sql_runner import Row
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.errors import StateMismatchError, UnsavedStateError
from delta_engine.deployment.stores.databricks import DatabricksStateStore
from delta_engine.deployment.stores.volume_files import VolumeFiles
from tests.deployment_builders import deployment_over, deployment_state
from tests.servers.warehouse_sql import SmallTables

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient


class MemoryVolume:
    """The calls of the SDK's Files API that a store makes, in memory."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def upload(self, path: str, contents: BytesIO, *, overwrite: bool) -> None:
        if not overwrite and path in self.files:
            raise AlreadyExists(path)
        self.files[path] = contents.read()

    def download(self, path: str) -> SimpleNamespace:
        self.get_metadata(path)
        return SimpleNamespace(contents=BytesIO(self.files[path]))

    def get_metadata(self, path: str) -> None:
        if path not in self.files:
            raise NotFound(path)

    def list_directory_contents(self, path: str) -> Sequence[DirectoryEntry]:
        return [
            DirectoryEntry(path=file, is_directory=False, file_size=len(data), last_modified=0)
            for file, data in self.files.items()
            if file.startswith(f"{path}/")
        ]


class ReadOnlyTables:
    """Refuses every change of a table."""

    def __init__(self, tables: SmallTables) -> None:
        self._tables = tables

    def run(self, sql: str) -> Sequence[Row]:
        if not sql.startswith("SELECT"):
            raise statement_error("[SCHEMA_NOT_FOUND] no", sql=sql)
        return self._tables.run(sql)


def deployment(tables: SmallTables | ReadOnlyTables, files: MemoryVolume, folder: Path) -> Deployment:
    heads = "`dev`.`ops`.`deployment_heads`"
    client = cast("WorkspaceClient", SimpleNamespace(files=files))
    folder_of_volume = VolumeFiles(client, "/Volumes/dev/ops/deployment_state/test")
    store = DatabricksStateStore(tables, folder_of_volume, heads=heads, environment="test")
    return deployment_over(folder, store=store)


def restored_serial(deployment: Deployment, *, serial: int, state_id: str, is_version: bool = False) -> int:
    state = msgspec.structs.replace(deployment_state(serial=serial), state_id=state_id)
    return deployment.restore(state, lambda _note: None, force=False, is_version=is_version).state.serial


def test_the_kept_documents_tell_what_is_lost_with_the_head(tmp_path: Path) -> None:
    tables = SmallTables()
    here = deployment(tables, MemoryVolume(), tmp_path)
    first = here.repository.save(deployment_state(serial=0), None)
    saved = here.repository.save(first.state, here.repository.save(first.state, first))
    tables.run("DELETE FROM `deployment_heads`")
    assert here.repository.load() is None
    listed = [version.version_id for version in here.repository.versions()]
    assert listed[0] == saved.version_id
    assert len(listed) == 3
    with pytest.raises(StateMismatchError, match="this environment's is"):
        restored_serial(here, serial=99, state_id="another life")
    with pytest.raises(StateMismatchError, match="saved again since: it is at serial 2"):
        restored_serial(here, serial=2, state_id=saved.state.state_id)
    assert restored_serial(here, serial=1, state_id=saved.state.state_id, is_version=True) == 4


def test_a_first_document_that_could_not_be_saved_is_restored(tmp_path: Path) -> None:
    tables, files = SmallTables(), MemoryVolume()
    state = deployment_state(serial=0)
    with pytest.raises(UnsavedStateError):
        deployment(ReadOnlyTables(tables), files, tmp_path).repository.save(state, None)
    assert len(files.files) == 1
    here = deployment(tables, files, tmp_path)
    assert restored_serial(here, serial=1, state_id=state.state_id) == 2
