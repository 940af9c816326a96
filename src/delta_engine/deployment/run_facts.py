"""The facts of a run, and what it writes into the document besides resources: its origin, and what its apply did."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from delta_engine.deployment.document import (
    SCHEMA_URI,
    VERSION,
    ApplyActions,
    ApplyRecord,
    Checkpoint,
    DeploymentState,
    EnvironmentRecord,
)
from delta_engine.telemetry.context import new_id

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
        run_url: where to watch it; empty if unknown.
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
    """Return the record of an environment, without credentials in the host or the variables."""
    return EnvironmentRecord(
        name=name,
        host=re.sub(r"//[^/@]*@", "//", host),
        variables={
            key: _BLANKED if _NAMES_A_SECRET.search(key) else value for key, value in variables.items()
        },
    )


def first_document(facts: RunFacts, *, now: datetime) -> DeploymentState:
    """Return the document of an environment without a document."""
    return DeploymentState(
        schema_uri=SCHEMA_URI,
        version=VERSION,
        serial=0,
        state_id=new_id(),
        write_id=new_id(),
        recent_write_ids=(),
        lineage="unknown",
        engine_version="",
        platform_version="",
        created_at=now,
        updated_at=now,
        environment=facts.environment,
        resources={},
        metadata=ApplyRecord(
            last_apply_duration=None,
            last_apply_actions=ApplyActions(added=0, changed=0, destroyed=0),
            warnings=(),
            checkpoints=(),
        ),
    )


def described(state: DeploymentState, facts: RunFacts, *, fence: int) -> DeploymentState:
    """Return a document with the facts of the run that deploys it and is about to save it."""
    return signed(state, facts, fence=fence).with_values(
        lineage=facts.lineage,
        platform_version=facts.platform_version,
        environment=facts.environment,
    )


def signed(state: DeploymentState, facts: RunFacts, *, fence: int) -> DeploymentState:
    """Return a document with the principal and the engine that are about to save it, and the count of their lock."""
    highest = max(fence, state.fence or 0)  # a lock that was lost or moved counts from 1
    return state.with_values(engine_version=facts.engine_version, updated_by=facts.who, fence=highest)


def apply_record(
    actions: ApplyActions, checkpoints: Sequence[Checkpoint], warnings: Sequence[str], *, seconds: float
) -> ApplyRecord:
    """Return the record of an apply: its counts, how far each resource came, its warnings and its duration."""
    return ApplyRecord(
        last_apply_duration=round(seconds, 3),
        last_apply_actions=actions,
        warnings=tuple(warnings),
        checkpoints=tuple(sorted(checkpoints, key=lambda check: check.resource)),
    )
