"""Records of tables and schemas: their keys, what a run writes into them, and edits, such as new names of tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from delta_engine.deployment.document import (
    DeploymentState,
    LastChange,
    Resource,
    ResourceType,
    SchemaMetadata,
    SchemaResource,
    Status,
    TableMetadata,
    TableResource,
)
from delta_engine.deployment.errors import StateMismatchError
from delta_engine.deployment.stored_definitions import (
    RECORDED_TABLE_FACETS,
    Baseline,
    SchemaDefinition,
    TableDefinition,
)
from delta_engine.models import Column, QualifiedName, SchemaName, Table
from delta_engine.models.open_struct import canonical_checksum
from delta_engine.models.record import resource_key
from delta_engine.state.catalog_reader import former_names
from delta_engine.state.states import CatalogState, TableState
from delta_engine.state.table_queries import TableVersion
from delta_engine.telemetry.context import command

Definition: TypeAlias = TableDefinition | SchemaDefinition

HALF_DONE: Final = (Status.DEGRADED, Status.UNKNOWN)
"""Statuses of resources that a run of the engine left unfinished: the run's changes are not drift."""


def resource_name(resource: Resource) -> QualifiedName | SchemaName:
    """Return the name of a recorded table or schema."""
    parts = resource.id.split(".")
    return QualifiedName(*parts) if resource.type is ResourceType.TABLE else SchemaName(*parts)


def recorded_table(resources: Mapping[str, Resource], name: QualifiedName) -> TableResource | None:
    """Return the record of a table, if there is one."""
    found = resources.get(resource_key(name))
    return found if isinstance(found, TableResource) else None


def is_unrecorded(earlier: TableResource | None) -> bool:
    """Whether no record says what an existing table was: the next apply adopts it."""
    if earlier is None:
        return True
    metadata = earlier.metadata
    return metadata.declared is None and not (metadata.change is not None and metadata.change.is_new)


def recorded_schema(resources: Mapping[str, Resource], name: SchemaName) -> SchemaResource | None:
    """Return the record of a schema, if there is one."""
    found = resources.get(resource_key(name))
    return found if isinstance(found, SchemaResource) else None


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
        resource = unapplied_schema(name, status)
    else:
        resource = _unapplied_table(name, status)
    known = resource.metadata
    joined = (*known.attempted, *(one for one in attempted if one not in known.attempted))
    metadata = msgspec.structs.replace(known, sync_error=reason, attempted=joined)
    return msgspec.structs.replace(resource, status=status, metadata=metadata)


def changed_by(resource: Resource, change: LastChange) -> Resource:
    """Return a record of a resource that a run has changed."""
    metadata = msgspec.structs.replace(resource.metadata, change=change)
    return msgspec.structs.replace(resource, metadata=metadata)


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
    resource: TableResource,
    model: Table,
    observed: TableState,
    earlier: TableResource | None,
    *,
    ordered: TableResource | None,
    added: Collection[str] = (),
) -> TableResource:
    """Return a table's record with its creation time and the order of its columns, without moves that are drift.

    Args:
        resource: without a creation time if the run has replaced the table.
        earlier: the record before the apply.
        ordered: the record of the order from which the apply began: `earlier`, unless RESTORE brought the table back.
        added: the keys of the columns that the apply added.
    """
    if resource.metadata.declared is None:
        return resource
    order = _settled_order(model, observed, ordered, added)
    is_as_declared = [name.lower() for name in order] == [column.key for column in model.columns]
    known, created_at = resource.metadata, observed.audit.created_at
    if earlier is not None and known.delta_table_id == earlier.metadata.delta_table_id:
        created_at = known.created_at or created_at  # another table may have replaced it
    metadata = msgspec.structs.replace(
        known, created_at=created_at, column_order=() if is_as_declared else order
    )
    return msgspec.structs.replace(resource, metadata=metadata)


def with_agreed_order(resource: TableResource, model: Table, observed: TableState) -> TableResource:
    """Return the record of a table that was given the order of its model outside the engine: it is the recorded one."""
    if not resource.metadata.column_order or not _is_in_order(model, observed):
        return resource
    metadata = msgspec.structs.replace(resource.metadata, column_order=())
    return msgspec.structs.replace(resource, metadata=metadata)


def _is_in_order(model: Table, observed: TableState) -> bool:
    return [column.key for column in observed.columns] == [column.key for column in model.columns]


def _settled_order(
    model: Table, observed: TableState, earlier: TableResource | None, added: Collection[str]
) -> tuple[str, ...]:
    """Return the recorded order, with other columns where the table has them; the table's, if it is its model's."""
    present = {column.key: column.name for column in observed.columns}
    known = earlier.metadata if earlier else TableMetadata()
    if known.declared is None or known.column_order is None or _is_in_order(model, observed):
        return tuple(present.values())
    recorded = known.column_order or tuple(column.name for column in known.declared.columns)
    new_names = {former.lower(): column.key for column in model.columns for former in column.renamed_from}
    keys = [new_names.get(name.lower(), name.lower()) for name in recorded]
    order = [key for key in keys if key in present and key not in added]
    before: list[str] = []
    for key in present:
        if key not in order:  # the record has no place from which it could have moved
            order.insert(1 + max(map(order.index, before), default=-1), key)
        before.append(key)
    return tuple(present[key] for key in order)


def with_columns_in_order(model: Table, ordered: TableResource) -> tuple[Column, ...]:
    """Return the columns of a model in the order of a record."""
    places = {name.lower(): place for place, name in enumerate(ordered.metadata.column_order or ())}
    return tuple(sorted(model.columns, key=lambda column: places.get(column.key, len(places))))


def with_version(
    resource: TableResource, version: TableVersion | None, created_at: datetime | None
) -> TableResource:
    """Return a table's record with its Delta id, version and time of creation; None if the version is hidden."""
    metadata = msgspec.structs.replace(
        resource.metadata,
        delta_table_id=version.table_id if version else None,
        delta_version=version.version if version else None,
        created_at=created_at,
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
        dependencies=(resource_key(SchemaName(name.catalog, name.schema)),),
        metadata=TableMetadata(),
    )


def unapplied_schema(
    name: SchemaName, status: Status, *, at: datetime | None = None, by: str | None = None
) -> SchemaResource:
    """Return the record of a schema that no model declares."""
    return SchemaResource(
        id=str(name),
        deployed_at=at,
        deployed_by=by,
        config_checksum=None,
        status=status,
        dependencies=(),
        metadata=SchemaMetadata(),
    )


def dependencies_of(definition: TableDefinition) -> tuple[str, ...]:
    """Return the keys of a table's schema, and of the other tables that its foreign keys reference."""
    schema = SchemaName(definition.catalog, definition.schema)
    own = f"{schema.key}.{definition.name.lower()}"
    parents = {key.references.lower() for key in definition.foreign_keys} - {own}
    return (resource_key(schema), *(f"table.{name}" for name in sorted(parents)))


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
        name = model.qualified_name
        recorded = (former for former in former_names(model) if resource_key(former) in resources)
        former = next(recorded, None)
        if former is None or name.key not in observed.tables:
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
    if definition is None:
        return msgspec.structs.replace(resource, metadata=metadata)
    return msgspec.structs.replace(
        resource,
        config_checksum=canonical_checksum(definition),
        metadata=metadata,
        dependencies=dependencies_of(definition),
    )


def _redefined_baseline(
    known: TableMetadata, definition: TableDefinition, change: Callable[[TableDefinition], TableDefinition]
) -> Baseline | None:
    if known.declared is None or known.baseline is None:
        return None
    return baseline_of(definition, change(with_baseline(known.declared, known.baseline)))


def _renamed(resource: TableResource, name: QualifiedName) -> TableResource:
    renamed = redefined(
        resource,
        lambda definition: msgspec.structs.replace(
            definition, catalog=name.catalog, schema=name.schema, name=name.table
        ),
    )
    return msgspec.structs.replace(renamed, id=str(name))


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


def baseline_of(declared: TableDefinition, whole: TableDefinition) -> Baseline | None:
    """Return what a table has besides its definition; None if it has nothing."""
    known = {column.name.lower(): column for column in declared.columns}
    columns = tuple(column for column in whole.columns if column != known.get(column.name.lower()))
    values = {facet.key: getattr(whole, facet.key) for facet in RECORDED_TABLE_FACETS}
    values = {key: value for key, value in values.items() if value != getattr(declared, key)}
    return Baseline(columns=columns, **values) if columns or values else None


def with_baseline(declared: TableDefinition, baseline: Baseline | None) -> TableDefinition:
    """Return a definition with what the table had besides."""
    if baseline is None:
        return declared
    others = {column.name.lower(): column for column in baseline.columns}
    columns = [others.pop(column.name.lower(), column) for column in declared.columns]
    values = {facet.key: getattr(baseline, facet.key) for facet in RECORDED_TABLE_FACETS}
    values = {key: value for key, value in values.items() if value is not msgspec.UNSET}
    return msgspec.structs.replace(declared, columns=(*columns, *others.values()), **values)
