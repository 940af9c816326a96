"""Records of renamed tables: they go along to the new name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import msgspec

from delta_engine.aspects.renames import with_renames
from delta_engine.deployment.definitions import TableDefinition, as_table, define, definition_checksum
from delta_engine.deployment.document import DeploymentState, Resource, ResourceMetadata
from delta_engine.deployment.resources import table_key
from delta_engine.deployment.schema_resources import schema_key
from delta_engine.models import QualifiedName, Table
from delta_engine.state.catalog_reader import former_name
from delta_engine.state.states import CatalogState


def with_renamed(
    resources: Mapping[str, Resource], former: QualifiedName, name: QualifiedName
) -> dict[str, Resource]:
    """Return records with a table's, if there is one, under the name that it has now.

    Foreign keys to it follow it, as is assumed of Unity Catalog (docs/assumptions.md); no other platform renames
    tables.
    A record that the new name has already stays, unless it has nothing but what a run attempted under that name.
    """
    kept = {
        key: _redefined(one, lambda definition: pointing_at(name, former, definition))
        for key, one in resources.items()
    }
    resource = kept.pop(table_key(former), None)
    present = kept.get(table_key(name))
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
    return {**kept, table_key(name): renamed}


def with_settled_renames(
    state: DeploymentState, models: Iterable[Table], observed: CatalogState
) -> DeploymentState:
    """Return a document whose records stand under the names that their tables have by now.

    A run can end between a rename and its record, and people rename by hand.

    Args:
        state: the document.
        models: the declared tables, which say former names.
        observed: a snapshot that covers them.
    """
    resources: Mapping[str, Resource] = state.resources
    for model in models:
        former, name = former_name(model), model.qualified_name
        if former is None or table_key(former) not in resources or name.key not in observed.tables:
            continue
        found = observed.table(name)
        if found.exists and found.former_name is None:
            resources = with_renamed(resources, former, name)
    if resources is state.resources:
        return state
    return msgspec.structs.replace(state, resources=dict(resources))


def last_applied_to(
    models: Iterable[Table], applied: Mapping[str, Table], observed: CatalogState
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


def pointing_at(name: QualifiedName, former: QualifiedName, definition: TableDefinition) -> TableDefinition:
    """Return a definition whose foreign keys to a table of a former name have the name that it has now."""
    if all(key.references.lower() != former.key for key in definition.foreign_keys):
        return definition
    keys = (
        msgspec.structs.replace(key, references=str(name)) if key.references.lower() == former.key else key
        for key in definition.foreign_keys
    )
    return msgspec.structs.replace(definition, foreign_keys=tuple(keys))


def with_renamed_columns(resource: Resource, renames: Mapping[str, str]) -> Resource:
    """Return a table's record with other names of its columns.

    Args:
        resource: the record.
        renames: new names by old ones.
    """
    if not renames:
        return resource
    return _redefined(resource, lambda definition: define(with_renames(as_table(definition), renames)))


def _renamed(resource: Resource, name: QualifiedName) -> Resource:
    """Return a table's record under another name."""
    renamed = _redefined(
        resource,
        lambda definition: msgspec.structs.replace(
            definition, catalog=name.catalog, schema=name.schema, name=name.table
        ),
    )
    dependencies = (schema_key(name.catalog, name.schema),)
    return msgspec.structs.replace(renamed, id=str(name), dependencies=dependencies)


def _redefined(resource: Resource, change: Callable[[TableDefinition], TableDefinition]) -> Resource:
    """Return a record with all of its definitions changed, and the checksum of the one that was applied."""
    known = resource.metadata
    metadata = _with_definitions(known, change)
    if metadata == known:
        return resource
    definition = metadata.definition
    checksum = definition_checksum(definition) if definition else resource.config_checksum
    return msgspec.structs.replace(resource, config_checksum=checksum, metadata=metadata)


def _with_definitions(
    metadata: ResourceMetadata, change: Callable[[TableDefinition], TableDefinition]
) -> ResourceMetadata:
    return msgspec.structs.replace(
        metadata,
        definition=metadata.definition and change(metadata.definition),
        with_others=metadata.with_others and change(metadata.with_others),
        attempted=tuple(map(change, metadata.attempted)),
    )
