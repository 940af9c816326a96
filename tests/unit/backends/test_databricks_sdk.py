"""What opening a client leaves on standard error. The workspace is a double on loopback, the SDK is real."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from databricks.sdk.config import Config

from delta_engine.backends.databricks_sdk import open_workspace
from tests.fakes.workspace import TOKEN, Answer, FakeWorkspace, serving

METADATA = "Failed to automatically resolve config from host metadata"


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeWorkspace]:
    """Serve a workspace that publishes no metadata of its host, to which the environment has a login."""
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DATABRICKS_TOKEN", TOKEN)
    with serving(FakeWorkspace(run=lambda _sql: Answer())) as served:
        monkeypatch.setenv("DATABRICKS_HOST", served.host)
        yield served


@pytest.mark.usefixtures("workspace")
def test_the_sdk_itself_warns_for_each_client(caplog: pytest.LogCaptureFixture) -> None:
    Config()
    Config()
    assert [message.startswith(METADATA) for message in caplog.messages] == [True, True]


@pytest.mark.usefixtures("workspace")
def test_no_client_with_a_login_warns_that_the_host_has_no_metadata(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        open_workspace(None, retry_seconds=1)
    assert caplog.messages == []


@pytest.mark.usefixtures("workspace")
def test_a_failed_login_shows_the_warning_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("DATABRICKS_TOKEN")
    for _ in range(2):
        with pytest.raises(ValueError, match="cannot configure default credentials"):
            open_workspace(None, retry_seconds=1)
    (message,) = caplog.messages
    assert message.startswith(METADATA)


@pytest.mark.usefixtures("workspace")
def test_other_warnings_of_the_sdk_are_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    signed_in: Callable[[Config], None] = Config.init_auth

    def init_auth(config: Config) -> None:
        logging.getLogger("databricks.sdk").warning("the token expires today")
        signed_in(config)

    monkeypatch.setattr(Config, "init_auth", init_auth)
    open_workspace(None, retry_seconds=1)
    open_workspace(None, retry_seconds=1)
    assert caplog.messages == ["the token expires today"] * 2
