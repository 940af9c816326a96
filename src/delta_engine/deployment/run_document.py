"""What a run writes into the document besides resources: who ran, from which commit, and what it applied. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from delta_engine.deployment.document import (
    SCHEMA_URI,
    VERSION,
    ApplyActions,
    ApplyRecord,
    Checkpoint,
    DeploymentState,
)
from delta_engine.deployment.run_facts import RunFacts
from delta_engine.deployment.stamps import new_id

_NOTHING_APPLIED = ApplyRecord(
    last_apply_duration=None,
    last_apply_actions=ApplyActions(added=0, changed=0, destroyed=0),
    warnings=(),
    checkpoints=(),
)


def first_document(facts: RunFacts, *, now: datetime) -> DeploymentState:
    """Return the first document of an environment."""
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
        metadata=_NOTHING_APPLIED,
    )


def described(state: DeploymentState, facts: RunFacts) -> DeploymentState:
    """Return a document with the facts of the run that is about to save it."""
    return msgspec.structs.replace(
        state,
        lineage=facts.lineage,
        engine_version=facts.engine_version,
        platform_version=facts.platform_version,
        environment=facts.environment,
    )


def apply_record(
    actions: ApplyActions,
    checkpoints: Sequence[Checkpoint],
    warnings: Sequence[str],
    *,
    seconds: float,
) -> ApplyRecord:
    """Return what an apply did.

    Args:
        checkpoints: the progress of each schema and table.
        seconds: how long it took.
    """
    return ApplyRecord(
        last_apply_duration=round(seconds, 3),
        last_apply_actions=actions,
        warnings=tuple(warnings),
        checkpoints=tuple(sorted(checkpoints, key=lambda check: check.resource)),
    )
