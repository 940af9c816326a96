"""Edits of recorded resources: renamed tables and columns take their new names, others are forgotten."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from delta_engine.deployment.definitions import TableDefinition, definition_checksum
from delta_engine.deployment.document import DeploymentState, Resource, ResourceMetadata
from delta_engine.deployment.errors import StateMismatchError
from delta_engine.deployment.resources import resource_key
from delta_engine.models import QualifiedName, SchemaName, Table
from delta_engine.state.catalog_reader import former_name
from delta_engine.state.states import CatalogState
from delta_engine.telemetry.context import command


def with_renamed(
    resources: Mapping[str, Resource], former: QualifiedName, name: QualifiedName
) -> dict[str, Resource]:
    """Return records with a table's record, if any, under the table's new name.

    Foreign keys to it follow it, an assumption about Unity Catalog (docs/assumptions.md); no other platform renames
    tables. An existing record under the new name stays, unless it holds only attempts.
    """
    kept = {
        key: redefined(one, lambda definition: pointing_at(name, former, definition))
        for key, one in resources.items()
    }
    resource = kept.pop(resource_key(former), None)
    present = kept.get(resource_key(name))
    if resource is None or (present is not None and present.metadata.definition is not None):
        return kept
    renamed = _renamed(resource, name)
    if present is not None:
        known = renamed.metadata.attempted
        metadata = msgspec.structs.replace(
            renamed.metadata,
            attempted=(*known, *(one for one in present.metadata.attempted if one not in known)),
            sync_error=present.metadata.sync_error,
        )
        renamed = msgspec.structs.replace(renamed, status=present.status, metadata=metadata)
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


def redefined(resource: Resource, change: Callable[[TableDefinition], TableDefinition]) -> Resource:
    """Return a record with all of its definitions changed, and the checksum of the applied one."""
    known = resource.metadata
    metadata = _with_definitions(known, change)
    if metadata == known:
        return resource
    definition = metadata.definition
    checksum = definition_checksum(definition) if definition else resource.config_checksum
    return msgspec.structs.replace(resource, config_checksum=checksum, metadata=metadata)


def _renamed(resource: Resource, name: QualifiedName) -> Resource:
    renamed = redefined(
        resource,
        lambda definition: msgspec.structs.replace(
            definition, catalog=name.catalog, schema=name.schema, name=name.table
        ),
    )
    dependencies = (resource_key(SchemaName(name.catalog, name.schema)),)
    return msgspec.structs.replace(renamed, id=str(name), dependencies=dependencies)


def _with_definitions(
    metadata: ResourceMetadata, change: Callable[[TableDefinition], TableDefinition]
) -> ResourceMetadata:
    return msgspec.structs.replace(
        metadata,
        definition=metadata.definition and change(metadata.definition),
        with_others=metadata.with_others and change(metadata.with_others),
        attempted=tuple(map(change, metadata.attempted)),
    )


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
