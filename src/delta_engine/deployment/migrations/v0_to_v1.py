"""From format 0, which had no identity, no environment and no dependencies, to format 1."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

import msgspec


class _ResourceV0(msgspec.Struct):
    type: str
    id: str
    deployed_at: str | None = None
    deployed_by: str | None = None
    status: str = "unknown"
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class _DocumentV0(msgspec.Struct):
    serial: int
    updated_at: str
    resources: dict[str, _ResourceV0]
    engine_version: str = "unknown"
    created_at: str | None = None


def migrate_v0_to_v1(document: dict[str, Any], environment: str) -> dict[str, Any]:
    """Add identity, lineage, environment and dependencies; everything that was there stays.

    Raises:
        msgspec.ValidationError: it is not a document of format 0.
    """
    old = msgspec.convert(document, _DocumentV0)
    digest = hashlib.sha256(msgspec.json.encode(document, order="sorted")).hexdigest()
    return {
        "$schema": "urn:delta-engine:deployment-state:v1",
        "version": 1,
        "serial": old.serial,
        "state_id": str(uuid.uuid5(uuid.NAMESPACE_OID, digest)),
        "write_id": digest[:32],
        "recent_write_ids": [],
        "lineage": "unknown",
        "engine_version": old.engine_version,
        "platform_version": "unknown",
        "created_at": old.created_at or old.updated_at,
        "updated_at": old.updated_at,
        "environment": {"name": environment, "host": "", "variables": {}},
        "resources": {key: _resource(resource) for key, resource in old.resources.items()},
        "metadata": {
            "last_apply_duration": None,
            "last_apply_actions": {"added": 0, "changed": 0, "destroyed": 0},
            "warnings": [],
            "checkpoints": [],
        },
    }


def _resource(old: _ResourceV0) -> dict[str, Any]:
    definition = old.metadata.get("definition")
    return {
        "type": old.type,
        "id": old.id,
        "deployed_at": old.deployed_at,
        "deployed_by": old.deployed_by,
        "config_checksum": definition and _checksum(definition),
        "status": old.status,
        "metadata": old.metadata,
        "dependencies": [],
    }


def _checksum(definition: dict[str, Any]) -> str:
    """Return the checksum as format 1 defines it: SHA-256 of the definition's JSON, keys sorted."""
    return f"sha256:{hashlib.sha256(msgspec.json.encode(definition, order='sorted')).hexdigest()}"
