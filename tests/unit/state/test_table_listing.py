"""When databricks-sdk's listing cannot be used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from delta_engine.state.unity_catalog.listed_details import open_table_listing


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leave the SDK nothing to find."""
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN", "DATABRICKS_RUNTIME_VERSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))


def test_there_is_none_without_credentials() -> None:
    assert open_table_listing() is None


@pytest.mark.parametrize(
    "error", [RuntimeError("[CONTEXT_UNAVAILABLE_FOR_REMOTE_CLIENT] no"), AttributeError("no")]
)
def test_there_is_none_where_the_client_cannot_be_made(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    import databricks.sdk

    def fail(**_arguments: object) -> None:
        raise error

    monkeypatch.setenv("DATABRICKS_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("DATABRICKS_TOKEN", "made-up")
    monkeypatch.setattr(databricks.sdk, "WorkspaceClient", fail)
    assert open_table_listing() is None


def test_there_is_none_without_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "databricks.sdk", None)
    assert open_table_listing() is None
