"""Documents in a volume whose head row is gone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from delta_engine.backends.error_conditions import statement_error
from delta_engine.backends.sql_runner import Row
from delta_engine.deployment.databricks.volume_files import VolumeFile
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.errors import ConflictError, StateMismatchError, UnsavedStateError
from delta_engine.deployment.stores.databricks import DatabricksStateStore
from tests.deployment_builders import NOON, deployment_over, deployment_state
from tests.servers.warehouse_sql import SmallTables

VOLUME = "/Volumes/dev/ops/deployment_state"


class MemoryVolume:
    """Keeps the files of a volume in memory."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def upload(self, path: str, data: bytes, *, overwrite: bool) -> None:
        if not overwrite and path in self.files:
            raise ConflictError(f"{path}: it is there")
        self.files[path] = data

    def download(self, path: str) -> bytes | None:
        return self.files.get(path)

    def exists(self, path: str) -> bool:
        return path in self.files

    def list_folder(self, path: str) -> Sequence[VolumeFile]:
        return [
            VolumeFile(path=file, is_folder=False, size=len(data), modified_at=NOON)
            for file, data in self.files.items()
            if file.startswith(f"{path}/")
        ]

    def delete(self, path: str) -> None:
        self.files.pop(path, None)

    def delete_folder(self, path: str) -> None:
        raise AssertionError(f"documents stay: {path}")


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
    store = DatabricksStateStore(tables, files, heads=heads, volume=VOLUME, environment="test")
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
