"""Answers of the Files API that say nothing, told apart from refusals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn, cast

import pytest
from databricks.sdk.errors import PermissionDenied, TemporarilyUnavailable
from databricks.sdk.errors.base import DatabricksError

from delta_engine.deployment.errors import StoreError, UnansweredError, UncertainWriteError
from delta_engine.deployment.stores.volume_files import VolumeFiles

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient


def files_that_fail(error: DatabricksError) -> VolumeFiles:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    files = SimpleNamespace(download=fail, upload=fail)
    return VolumeFiles(cast("WorkspaceClient", SimpleNamespace(files=files)), "/Volumes/a/b/c")


def test_a_read_without_an_answer_is_no_refusal() -> None:
    with pytest.raises(UnansweredError, match="no usable answer"):
        files_that_fail(TemporarilyUnavailable("later")).read("d")


def test_a_write_without_an_answer_may_be_done() -> None:
    with pytest.raises(UncertainWriteError):
        files_that_fail(TemporarilyUnavailable("later")).upload("d", b"", overwrite=False)


def test_a_refused_read_is_a_refusal() -> None:
    with pytest.raises(StoreError) as refused:
        files_that_fail(PermissionDenied("no")).read("d")
    assert not isinstance(refused.value, UnansweredError)
