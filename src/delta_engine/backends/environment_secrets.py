"""Secrets in a backend's settings: `${env:NAME}` takes the value of an environment variable when a session starts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from delta_engine.errors import ConfigError

OF_ENVIRONMENT: Final = re.compile(r"\$\{env:(\w+)\}")


def is_secret(text: str) -> bool:
    """Whether a text refers to an environment variable."""
    return OF_ENVIRONMENT.search(text) is not None


def from_environment(text: str, environ: Mapping[str, str]) -> str:
    """Return a text with `${env:NAME}` replaced by environment variables; ConfigError if one is not set."""

    def value(reference: re.Match[str]) -> str:
        name = reference[1]
        if not environ.get(name):
            raise ConfigError(
                f"backend.spark takes ${{env:{name}}}, and the environment variable {name} is not set",
                way_out="Set it for this command, from where your secrets are kept.",
            )
        return environ[name]

    return OF_ENVIRONMENT.sub(value, text)
