"""Opens a Databricks workspace, as databricks-sdk's unified authentication finds it; the SDK is imported late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

_ANSWER_SECONDS: Final = 60
_CONNECTIONS: Final = 64
"""As many as `apply.parallelism` may ask for: the SDK's own twenty would make the others wait."""


def open_workspace(profile: str | None, *, retry_seconds: int) -> WorkspaceClient:
    """Return a client of the workspace.

    Newer SDKs ask the host about itself first, which must not take the patience that is meant for its answers: an
    address at which there is nobody would keep people waiting.

    Args:
        profile: the login of this name in `~/.databrickscfg`; None for whatever the SDK finds.
        retry_seconds: for how long a call is made again that failed.

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
