"""Fingerprints: short texts that are equal if, and only if, the inputs of a plan are equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from delta_engine.aspects import SCHEMA_FACETS, TABLE_FACETS
from delta_engine.aspects.facet import Facet
from delta_engine.deployment.definitions import define, define_columns, define_schema
from delta_engine.deployment.document import DeploymentState
from delta_engine.models import Schema, Table
from delta_engine.models.open_struct import OpenStruct, canonical_checksum, checksum_of
from delta_engine.plan_files.document import DeploymentFingerprint, Fingerprints, TableFingerprint
from delta_engine.state.states import CatalogState, SchemaState, TableState

State = TypeVar("State", TableState, SchemaState)

_VOLATILE = ("delta.lastCommitTimestamp", "delta.lastUpdateVersion", "transient_", "spark.sql.statistics.")
"""Prefixes of properties that change with the data."""


def fingerprints(
    tables: Mapping[str, TableState],
    observed: CatalogState,
    state: DeploymentState | None,
    ids: Mapping[str, str],
) -> Fingerprints:
    """Return the fingerprints of all inputs of a plan; `tables` and Delta's `ids` have `QualifiedName.key` as keys."""
    return Fingerprints(
        tables={key: _table(tables[key], ids.get(key)) for key in sorted(tables)},
        schemas=dict(sorted(_schemas(tables, observed).items())),
        deployment_state=_deployment_state(state),
    )


def model_checksums(models: Iterable[Table]) -> dict[str, str]:
    """Return the checksums of models as in the deployment state, by `QualifiedName.key`."""
    found = {model.qualified_name.key: canonical_checksum(define(model)) for model in models}
    return dict(sorted(found.items()))


def schema_checksums(schemas: Iterable[Schema]) -> dict[str, str]:
    """Return the checksums of declared schemas, by `Schema.key`."""
    found = {schema.key: canonical_checksum(define_schema(schema)) for schema in schemas}
    return dict(sorted(found.items()))


def _table(table: TableState, table_id: str | None) -> TableFingerprint:
    if not table.exists:
        return TableFingerprint()
    return TableFingerprint(
        state=_canonical(_facts(table)), table_id=table_id, created_at=table.audit.created_at
    )


def _facts(table: TableState) -> Mapping[str, object]:
    """Return all facts of a table as plain data, without the properties that change with its data."""
    facts = _values(TABLE_FACETS, table)
    facts["properties"] = {
        key: value for key, value in table.table_properties.items() if not key.startswith(_VOLATILE)
    }
    return {
        **facts,
        "columns": define_columns(table.columns),
        "not_null_checks": sorted(table.not_null_checks),
        "referenced_by": sorted((one.table.key, one.name) for one in table.referenced_by),
        "relation": table.relation.value,
        "former_name": table.former_name and table.former_name.key,
    }


def _values(facets: Iterable[Facet[Any, State, Any]], state: State) -> dict[str, object]:
    return {
        facet.key: _plain(facet.form.encode(facet.observed(state)))
        for facet in facets
        if facet.observed is not None
    }


def _plain(value: object) -> object:
    """Return a recorded value with the values of structs in order, without their keys."""
    match value:
        case OpenStruct():
            return [getattr(value, name) for name in value.__struct_fields__ if name != "unknown"]
        case tuple():
            return [_plain(item) for item in value]
    return value


def _schemas(tables: Iterable[str], observed: CatalogState) -> Mapping[str, str | None]:
    missing = {".".join(pair): None for pair in observed.missing_schemas}
    present = {key.rpartition(".")[0]: SchemaState() for key in tables} | dict(observed.schema_states)
    return {key: _canonical(_values(SCHEMA_FACETS, schema)) for key, schema in present.items()} | missing


def _deployment_state(state: DeploymentState | None) -> DeploymentFingerprint | None:
    if state is None or not state.serial:  # a first run starts with an unsaved document
        return None
    return DeploymentFingerprint(
        state_id=state.state_id, serial=state.serial, checksum=canonical_checksum(state)
    )


def _canonical(facts: Mapping[str, object]) -> str:
    return checksum_of(msgspec.json.encode(facts, order="sorted"))
