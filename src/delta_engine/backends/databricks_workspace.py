"""Opens a Databricks workspace with databricks-sdk's unified authentication; imports the SDK late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

_ANSWER_SECONDS: Final = 60
_CONNECTIONS: Final = 64
"""The largest `apply.parallelism`; the SDK's default of 20 would make threads wait."""


def open_workspace(profile: str | None, *, retry_seconds: int) -> WorkspaceClient:
    """Return a client of the workspace.

    Newer SDKs first ask the host for its metadata. That request has a short timeout of its own, so that an
    unreachable host fails at once.

    Args:
        profile: a login in `~/.databrickscfg`; None for the SDK's default.
        retry_seconds: how long the SDK retries a failed call.

    Raises:
        ImportError: databricks-sdk is not installed.
        ValueError: there is no workspace, or no login.
    """
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.config import Config

    config = Config(
        profile=profile,
        retry_timeout_seconds=1,
        http_timeout_seconds=_ANSWER_SECONDS,
        max_connection_pools=_CONNECTIONS,
    )
    config.retry_timeout_seconds = retry_seconds
    return WorkspaceClient(config=config)
