"""What the deployment state says about the run that writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from delta_engine.deployment.document import EnvironmentRecord

_NAMES_A_SECRET = re.compile(
    r"secret|password|passwd|token|credential|api_?key|access_?key|private_?key", re.I
)

_BLANKED = "(not recorded)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Who deploys what, from where, to where.

    Args:
        environment: what the document is about.
        who: the user or service principal.
        host: the machine that the run is on.
        pid: its process.
        run_url: where to watch it; empty if there is no such place.
        lineage: the commit of the deployed configuration, `git:…`, or `unknown`.
        engine_version: of this engine.
        platform_version: of what it deploys to.
    """

    environment: EnvironmentRecord
    who: str
    host: str
    pid: int
    run_url: str
    lineage: str
    engine_version: str
    platform_version: str


def environment_record(name: str, host: str, variables: Mapping[str, str]) -> EnvironmentRecord:
    """Return what is recorded of an environment: no credentials, neither in variables nor in the host."""
    return EnvironmentRecord(
        name=name,
        host=re.sub(r"//[^/@]*@", "//", host),
        variables={
            key: _BLANKED if _NAMES_A_SECRET.search(key) else value for key, value in variables.items()
        },
    )
