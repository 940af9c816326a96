"""Models from the records: applied, attempted, with unmanaged parts, and with recorded grants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from delta_engine.aspects import under_name
from delta_engine.models import (
    AbacPolicy,
    Function,
    FunctionName,
    Schema,
    Securable,
    SecurableName,
    Table,
    View,
    former_names,
    resource_key,
)
from delta_engine.models.parts import Grants, joined_grants
from delta_engine.ownership.recorded import AnyRecord, Recorded
from delta_engine.state.states import CatalogState, former_name_of
from delta_engine.telemetry.garbage import no_garbage_collection

_Model = TypeVar("_Model", bound=Securable)


def with_models(records: Mapping[str, AnyRecord]) -> dict[str, Recorded[Any]]:
    """Return the records that have a model, by resource key."""
    return {key: record for key, record in records.items() if record.applied or record.attempts}


@no_garbage_collection()
def declared_by(records: Mapping[str, Recorded[_Model]]) -> dict[str, _Model]:
    """Return the models that were applied last, by their keys."""
    declared = {key: record.declared for key, record in records.items()}
    return {key: model for key, model in declared.items() if model is not None}


def with_recorded_tags(observed: CatalogState, records: Mapping[str, AnyRecord]) -> CatalogState:
    """Return a snapshot whose functions have their recorded tags, where the platform does not show tags."""
    recorded = {
        key: record.baseline.tags
        for key in observed.functions
        if (record := records.get(f"{FunctionName.kind}.{key}")) is not None
        and isinstance(record.baseline, Function)
    }
    functions = {
        key: state if state.shows_tags else replace(state, tags=recorded.get(key, {}))
        for key, state in observed.functions.items()
    }
    return replace(observed, functions=functions) if recorded else observed


def without_done_renames(models: Iterable[_Model], records: Mapping[str, AnyRecord]) -> tuple[_Model, ...]:
    """Return models without former names of what was renamed: only their present names are recorded.

    A run that did not finish may have given back a former name: then it is recorded as attempted.
    """
    applied = {key for key, record in records.items() if record.applied is not None}
    recorded = applied | {key for key, record in records.items() if record.is_begun_change}
    return tuple(
        replace(model, renamed_from=())
        if isinstance(model, Table | View)
        and model.renamed_from
        and recorded.isdisjoint(map(resource_key, former_names(model)))
        and resource_key(model.qualified_name) in applied
        else model
        for model in models
    )


def under_new_names(
    records: Mapping[str, Recorded[_Model]], models: Iterable[_Model], observed: CatalogState
) -> Mapping[str, Recorded[_Model]]:
    """Return records for the planner, with those of what will be renamed also under their new names."""
    renamed = {}
    for model in models:
        name = model.qualified_name
        former = former_name_of(observed.of(name))
        if former is not None and (record := records.get(resource_key(former))) is not None:
            key = resource_key(name)
            renamed[key] = _renamed(record, records.get(key), name)
    return {**records, **renamed} if renamed else records


def _renamed(
    record: Recorded[_Model], present: Recorded[_Model] | None, name: SecurableName
) -> Recorded[_Model]:
    def renamed(model: _Model) -> _Model:
        return under_name(model, name)

    attempts = (*(present.attempts if present is not None else ()), *record.attempts)
    return replace(replace(record, attempts=()).mapped(renamed), name=name, attempts=attempts)


def with_recorded_grants(models: Iterable[_Model], records: Mapping[str, AnyRecord]) -> tuple[_Model, ...]:
    """Return models for a reader, with the recorded grants of their securable in addition to their own.

    Without them, a grant that a model no longer names may look revoked: see `CatalogReader.snapshot`.
    """
    recorded = _recorded_grants(records)
    return tuple(_with_grants(model, recorded) for model in models) if recorded else tuple(models)


@no_garbage_collection()
def _recorded_grants(records: Mapping[str, AnyRecord]) -> dict[str, Grants]:
    grants: dict[str, Grants] = {}
    for key, record in records.items():
        for model in (record.applied, *record.attempts):
            if model is not None and not isinstance(model.model, AbacPolicy) and model.model.grants:
                grants[key] = joined_grants(grants.get(key, {}), model.model.grants)
    return grants


def _with_grants(model: _Model, recorded: dict[str, Grants]) -> _Model:
    if isinstance(model, AbacPolicy):
        return model
    grants = model.grants
    for key in _keys_of(model):
        if key in recorded:
            grants = joined_grants(grants, recorded[key])
    return model if grants is model.grants else replace(model, grants=grants)


def _keys_of(model: Table | Schema | Function | View) -> tuple[str, ...]:
    """Return the keys of the resources of a model and of its former names."""
    return tuple(map(resource_key, (model.qualified_name, *former_names(model))))
