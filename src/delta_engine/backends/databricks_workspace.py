"""Opens a Databricks workspace with databricks-sdk's unified authentication; imports the SDK late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

_ANSWER_SECONDS: Final = 60
_CONNECTIONS: Final = 64
"""The largest `apply.parallelism`; the SDK's default of 20 would make threads wait."""


def open_workspace(profile: str | None, *, retry_seconds: int) -> WorkspaceClient:
    """Return a client of a profile's workspace; ImportError without databricks-sdk, ValueError without a login.

    Newer SDKs first request the host's metadata, with a short timeout of their own, so an unreachable host fails at
    once.
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
