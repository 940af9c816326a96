"""What every command shares: where the configuration is, and what exit codes mean."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from delta_engine.errors import ConfigError


class ExitCode(IntEnum):
    """How a command ended, for scripts."""

    DONE = 0
    FAILED = 1
    PENDING = 2
    REFUSED = 3
    LOCKED = 4
    PARTIAL = 5
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The global options.

    Args:
        environment: as given, or None.
        conf_dir: the configuration folder.
    """

    environment: str | None
    conf_dir: Path

    def require_environment(self) -> str:
        """Return the environment.

        Raises:
            ConfigError: none was named.
        """
        if self.environment:
            return self.environment
        from delta_engine.config.settings import environments, no_configuration_way_out

        found = environments(self.conf_dir)
        way_out = (
            f"Name one of {', '.join(found)} with -e, or set DELTA_ENGINE_ENV."
            if found
            else no_configuration_way_out(self.conf_dir)
        )
        raise ConfigError("no environment was named", way_out=way_out)
