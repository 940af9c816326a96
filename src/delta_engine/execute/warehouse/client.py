"""Opens the workspace, as databricks-sdk's unified authentication finds it; the SDK is imported late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from delta_engine.errors import ConfigError, MissingDependencyError

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

SINGLE_ATTEMPT_SECONDS: Final = 1
"""The SDK waits for at least a second before it would make a call again, and then finds that its time is over."""

_ANSWER_SECONDS: Final = 60
_CONNECTIONS: Final = 64
"""As many as `apply.parallelism` may ask for: the SDK's own twenty would make the others wait."""


def open_workspace(profile: str | None) -> WorkspaceClient:
    """Return a client that makes no call twice by itself.

    Args:
        profile: the login of this name in `~/.databrickscfg`; None for whatever the SDK finds.

    Raises:
        MissingDependencyError: databricks-sdk is not installed.
        ConfigError: there is no workspace, or no login.
    """
    try:
        from databricks.sdk import WorkspaceClient
        from databricks.sdk.config import Config
    except ImportError:
        raise MissingDependencyError(
            "the databricks-warehouse backend needs databricks-sdk: pip install 'delta-engine[databricks]'"
        ) from None
    try:
        return WorkspaceClient(
            config=Config(
                profile=profile,
                retry_timeout_seconds=SINGLE_ATTEMPT_SECONDS,
                http_timeout_seconds=_ANSWER_SECONDS,
                max_connection_pools=_CONNECTIONS,
            )
        )
    except ValueError as error:
        raise ConfigError(
            f"no workspace to send SQL to: {str(error).rstrip('.')}",
            way_out="Log in with `databricks auth login`, set DATABRICKS_HOST and what your login needs, or name a "
            "profile in backend.profile.",
        ) from error
