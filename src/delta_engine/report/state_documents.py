"""The deployment state's listings as versioned JSON documents, for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from delta_engine.deployment.document import DeploymentState, Resource
from delta_engine.deployment.ports import StateVersion
from delta_engine.drift.state_changes import ResourceChange
from delta_engine.report.plan_document import change_document

VERSION = 1


def resources_document(state: DeploymentState, resources: Mapping[str, Resource]) -> str:
    """Return a listing of resources as one JSON document."""
    return _document(
        "delta-engine/state-resources",
        environment=state.environment.name,
        serial=state.serial,
        resources={
            key: {
                "type": resource.type.value,
                "id": resource.id,
                "status": resource.status.value,
                "deployed_at": resource.deployed_at and resource.deployed_at.isoformat(),
                "deployed_by": resource.deployed_by,
            }
            for key, resource in resources.items()
        },
    )


def versions_document(versions: Sequence[StateVersion]) -> str:
    """Return the kept versions as one JSON document, newest first; sizes in bytes."""
    return _document(
        "delta-engine/state-versions",
        versions=[
            {"version_id": one.version_id, "saved_at": one.saved_at.isoformat(), "size": one.size}
            for one in versions
        ],
    )


def diff_document(earlier: DeploymentState, later: DeploymentState, changes: Sequence[ResourceChange]) -> str:
    """Return what changed between two deployment states as one JSON document."""
    return _document(
        "delta-engine/state-diff",
        earlier=earlier.serial,
        later=later.serial,
        resources=[
            {
                "key": change.key,
                "sign": change.sign.value,
                "changes": [change_document(part) for part in change.changes],
            }
            for change in changes
        ],
    )


def _document(name: str, **content: object) -> str:
    return json.dumps({"format": name, "version": VERSION, **content}, indent=2, ensure_ascii=False)
