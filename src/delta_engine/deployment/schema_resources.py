"""Resources of schemas: their keys, and how a schema's record follows from what was applied to it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from delta_engine.deployment.definitions import SchemaDefinition, as_schema, define_schema
from delta_engine.deployment.document import (
    DeploymentState,
    Resource,
    ResourceMetadata,
    ResourceType,
    Status,
)
from delta_engine.execute.outcomes import SchemaOutcome
from delta_engine.models import Schema


def schema_key(catalog: str, schema: str) -> str:
    """Return a schema's key: `schema.<catalog>.<schema>`, in lower case."""
    return f"{ResourceType.SCHEMA.value}.{catalog}.{schema}".lower()


def applied_schema(catalog: str, schema: str, *, at: datetime, by: str) -> Resource:
    """Return the record of a schema that is there."""
    return _record(catalog, schema, Status.HEALTHY, at=at, by=by)


def declared_schema(schema: Schema, *, at: datetime, by: str, earlier: Resource | None) -> Resource:
    """Return the record of a schema that is as its model says.

    Args:
        schema: the model.
        at: when that was found.
        by: who found it.
        earlier: its record so far; it stays if it says the same.
    """
    resource, definition = earlier, define_schema(schema)
    is_news = resource is None or resource.metadata.schema_definition != definition
    if resource is None or is_news or resource.status is not Status.HEALTHY:
        resource = applied_schema(schema.catalog_name, schema.schema_name, at=at, by=by)
    return msgspec.structs.replace(
        resource,
        metadata=ResourceMetadata(
            schema_definition=definition, unknown=earlier.metadata.unknown if earlier else None
        ),
        unknown=earlier.unknown if earlier else None,
    )


def failed_schema(
    outcome: SchemaOutcome, *, attempted: SchemaDefinition | None, earlier: Resource | None
) -> Resource:
    """Return the record of a schema of which a statement failed: what was applied before it stays.

    Args:
        outcome: what became of it.
        attempted: what was to be applied; None for a schema that is not declared.
        earlier: its record so far.
    """
    resource = earlier or _record(outcome.name.catalog, outcome.name.schema, Status.FAILED)
    reason = outcome.failure.first_line if outcome.failure else ""
    return _unfinished(
        resource,
        Status.DEGRADED if outcome.statements else Status.FAILED,
        reason,
        attempted,
    )


def interrupted_schema(attempted: SchemaDefinition, reason: str, *, earlier: Resource | None) -> Resource:
    """Return the record of a schema that a run was changing when it ended without a word."""
    resource = earlier or _record(attempted.catalog, attempted.schema, Status.UNKNOWN)
    return _unfinished(resource, Status.UNKNOWN, reason, attempted)


def last_applied_schemas(state: DeploymentState) -> Mapping[str, Schema]:
    """Return the declared schemas as they were applied last: plain models by `Schema.key`."""
    definitions = (resource.metadata.schema_definition for resource in state.resources.values())
    found = (as_schema(definition) for definition in definitions if definition is not None)
    return {schema.key: schema for schema in found}


def _unfinished(
    resource: Resource, status: Status, reason: str, attempted: SchemaDefinition | None
) -> Resource:
    """Return a schema's record with what was attempted beside what was applied."""
    known = resource.metadata.attempted_schemas
    new = () if attempted is None or attempted in known else (attempted,)
    metadata = msgspec.structs.replace(resource.metadata, sync_error=reason, attempted_schemas=(*known, *new))
    return msgspec.structs.replace(resource, status=status, metadata=metadata)


def _record(
    catalog: str, schema: str, status: Status, *, at: datetime | None = None, by: str | None = None
) -> Resource:
    return Resource(
        type=ResourceType.SCHEMA,
        id=f"{catalog}.{schema}",
        deployed_at=at,
        deployed_by=by,
        config_checksum=None,
        status=status,
        metadata=ResourceMetadata(),
        dependencies=(),
    )
