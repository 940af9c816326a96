"""Opening a volume's files where databricks-sdk is missing, finds no login, or cannot make its client."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from delta_engine.deployment.errors import StoreError
from delta_engine.deployment.stores.volume_files import open_volume_files
from delta_engine.errors import MissingDependencyError


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leave the SDK nothing to find."""
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN", "DATABRICKS_RUNTIME_VERSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))


def test_a_missing_login_is_told() -> None:
    with pytest.raises(StoreError, match="databricks auth login"):
        open_volume_files("/Volumes/a/b/c")


def test_a_missing_sdk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "databricks.sdk", None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        open_volume_files("/Volumes/a/b/c")


@pytest.mark.parametrize(
    "error", [RuntimeError("[CONTEXT_UNAVAILABLE_FOR_REMOTE_CLIENT] no"), AttributeError("no")]
)
def test_a_client_that_cannot_be_made_is_told_with_the_sdks_version(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    import databricks.sdk

    def fail(**_arguments: object) -> None:
        raise error

    monkeypatch.setenv("DATABRICKS_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("DATABRICKS_TOKEN", "x")
    monkeypatch.setattr(databricks.sdk, "WorkspaceClient", fail)
    monkeypatch.setattr("databricks.sdk.version.__version__", "0.67.0")
    with pytest.raises(StoreError) as raised:
        open_volume_files("/Volumes/a/b/c")
    message = str(raised.value)
    assert f"databricks-sdk 0.67.0 cannot open the workspace: {type(error).__name__}: {error}" in message
    assert "databricks-sdk>=0.117" in message
