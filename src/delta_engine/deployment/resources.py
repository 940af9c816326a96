"""Resources: their keys, and how a table's record follows from what was applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import msgspec

from delta_engine.deployment.definitions import (
    as_schema,
    as_table,
    define,
    definition_checksum,
    schema_checksum,
)
from delta_engine.deployment.document import (
    DeploymentState,
    Resource,
    ResourceMetadata,
    ResourceType,
    Status,
)
from delta_engine.execute.action_runner import TableOutcome
from delta_engine.models import QualifiedName, Schema, Table
from delta_engine.state.states import CatalogState
from delta_engine.state.table_versions import TableVersion


def table_key(name: QualifiedName) -> str:
    """Return a table's key: `table.<catalog>.<schema>.<table>`, in lower case."""
    return f"{ResourceType.TABLE.value}.{name.key}"


def schema_key(catalog: str, schema: str) -> str:
    """Return a schema's key: `schema.<catalog>.<schema>`, in lower case."""
    return f"{ResourceType.SCHEMA.value}.{catalog}.{schema}".lower()


def applied_table(
    model: Table, *, at: datetime, by: str, version: TableVersion | None, earlier: Resource | None
) -> Resource:
    """Return the record of a table that is as its model says.

    Args:
        model: what was applied.
        at: when.
        by: by whom.
        version: the table's id and version after that, as far as they are known.
        earlier: its record so far.
    """
    definition = define(model)
    return Resource(
        type=ResourceType.TABLE,
        id=str(model.qualified_name),
        deployed_at=at,
        deployed_by=by,
        config_checksum=definition_checksum(definition),
        status=Status.HEALTHY,
        metadata=ResourceMetadata(
            definition=definition,
            delta_table_id=version.table_id if version else None,
            delta_version=version.version if version else None,
            created_at=earlier.metadata.created_at if earlier else None,
            schema_checksum=schema_checksum(definition.columns),
            unknown=earlier.metadata.unknown if earlier else None,
        ),
        dependencies=(schema_key(model.catalog_name, model.schema_name),),
        unknown=earlier.unknown if earlier else None,
    )


def renamed_resource(resource: Resource, name: QualifiedName) -> Resource:
    """Return a table's record under another name."""
    definition = resource.metadata.definition
    if definition is not None:
        definition = msgspec.structs.replace(
            definition, catalog=name.catalog, schema=name.schema, name=name.table
        )
    return msgspec.structs.replace(
        resource,
        id=str(name),
        config_checksum=definition_checksum(definition) if definition else resource.config_checksum,
        metadata=msgspec.structs.replace(resource.metadata, definition=definition),
        dependencies=(schema_key(name.catalog, name.schema),),
    )


def failed_table(outcome: TableOutcome, *, earlier: Resource | None) -> Resource:
    """Return the record of a table whose apply failed: the definition applied before it stays."""
    reason = outcome.failure.message.splitlines()[0] if outcome.failure else ""
    status = Status.DEGRADED if outcome.statements else Status.FAILED
    if earlier is not None:
        metadata = msgspec.structs.replace(earlier.metadata, sync_error=reason)
        return msgspec.structs.replace(earlier, status=status, metadata=metadata)
    return Resource(
        type=ResourceType.TABLE,
        id=str(outcome.table),
        deployed_at=None,
        deployed_by=None,
        config_checksum=None,
        status=status,
        metadata=ResourceMetadata(sync_error=reason),
        dependencies=(schema_key(outcome.table.catalog, outcome.table.schema),),
    )


def last_applied(state: DeploymentState) -> Mapping[str, Table]:
    """Return the tables as they were applied last: plain models by `QualifiedName.key`."""
    definitions = (resource.metadata.definition for resource in state.resources.values())
    models = (as_table(definition) for definition in definitions if definition is not None)
    return {model.qualified_name.key: model for model in models}


def applied_schema(catalog: str, schema: str, *, at: datetime, by: str) -> Resource:
    """Return the record of a schema that was created."""
    return Resource(
        type=ResourceType.SCHEMA,
        id=f"{catalog}.{schema}",
        deployed_at=at,
        deployed_by=by,
        config_checksum=None,
        status=Status.HEALTHY,
        metadata=ResourceMetadata(),
        dependencies=(),
    )


def last_applied_schemas(state: DeploymentState) -> Mapping[str, Schema]:
    """Return the declared schemas as they were applied last: plain models by `Schema.key`."""
    definitions = (resource.metadata.schema_definition for resource in state.resources.values())
    found = (as_schema(definition) for definition in definitions if definition is not None)
    return {schema.key: schema for schema in found}


def unmanaged_table(name: QualifiedName) -> Resource:
    """Return the record of a table that nobody declared."""
    return Resource(
        type=ResourceType.TABLE,
        id=str(name),
        deployed_at=None,
        deployed_by=None,
        config_checksum=None,
        status=Status.UNMANAGED,
        metadata=ResourceMetadata(sync_warning="it stands in a managed schema and is in no model"),
        dependencies=(schema_key(name.catalog, name.schema),),
    )


def last_applied_to(
    models: Sequence[Table], applied: Mapping[str, Table], observed: CatalogState
) -> Mapping[str, Table]:
    """Return what was applied last, where tables that are about to be renamed have their new names.

    Args:
        models: the declared tables.
        applied: what was applied last, by `QualifiedName.key`.
        observed: a snapshot that covers the models.
    """
    renamed = {}
    for model in models:
        former = observed.table(model.qualified_name).former_name
        if former is not None and former.key in applied:
            renamed[model.qualified_name.key] = replace(applied[former.key], table_name=model.table_name)
    return {**applied, **renamed}
