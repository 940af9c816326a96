"""Models from the records: applied, attempted, with unmanaged parts, and with recorded grants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from delta_engine.deployment.document import DeploymentState
from delta_engine.models import QualifiedName, Schema, Table
from delta_engine.models.parts import Grants, joined_grants
from delta_engine.ownership.recorded import (
    Recorded,
    is_of_schema,
    is_of_table,
    resource_key,
)
from delta_engine.state.catalog_reader import former_names
from delta_engine.state.states import ABSENT, CatalogState
from delta_engine.telemetry.garbage import no_garbage_collection

_Declared = TypeVar("_Declared", Table, Schema)


def table_records(state: DeploymentState | None) -> dict[str, Recorded[Table]]:
    """Return the records of tables that have a model, by `QualifiedName.key`."""
    records = state.resources if state else {}
    return {
        key.partition(".")[2]: record
        for key, record in records.items()
        if is_of_table(record) and (record.applied or record.attempts)
    }


def schema_records(state: DeploymentState | None) -> dict[str, Recorded[Schema]]:
    """Return the records of declared schemas, by `Schema.key`."""
    records = state.resources if state else {}
    return {
        key.partition(".")[2]: record
        for key, record in records.items()
        if is_of_schema(record) and (record.applied or record.attempts)
    }


@no_garbage_collection()
def declared_by(records: Mapping[str, Recorded[_Declared]]) -> dict[str, _Declared]:
    """Return the models that were applied last, by their keys."""
    declared = {key: record.declared for key, record in records.items()}
    return {key: model for key, model in declared.items() if model is not None}


def without_done_renames(models: Iterable[Table], state: DeploymentState | None) -> tuple[Table, ...]:
    """Return models without former names of tables that were renamed: only their present names are recorded."""
    records = state.resources if state else {}
    applied = {key for key, record in records.items() if record.applied is not None}
    return tuple(
        replace(model, renamed_from=())
        if model.renamed_from
        and applied.isdisjoint(map(resource_key, former_names(model)))
        and resource_key(model.qualified_name) in applied
        else model
        for model in models
    )


def under_new_names(
    records: Mapping[str, Recorded[Table]], models: Iterable[Table], observed: CatalogState
) -> Mapping[str, Recorded[Table]]:
    """Return records, with those of tables that will be renamed also under their new names."""
    renamed = {}
    for model in models:
        former = observed.tables.get(model.key, ABSENT).former_name
        if former is not None and former.key in records:
            renamed[model.key] = _renamed(records[former.key], records.get(model.key), model.qualified_name)
    return {**records, **renamed} if renamed else records


def _renamed(
    record: Recorded[Table], present: Recorded[Table] | None, name: QualifiedName
) -> Recorded[Table]:
    def renamed(model: Table) -> Table:
        return replace(model, table_name=name.table)

    attempts = (*(present.attempts if present is not None else ()), *record.attempts)
    return replace(replace(record, attempts=()).mapped(renamed), name=name, attempts=attempts)


def with_recorded_grants(models: Iterable[_Declared], state: DeploymentState | None) -> tuple[_Declared, ...]:
    """Return models for a reader, with the recorded grants of their table or schema in addition to their own.

    Without them, a grant that a model no longer names may look revoked: see `CatalogReader.snapshot`.
    """
    recorded = {} if state is None else _recorded_grants(state)
    return tuple(_with_grants(model, recorded) for model in models) if recorded else tuple(models)


def _recorded_grants(state: DeploymentState) -> dict[str, Grants]:
    grants: dict[str, Grants] = {}
    for full_key, record in state.resources.items():
        key = full_key.partition(".")[2]
        for model in (record.applied, *record.attempts):
            if model is not None and isinstance(model.model, Table | Schema) and model.model.grants:
                grants[key] = joined_grants(grants.get(key, {}), model.model.grants)
    return grants


def _with_grants(model: _Declared, recorded: dict[str, Grants]) -> _Declared:
    grants = model.grants
    for key in _keys_of(model):
        if key in recorded:
            grants = joined_grants(grants, recorded[key])
    return model if grants is model.grants else replace(model, grants=grants)


def _keys_of(model: Table | Schema) -> tuple[str, ...]:
    """Return the key of a model, and those of its former names."""
    former = former_names(model) if isinstance(model, Table) else ()
    return model.key, *(name.key for name in former)
