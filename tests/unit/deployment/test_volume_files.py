"""The files of a volume: opening them, and answers that say nothing, told apart from refusals."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn, cast

import pytest
from databricks.sdk.errors import AlreadyExists, PermissionDenied, TemporarilyUnavailable
from databricks.sdk.errors.base import DatabricksError

from delta_engine.deployment.errors import ConflictError, StoreError, UnansweredError, UncertainWriteError
from delta_engine.deployment.stored import StoredFile
from delta_engine.deployment.stores.volume_files import VolumeFiles, open_volume_files
from delta_engine.errors import MissingDependencyError

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

ROOT = "/Volumes/a/b/c"

pytestmark = pytest.mark.usefixtures("no_credentials")


def test_a_missing_login_is_told() -> None:
    with pytest.raises(StoreError, match="databricks auth login"):
        open_volume_files(ROOT)


def test_a_missing_sdk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "databricks.sdk", None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        open_volume_files(ROOT)


@pytest.mark.parametrize(
    "error", [RuntimeError("[CONTEXT_UNAVAILABLE_FOR_REMOTE_CLIENT] no"), AttributeError("no")]
)
def test_a_client_that_cannot_be_created_is_told_with_the_sdks_version(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_arguments: object) -> None:
        raise error

    monkeypatch.setenv("DATABRICKS_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("DATABRICKS_TOKEN", "x")
    monkeypatch.setattr("databricks.sdk.WorkspaceClient", fail)
    monkeypatch.setattr("databricks.sdk.version.__version__", "0.67.0")
    with pytest.raises(StoreError) as raised:
        open_volume_files(ROOT)
    message = str(raised.value)
    assert f"databricks-sdk 0.67.0 cannot open the workspace: {type(error).__name__}: {error}" in message
    assert "databricks-sdk>=0.117" in message


@pytest.mark.parametrize(
    ("error", "of_a_read", "of_a_write"),
    [
        (TemporarilyUnavailable("later"), UnansweredError, UncertainWriteError),
        (DatabricksError("a gateway's 502"), StoreError, UncertainWriteError),
        (PermissionDenied("no"), StoreError, StoreError),
        (AlreadyExists("no"), ConflictError, ConflictError),
    ],
)
def test_an_answer_that_says_nothing_is_no_refusal(
    error: DatabricksError, of_a_read: type[StoreError], of_a_write: type[StoreError]
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    api = SimpleNamespace(
        download=fail,
        upload=fail,
        delete=fail,
        delete_directory=fail,
        list_directory_contents=lambda _path: (),
    )
    files = VolumeFiles(cast("WorkspaceClient", SimpleNamespace(files=api)), ROOT)
    with pytest.raises(StoreError) as read:
        files.read("d")
    assert read.type is of_a_read
    for write in (
        partial(files.upload, "d", b"", overwrite=False),
        partial(files.delete, "d"),
        partial(files.delete_folder, "d"),
    ):
        with pytest.raises(StoreError) as written:
            write()
        assert written.type is of_a_write


def test_files_are_listed_with_their_times_and_sizes() -> None:
    entry = SimpleNamespace(
        path=f"{ROOT}/d/x", is_directory=False, file_size=3, last_modified=1_767_225_600_000
    )
    api = SimpleNamespace(list_directory_contents=lambda _path: (entry,))
    files = VolumeFiles(cast("WorkspaceClient", SimpleNamespace(files=api)), ROOT)
    assert files.list("d") == [
        StoredFile(name="d/x", size=3, modified_at=datetime(2026, 1, 1, tzinfo=timezone.utc))
    ]
