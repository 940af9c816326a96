"""Migrations of raw documents: one step from each format to the next.

A step works on its own frozen copy of the old shape, never on the live classes. It is deterministic: reading a
document twice gives the same identity.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

RawDocument: TypeAlias = dict[str, Any]


def migrate(document: RawDocument, version: int, *, to: int, environment: str) -> RawDocument:
    """Return a document in a newer format; raise `msgspec.ValidationError` if it violates its own format."""
    for step in range(version, to):
        document = _STEPS[step](document, environment) | {"version": step + 1}
    return document


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


def _migrate_v0_to_v1(document: RawDocument, environment: str) -> RawDocument:
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
        "resources": {key: _resource_v1(resource) for key, resource in old.resources.items()},
        "metadata": {
            "last_apply_duration": None,
            "last_apply_actions": {"added": 0, "changed": 0, "destroyed": 0},
            "warnings": [],
            "checkpoints": [],
        },
    }


def _resource_v1(old: _ResourceV0) -> RawDocument:
    definition = old.metadata.get("definition")
    return {
        "type": old.type,
        "id": old.id,
        "deployed_at": old.deployed_at,
        "deployed_by": old.deployed_by,
        "config_checksum": definition and _checksum_v1(definition),
        "status": old.status,
        "metadata": old.metadata,
        "dependencies": [],
    }


def _checksum_v1(definition: RawDocument) -> str:
    """Return the checksum as format 1 defines it: SHA-256 of the definition's JSON with sorted keys."""
    return f"sha256:{hashlib.sha256(msgspec.json.encode(definition, order='sorted')).hexdigest()}"


_STEPS: Mapping[int, Callable[[RawDocument, str], RawDocument]] = {0: _migrate_v0_to_v1}
"""The step that leaves each version; it takes the document and the environment's name."""
