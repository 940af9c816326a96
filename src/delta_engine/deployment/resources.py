"""Records of tables and schemas: their keys, what a run writes into them, and edits, such as new names of tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from delta_engine.deployment.definitions import (
    Baseline,
    SchemaDefinition,
    TableDefinition,
    as_table,
    define,
    define_baseline,
    define_schema,
    definition_checksum,
    schema_checksum,
    with_baseline,
)
from delta_engine.deployment.document import (
    DeploymentState,
    Resource,
    ResourceType,
    SchemaMetadata,
    SchemaResource,
    Status,
    TableMetadata,
    TableResource,
)
from delta_engine.deployment.errors import StateMismatchError
from delta_engine.models import QualifiedName, Schema, SchemaName, Table
from delta_engine.state.catalog_reader import former_name
from delta_engine.state.states import CatalogState, TableState
from delta_engine.state.table_queries import TableVersion
from delta_engine.telemetry.context import command

Definition: TypeAlias = TableDefinition | SchemaDefinition

HALF_DONE: Final = (Status.DEGRADED, Status.UNKNOWN)
"""Statuses of resources that a run of the engine left unfinished: the run's changes are not drift."""


def resource_key(name: QualifiedName | SchemaName) -> str:
    """Return a key in lower case: `table.<catalog>.<schema>.<table>` or `schema.<catalog>.<schema>`."""
    return f"{_type_of(name).value}.{name.key}"


def resource_name(resource: Resource) -> QualifiedName | SchemaName:
    """Return the name of a recorded table or schema."""
    parts = resource.id.split(".")
    return QualifiedName(*parts) if resource.type is ResourceType.TABLE else SchemaName(*parts)


def recorded_table(resources: Mapping[str, Resource], name: QualifiedName) -> TableResource | None:
    """Return the record of a table, if there is one."""
    found = resources.get(resource_key(name))
    return found if isinstance(found, TableResource) else None


def recorded_schema(resources: Mapping[str, Resource], name: SchemaName) -> SchemaResource | None:
    """Return the record of a schema, if there is one."""
    found = resources.get(resource_key(name))
    return found if isinstance(found, SchemaResource) else None


def applied_table(
    model: Table,
    *,
    at: datetime,
    by: str,
    version: TableVersion | None,
    earlier: TableResource | None,
    baseline: Table | None = None,
    full_ownership: tuple[str, ...] | None = None,
    settles: bool = True,
) -> TableResource:
    """Return the record of a table that matches its model.

    Args:
        baseline: the table with its unmanaged parts; None if there are none.
        full_ownership: as the policy has it; None if unknown.
        settles: whether the apply settled the attempts of unfinished runs.
    """
    definition = define(model)
    known = earlier.metadata if earlier else TableMetadata()
    attempted = () if settles else known.attempted
    return TableResource(
        id=str(model.qualified_name),
        deployed_at=at,
        deployed_by=by,
        config_checksum=definition_checksum(definition),
        status=Status.UNKNOWN if attempted else Status.HEALTHY,
        metadata=TableMetadata(
            declared=definition,
            full_ownership=full_ownership,
            baseline=define_baseline(definition, baseline) if baseline else None,
            delta_table_id=version.table_id if version else None,
            delta_version=version.version if version else None,
            created_at=known.created_at,
            schema_checksum=schema_checksum(definition.columns),
            sync_error=known.sync_error if attempted else None,
            attempted=attempted,
            unknown=earlier.metadata.unknown if earlier else None,
        ),
        dependencies=_dependencies(model.qualified_name),
        unknown=earlier.unknown if earlier else None,
    )


def applied_schema(
    schema: Schema | SchemaName,
    *,
    at: datetime,
    by: str,
    earlier: SchemaResource | None = None,
    full_ownership: tuple[str, ...] | None = None,
) -> SchemaResource:
    """Return the record of an existing schema; an unchanged definition keeps the time and author of `earlier`."""
    if isinstance(schema, SchemaName):
        return _unapplied_schema(schema, Status.HEALTHY, at=at, by=by)
    definition, resource = define_schema(schema), earlier
    if resource is None or resource.metadata.declared != definition or resource.status is not Status.HEALTHY:
        resource = _unapplied_schema(schema.qualified_name, Status.HEALTHY, at=at, by=by)
    return msgspec.structs.replace(
        resource,
        metadata=SchemaMetadata(
            declared=definition,
            full_ownership=full_ownership,
            unknown=earlier.metadata.unknown if earlier else None,
        ),
        unknown=earlier.unknown if earlier else None,
    )


def unfinished(
    name: QualifiedName | SchemaName,
    status: Status,
    reason: str | None,
    *,
    attempted: Iterable[Definition],
    earlier: Resource | None,
) -> Resource:
    """Return the record of a table or schema that a run did not finish; the earlier applied definition stays."""
    resource: Resource
    if earlier is not None:
        resource = earlier
    elif isinstance(name, SchemaName):
        resource = _unapplied_schema(name, status)
    else:
        resource = _unapplied_table(name, status)
    known = resource.metadata
    joined = (*known.attempted, *(one for one in attempted if one not in known.attempted))
    metadata = msgspec.structs.replace(known, sync_error=reason, attempted=joined)
    return msgspec.structs.replace(resource, status=status, metadata=metadata)


def unmanaged_table(name: QualifiedName, earlier: Resource | None = None) -> TableResource:
    """Return the record of a table that no model declares, with the attempts of its `earlier` record."""
    return msgspec.structs.replace(
        _unapplied_table(name, Status.UNMANAGED),
        metadata=TableMetadata(
            sync_warning="it stands in a managed schema and is in no model",
            attempted=earlier.metadata.attempted if isinstance(earlier, TableResource) else (),
        ),
    )


def noted(
    resource: TableResource, model: Table, observed: TableState, earlier: TableResource | None
) -> TableResource:
    """Return a table's record with its creation time and the order of its columns, without moves that are drift.

    Args:
        earlier: the record before the apply.
    """
    if resource.metadata.declared is None:
        return resource
    order = _settled_order(model, observed, earlier)
    is_as_declared = [name.lower() for name in order] == [column.key for column in model.columns]
    metadata = msgspec.structs.replace(
        resource.metadata, created_at=observed.audit.created_at, column_order=() if is_as_declared else order
    )
    return msgspec.structs.replace(resource, metadata=metadata)


def _settled_order(model: Table, observed: TableState, earlier: TableResource | None) -> tuple[str, ...]:
    """Return the recorded order with added columns last, unless the table has the order of its model."""
    present = {column.key: column.name for column in observed.columns}
    known = earlier.metadata if earlier else TableMetadata()
    is_as_declared = [*present] == [column.key for column in model.columns]
    if known.declared is None or known.column_order is None or is_as_declared:
        return tuple(present.values())
    recorded = known.column_order or tuple(column.name for column in known.declared.columns)
    new_names = {one.renamed_from.lower(): one.key for one in model.columns if one.renamed_from}
    keys = [new_names.get(name.lower(), name.lower()) for name in recorded]
    kept = [key for key in keys if key in present]
    return tuple(present[key] for key in (*kept, *(key for key in present if key not in kept)))


def with_version(resource: TableResource, version: TableVersion) -> TableResource:
    """Return a table's record with its Delta id and version."""
    metadata = msgspec.structs.replace(
        resource.metadata, delta_table_id=version.table_id, delta_version=version.version
    )
    return msgspec.structs.replace(resource, metadata=metadata)


def recorded_version(metadata: TableMetadata) -> TableVersion | None:
    """Return the recorded version."""
    if metadata.delta_version is None:
        return None
    return TableVersion(table_id=metadata.delta_table_id, version=metadata.delta_version)


def is_half_done(resource: Resource) -> bool:
    """Whether a run left a table or schema unfinished; a change that the catalog showed late is finished."""
    if resource.metadata.attempted:
        return True
    has_lag = isinstance(resource, TableResource) and bool(resource.metadata.lag)
    return resource.status in HALF_DONE and not has_lag


def _unapplied_table(name: QualifiedName, status: Status) -> TableResource:
    return TableResource(
        id=str(name),
        deployed_at=None,
        deployed_by=None,
        config_checksum=None,
        status=status,
        dependencies=_dependencies(name),
        metadata=TableMetadata(),
    )


def _unapplied_schema(
    name: SchemaName, status: Status, *, at: datetime | None = None, by: str | None = None
) -> SchemaResource:
    return SchemaResource(
        id=str(name),
        deployed_at=at,
        deployed_by=by,
        config_checksum=None,
        status=status,
        dependencies=(),
        metadata=SchemaMetadata(),
    )


def _type_of(name: QualifiedName | SchemaName) -> ResourceType:
    return ResourceType.SCHEMA if isinstance(name, SchemaName) else ResourceType.TABLE


def _dependencies(table: QualifiedName) -> tuple[str, ...]:
    return (resource_key(SchemaName(table.catalog, table.schema)),)


def with_renamed(
    resources: Mapping[str, Resource], former: QualifiedName, name: QualifiedName
) -> dict[str, Resource]:
    """Return records with a table's record, if any, under the table's new name.

    Foreign keys to it follow it, an assumption about Unity Catalog (docs/assumptions.md); no other platform renames
    tables. An existing record under the new name stays, unless it holds only attempts.
    """
    kept: dict[str, Resource] = {
        key: redefined(one, lambda definition: pointing_at(name, former, definition))
        if isinstance(one, TableResource)
        else one
        for key, one in resources.items()
    }
    resource, present = recorded_table(kept, former), recorded_table(kept, name)
    kept.pop(resource_key(former), None)
    if resource is None or (present is not None and present.metadata.declared is not None):
        return kept
    renamed = _renamed(resource, name)
    if present is not None:
        reason, attempted = present.metadata.sync_error, present.metadata.attempted
        return {
            **kept,
            resource_key(name): unfinished(
                name, present.status, reason, attempted=attempted, earlier=renamed
            ),
        }
    return {**kept, resource_key(name): renamed}


def with_settled_renames(
    state: DeploymentState, models: Iterable[Table], observed: CatalogState
) -> DeploymentState:
    """Return a document whose records have the current names of their tables; the models name former names.

    A run can end between a rename and its record, and users rename tables by hand.
    """
    resources: Mapping[str, Resource] = state.resources
    for model in models:
        former, name = former_name(model), model.qualified_name
        if former is None or resource_key(former) not in resources or name.key not in observed.tables:
            continue
        found = observed.table(name)
        if found.exists and found.former_name is None:
            resources = with_renamed(resources, former, name)
    if resources is state.resources:
        return state
    return msgspec.structs.replace(state, resources=dict(resources))


def pointing_at(name: QualifiedName, former: QualifiedName, definition: TableDefinition) -> TableDefinition:
    """Return a definition whose foreign keys to a table's former name have its new name."""
    if all(key.references.lower() != former.key for key in definition.foreign_keys):
        return definition
    keys = (
        msgspec.structs.replace(key, references=str(name)) if key.references.lower() == former.key else key
        for key in definition.foreign_keys
    )
    return msgspec.structs.replace(definition, foreign_keys=tuple(keys))


def redefined(resource: TableResource, change: Callable[[TableDefinition], TableDefinition]) -> TableResource:
    """Return a table's record with all of its definitions changed, and the checksum of the applied one."""
    known = resource.metadata
    definition = known.declared and change(known.declared)
    metadata = msgspec.structs.replace(
        known,
        declared=definition,
        baseline=definition and _redefined_baseline(known, definition, change),
        attempted=tuple(map(change, known.attempted)),
    )
    if metadata == known:
        return resource
    checksum = definition_checksum(definition) if definition else resource.config_checksum
    return msgspec.structs.replace(resource, config_checksum=checksum, metadata=metadata)


def _redefined_baseline(
    known: TableMetadata, definition: TableDefinition, change: Callable[[TableDefinition], TableDefinition]
) -> Baseline | None:
    if known.declared is None or known.baseline is None:
        return None
    return define_baseline(definition, as_table(change(with_baseline(known.declared, known.baseline))))


def _renamed(resource: TableResource, name: QualifiedName) -> TableResource:
    renamed = redefined(
        resource,
        lambda definition: msgspec.structs.replace(
            definition, catalog=name.catalog, schema=name.schema, name=name.table
        ),
    )
    dependencies = (resource_key(SchemaName(name.catalog, name.schema)),)
    return msgspec.structs.replace(renamed, id=str(name), dependencies=dependencies)


def without_resources(state: DeploymentState, keys: Collection[str]) -> DeploymentState:
    """Return the document without some resources, which are then unknown to the engine."""
    kept = {key: resource for key, resource in state.resources.items() if key not in keys}
    return msgspec.structs.replace(state, resources=kept)


def with_renamed_table(state: DeploymentState, old: QualifiedName, new: QualifiedName) -> DeploymentState:
    """Return the document with a renamed table; raise `StateMismatchError` if it is unknown or the name is used."""
    old_key, new_key = resource_key(old), resource_key(new)
    if old_key not in state.resources:
        raise StateMismatchError(
            f"it has no table {old}",
            way_out=f"{command('state list', state.environment.name)} shows what it has.",
        )
    if new_key in state.resources:
        raise StateMismatchError(
            f"it has a table {new} already",
            way_out=f"Forget that one first: {command(f'state rm {new}', state.environment.name)}.",
        )
    return msgspec.structs.replace(state, resources=with_renamed(state.resources, old, new))
