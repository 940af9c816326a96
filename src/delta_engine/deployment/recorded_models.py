"""Models from the records, and edits of records: renamed tables take their new names, others are forgotten."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec

from delta_engine.deployment.definitions import TableDefinition, as_schema, as_table, definition_checksum
from delta_engine.deployment.document import DeploymentState, Resource, ResourceMetadata
from delta_engine.deployment.errors import StateMismatchError
from delta_engine.deployment.resources import resource_key
from delta_engine.models import QualifiedName, Schema, SchemaName, Table
from delta_engine.models.parts import Grants, joined_grants
from delta_engine.state.catalog_reader import former_name
from delta_engine.state.states import CatalogState
from delta_engine.telemetry.context import command

_Declared = TypeVar("_Declared", Table, Schema)


def last_applied(state: DeploymentState) -> Mapping[str, Table]:
    """Return the last applied tables as plain models, by `QualifiedName.key`."""
    definitions = (resource.metadata.definition for resource in state.resources.values())
    models = (as_table(definition) for definition in definitions if definition is not None)
    return {model.key: model for model in models}


def last_applied_schemas(state: DeploymentState) -> Mapping[str, Schema]:
    """Return the last applied declared schemas as plain models, by `Schema.key`."""
    definitions = (resource.metadata.schema_definition for resource in state.resources.values())
    models = (as_schema(definition) for definition in definitions if definition is not None)
    return {model.key: model for model in models}


def last_applied_to(
    models: Iterable[Table], applied: Mapping[str, Table], observed: CatalogState
) -> Mapping[str, Table]:
    """Return the last applied models by `QualifiedName.key`, with the new names of tables that will be renamed."""
    renamed = {}
    for model in models:
        former = observed.table(model.qualified_name).former_name
        if former is not None and former.key in applied:
            renamed[model.key] = replace(applied[former.key], table_name=model.table_name)
    return {**applied, **renamed}


def models_of(metadata: ResourceMetadata) -> tuple[Table, ...]:
    """Return the models of a table that this engine applied or attempted, the applied one first."""
    applied = (metadata.definition,) if metadata.definition else ()
    return tuple(map(as_table, (*applied, *metadata.attempted)))


def table_with_unmanaged_parts(metadata: ResourceMetadata) -> Table | None:
    """Return the last applied table with its unmanaged parts; None if it had none."""
    return as_table(metadata.with_others) if metadata.with_others else None


def with_recorded_grants(models: Iterable[_Declared], state: DeploymentState | None) -> tuple[_Declared, ...]:
    """Return models for a reader, with the recorded grants of their table or schema beside their own.

    Without them, a grant that a model no longer names may look revoked: see `CatalogReader.snapshot`.
    """
    recorded = {} if state is None else _recorded_grants(state)
    return tuple(_with_grants(model, recorded) for model in models) if recorded else tuple(models)


def _recorded_grants(state: DeploymentState) -> dict[str, Grants]:
    found: dict[str, Grants] = {}
    for full_key, resource in state.resources.items():
        key = full_key.partition(".")[2]
        metadata = resource.metadata
        definitions = (metadata.definition, metadata.schema_definition)
        for one in (*definitions, *metadata.attempted, *metadata.attempted_schemas):
            if one is not None and one.grants:
                found[key] = joined_grants(found.get(key, {}), one.grants)
    return found


def _with_grants(model: _Declared, recorded: dict[str, Grants]) -> _Declared:
    former = former_name(model) if isinstance(model, Table) else None
    for key in (model.key, former and former.key):
        if key in recorded:
            model = replace(model, grants=joined_grants(model.grants, recorded[key]))
    return model


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
    metadata = msgspec.structs.replace(
        known,
        definition=known.definition and change(known.definition),
        with_others=known.with_others and change(known.with_others),
        attempted=tuple(map(change, known.attempted)),
    )
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
