"""Models from the records: applied, attempted, with unmanaged parts, and with recorded grants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

import msgspec

from delta_engine.deployment.definitions import as_schema, as_table, define, define_schema, schema_checksum
from delta_engine.deployment.document import (
    DeploymentState,
    Resource,
    SchemaMetadata,
    SchemaResource,
    Status,
    TableMetadata,
    TableResource,
)
from delta_engine.deployment.resources import baseline_of, dependencies_of, unapplied_schema, with_baseline
from delta_engine.models import Schema, Table
from delta_engine.models.open_struct import canonical_checksum
from delta_engine.models.parts import Grants, SchemaName, joined_grants
from delta_engine.models.record import Record, resource_key
from delta_engine.state.catalog_reader import former_names
from delta_engine.state.states import ABSENT, CatalogState
from delta_engine.state.table_queries import TableVersion
from delta_engine.telemetry.garbage import no_garbage_collection

_Declared = TypeVar("_Declared", Table, Schema)


@no_garbage_collection()
def table_records(state: DeploymentState | None) -> dict[str, Record[Table]]:
    """Return the records of tables as models, by `QualifiedName.key`."""
    resources = state.resources.values() if state else ()
    return {
        _key(one): table_record(one.metadata)
        for one in resources
        if isinstance(one, TableResource) and (one.metadata.declared or one.metadata.attempted)
    }


def schema_records(state: DeploymentState | None) -> dict[str, Record[Schema]]:
    """Return the records of declared schemas as models, by `Schema.key`."""
    resources = state.resources.values() if state else ()
    return {
        _key(one): Record(
            declared=one.metadata.declared and as_schema(one.metadata.declared),
            attempted=tuple(map(as_schema, one.metadata.attempted)),
        )
        for one in resources
        if isinstance(one, SchemaResource) and (one.metadata.declared or one.metadata.attempted)
    }


def table_record(metadata: TableMetadata) -> Record[Table]:
    """Return the record of a table as models."""
    declared, baseline = metadata.declared, metadata.baseline
    return Record(
        declared=declared and as_table(declared),
        with_unmanaged_parts=as_table(with_baseline(declared, baseline)) if declared and baseline else None,
        attempted=tuple(map(as_table, metadata.attempted)),
    )


def declared_by(records: Mapping[str, Record[_Declared]]) -> dict[str, _Declared]:
    """Return the models that were applied last, by their keys."""
    return {key: record.declared for key, record in records.items() if record.declared is not None}


def without_done_renames(models: Iterable[Table], state: DeploymentState | None) -> tuple[Table, ...]:
    """Return models without former names of tables that were renamed: only their present names are recorded."""
    resources = state.resources if state else {}
    applied = {key for key, one in resources.items() if one.metadata.declared is not None}
    return tuple(
        replace(model, renamed_from=())
        if model.renamed_from
        and applied.isdisjoint(map(resource_key, former_names(model)))
        and resource_key(model.qualified_name) in applied
        else model
        for model in models
    )


def under_new_names(
    records: Mapping[str, Record[Table]], models: Iterable[Table], observed: CatalogState
) -> Mapping[str, Record[Table]]:
    """Return records, with those of tables that will be renamed also under their new names."""
    renamed = {}
    for model in models:
        former = observed.tables.get(model.key, ABSENT).former_name
        if former is not None and former.key in records:
            renamed[model.key] = _renamed(records[former.key], records.get(model.key), model.table_name)
    return {**records, **renamed} if renamed else records


def _key(resource: Resource) -> str:
    return resource.id.lower()


def _renamed(record: Record[Table], present: Record[Table] | None, name: str) -> Record[Table]:
    declared, whole = record.declared, record.with_unmanaged_parts
    return Record(
        declared=declared and replace(declared, table_name=name),
        with_unmanaged_parts=whole and replace(whole, table_name=name),
        attempted=(*(present.attempted if present else ()), *record.attempted),
    )


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
        for one in (metadata.declared, *metadata.attempted):
            if one is not None and one.grants:
                found[key] = joined_grants(found.get(key, {}), one.grants)
    return found


def _with_grants(model: _Declared, recorded: dict[str, Grants]) -> _Declared:
    grants = model.grants
    for key in _keys_of(model):
        if key in recorded:
            grants = joined_grants(grants, recorded[key])
    return model if grants is model.grants else replace(model, grants=grants)


def _keys_of(model: Table | Schema) -> tuple[str, ...]:
    """Return the key of a model, and those of its former names."""
    former = () if isinstance(model, Schema) else former_names(model)
    return model.key, *(name.key for name in former)


def applied_table(
    model: Table,
    *,
    at: datetime,
    by: str,
    version: TableVersion | None,
    created_at: datetime | None = None,
    earlier: TableResource | None,
    baseline: Table | None = None,
    full_ownership: tuple[str, ...] | None = None,
    settles: bool = True,
) -> TableResource:
    """Return the record of a table that matches its model.

    Args:
        created_at: when the catalog says that it was created; None if it is not known, or not yet.
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
        config_checksum=canonical_checksum(definition),
        status=Status.UNKNOWN if attempted else Status.HEALTHY,
        metadata=TableMetadata(
            change=known.change,
            declared=definition,
            full_ownership=full_ownership,
            baseline=baseline_of(definition, define(baseline)) if baseline else None,
            delta_table_id=version.table_id if version else None,
            delta_version=version.version if version else None,
            created_at=created_at,
            adopted_at=known.adopted_at,
            schema_checksum=schema_checksum(definition.columns),
            sync_error=known.sync_error if attempted else None,
            attempted=attempted,
            unknown=earlier.metadata.unknown if earlier else None,
        ),
        dependencies=dependencies_of(definition),
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
        return unapplied_schema(schema, Status.HEALTHY, at=at, by=by)
    definition, resource = define_schema(schema), earlier
    if resource is None or resource.metadata.declared != definition or resource.status is not Status.HEALTHY:
        resource = unapplied_schema(schema.qualified_name, Status.HEALTHY, at=at, by=by)
    return msgspec.structs.replace(
        resource,
        config_checksum=canonical_checksum(definition),
        metadata=SchemaMetadata(
            change=earlier.metadata.change if earlier else None,
            declared=definition,
            full_ownership=full_ownership,
            unknown=earlier.metadata.unknown if earlier else None,
        ),
        unknown=earlier.unknown if earlier else None,
    )
