"""Models from the records: applied, attempted, with unmanaged parts, and with recorded grants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from delta_engine.deployment.definitions import as_schema, as_table
from delta_engine.deployment.document import DeploymentState, ResourceMetadata
from delta_engine.models import Schema, Table
from delta_engine.models.parts import Grants, joined_grants
from delta_engine.state.catalog_reader import former_name
from delta_engine.state.states import CatalogState

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
