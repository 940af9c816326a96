"""The facts of a run that the deployment state records."""

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
        who: the user or service principal.
        host: the machine that the run is on.
        run_url: the page of the run; empty if there is none.
        lineage: the commit of the deployed configuration, `git:…`, or `unknown`.
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
    """Return the record of an environment, without credentials in variables or host."""
    return EnvironmentRecord(
        name=name,
        host=re.sub(r"//[^/@]*@", "//", host),
        variables={
            key: _BLANKED if _NAMES_A_SECRET.search(key) else value for key, value in variables.items()
        },
    )
