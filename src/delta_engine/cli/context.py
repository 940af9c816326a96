"""What every command shares: where the configuration is, and what exit codes mean."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from delta_engine.errors import ConfigError
from delta_engine.telemetry.context import learn


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
    """The options of all commands.

    Args:
        environment: as an option names it, or None.
        default_environment: as `DELTA_ENGINE_ENV` names it, or None.
        conf_dir: the configuration folder as an option names it, or None.
    """

    environment: str | None = None
    default_environment: str | None = None
    conf_dir: Path | None = None

    def place(self) -> tuple[Path, str]:
        """Return the configuration folder and the environment, and tell which project that is if it is not here.

        Raises:
            ConfigError: no environment was named.
        """
        from delta_engine.cli.terminal import print_note

        environment, conf_dir = self.require_environment(), self._find_conf_dir()
        if self.conf_dir is None and conf_dir.is_absolute():
            print_note(f"the project is {conf_dir.parent}")
        return conf_dir, environment

    def require_environment(self) -> str:
        """Return the environment; messages of this command name it from now on.

        Raises:
            ConfigError: none was named.
        """
        environment = self.environment or self.default_environment
        if environment:
            learn(environment=environment)
            return environment
        from delta_engine.config.settings import environments, no_configuration_way_out

        conf_dir = self._find_conf_dir()
        found = environments(conf_dir)
        way_out = (
            f"Name one of {', '.join(found)} with -e, or set DELTA_ENGINE_ENV."
            if found
            else no_configuration_way_out(conf_dir)
        )
        raise ConfigError("no environment was named", way_out=way_out)

    def _find_conf_dir(self) -> Path:
        from delta_engine.config.project_folder import find_conf_dir

        return find_conf_dir(Path.cwd()) if self.conf_dir is None else self.conf_dir
