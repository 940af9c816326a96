"""Answers of the Files API that say nothing, told apart from refusals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn, cast

import pytest
from databricks.sdk.errors import PermissionDenied, TemporarilyUnavailable
from databricks.sdk.errors.base import DatabricksError

from delta_engine.deployment.databricks.volume_files import SdkVolumeFiles
from delta_engine.deployment.errors import StoreError, UnansweredError, UncertainWriteError

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient


def files_that_fail(error: DatabricksError) -> SdkVolumeFiles:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    files = SimpleNamespace(download=fail, upload=fail)
    return SdkVolumeFiles(cast("WorkspaceClient", SimpleNamespace(files=files)))


def test_a_read_without_an_answer_is_no_refusal() -> None:
    with pytest.raises(UnansweredError, match="no usable answer"):
        files_that_fail(TemporarilyUnavailable("later")).download("/Volumes/a/b/c/d")


def test_a_write_without_an_answer_may_be_done() -> None:
    with pytest.raises(UncertainWriteError):
        files_that_fail(TemporarilyUnavailable("later")).upload("/Volumes/a/b/c/d", b"", overwrite=False)


def test_a_refused_read_is_a_refusal() -> None:
    with pytest.raises(StoreError) as refused:
        files_that_fail(PermissionDenied("no")).download("/Volumes/a/b/c/d")
    assert not isinstance(refused.value, UnansweredError)
