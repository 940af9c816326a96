"""Resources of tables: their keys, and how a table's record follows from what was applied to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from delta_engine.deployment.definitions import (
    TableDefinition,
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
from delta_engine.deployment.schema_resources import schema_key
from delta_engine.execute.outcomes import TableOutcome
from delta_engine.models import QualifiedName, SchemaName, Table
from delta_engine.state.states import TableState
from delta_engine.state.table_queries import TableVersion


def table_key(name: QualifiedName) -> str:
    """Return a table's key: `table.<catalog>.<schema>.<table>`, in lower case."""
    return f"{ResourceType.TABLE.value}.{name.key}"


def resource_key(name: QualifiedName | SchemaName) -> str:
    """Return the key of a table or schema."""
    return schema_key(name.catalog, name.schema) if isinstance(name, SchemaName) else table_key(name)


def applied_table(
    model: Table,
    *,
    at: datetime,
    by: str,
    version: TableVersion | None,
    earlier: Resource | None,
    with_others: TableDefinition | None = None,
    settles: bool = True,
) -> Resource:
    """Return the record of a table that is as its model says.

    Args:
        model: what was applied.
        at: when.
        by: by whom.
        version: the table's id and version after that, as far as they are known.
        earlier: its record so far.
        with_others: the same with what is beside the model, and somebody else's; None if nothing is.
        settles: whether nothing is left of what unfinished runs attempted.
    """
    definition = define(model)
    attempted = earlier.metadata.attempted if earlier and not settles else ()
    return Resource(
        type=ResourceType.TABLE,
        id=str(model.qualified_name),
        deployed_at=at,
        deployed_by=by,
        config_checksum=definition_checksum(definition),
        status=Status.UNKNOWN if attempted else Status.HEALTHY,
        metadata=ResourceMetadata(
            definition=definition,
            delta_table_id=version.table_id if version else None,
            delta_version=version.version if version else None,
            created_at=earlier.metadata.created_at if earlier else None,
            schema_checksum=schema_checksum(definition.columns),
            sync_error=earlier.metadata.sync_error if earlier and attempted else None,
            with_others=with_others,
            attempted=attempted,
            unknown=earlier.metadata.unknown if earlier else None,
        ),
        dependencies=(schema_key(model.catalog_name, model.schema_name),),
        unknown=earlier.unknown if earlier else None,
    )


def noted(resource: Resource, observed: TableState) -> Resource:
    """Return a table's record with what the catalog alone knows: when it was made, and the order of its columns.

    What is added later stands last, wherever the model has it.
    """
    definition = resource.metadata.definition
    if definition is None or not observed.exists:
        return resource
    order = tuple(column.name for column in observed.columns)
    is_as_defined = [name.lower() for name in order] == [one.name.lower() for one in definition.columns]
    metadata = msgspec.structs.replace(
        resource.metadata,
        created_at=observed.audit.created_at,
        column_order=() if is_as_defined else order,
    )
    return msgspec.structs.replace(resource, metadata=metadata)


def with_version(resource: Resource, version: TableVersion) -> Resource:
    """Return a table's record with Delta's id and version of it."""
    metadata = msgspec.structs.replace(
        resource.metadata, delta_table_id=version.table_id, delta_version=version.version
    )
    return msgspec.structs.replace(resource, metadata=metadata)


def recorded_version(metadata: ResourceMetadata) -> TableVersion | None:
    """Return the version that is on record."""
    if metadata.delta_version is None:
        return None
    return TableVersion(table_id=metadata.delta_table_id, version=metadata.delta_version)


def failed_table(
    outcome: TableOutcome, *, attempted: Sequence[TableDefinition] = (), earlier: Resource | None
) -> Resource:
    """Return the record of a table whose apply failed: the definition applied before it stays.

    Args:
        outcome: what became of the table.
        attempted: what the run was about to apply.
        earlier: its record so far.
    """
    failure = outcome.failure
    return unfinished_table(
        outcome.name,
        Status.DEGRADED if outcome.statements else Status.FAILED,
        failure.first_line if failure else "",
        # a table that only waited for one that failed was not touched
        attempted=attempted if outcome.statements or (failure and failure.sql) else (),
        earlier=earlier,
    )


def unfinished_table(
    name: QualifiedName,
    status: Status,
    reason: str,
    *,
    attempted: Sequence[TableDefinition],
    earlier: Resource | None,
) -> Resource:
    """Return the record of a table that a run did not bring to its end: what it attempted beside what was applied.

    Args:
        name: the table.
        status: what is known of it.
        reason: why.
        attempted: what the run was about to apply.
        earlier: its record so far.
    """
    resource = earlier or _unapplied(name, status)
    known = resource.metadata.attempted
    metadata = msgspec.structs.replace(
        resource.metadata,
        sync_error=reason,
        attempted=(*known, *(one for one in attempted if one not in known)),
    )
    return msgspec.structs.replace(resource, status=status, metadata=metadata)


def last_applied(state: DeploymentState) -> Mapping[str, Table]:
    """Return the tables as they were applied last: plain models by `QualifiedName.key`."""
    definitions = (resource.metadata.definition for resource in state.resources.values())
    models = (as_table(definition) for definition in definitions if definition is not None)
    return {model.qualified_name.key: model for model in models}


def unmanaged_table(name: QualifiedName, earlier: Resource | None = None) -> Resource:
    """Return the record of a table that nobody declared.

    Args:
        name: the table.
        earlier: its record so far, if a run attempted to apply something to it.
    """
    return msgspec.structs.replace(
        _unapplied(name, Status.UNMANAGED),
        metadata=ResourceMetadata(
            sync_warning="it stands in a managed schema and is in no model",
            attempted=earlier.metadata.attempted if earlier else (),
        ),
    )


def _unapplied(name: QualifiedName, status: Status) -> Resource:
    return Resource(
        type=ResourceType.TABLE,
        id=str(name),
        deployed_at=None,
        deployed_by=None,
        config_checksum=None,
        status=status,
        metadata=ResourceMetadata(),
        dependencies=(schema_key(name.catalog, name.schema),),
    )
