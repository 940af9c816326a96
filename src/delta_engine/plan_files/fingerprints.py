"""Fingerprints: short texts that are equal if, and only if, the inputs of a plan are equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from delta_engine.aspects import SCHEMA_FACETS, TABLE_FACETS
from delta_engine.aspects.facet import Facet
from delta_engine.deployment.definitions import define, define_columns, define_schema
from delta_engine.deployment.document import DeploymentState, Resource
from delta_engine.models import Schema, Table
from delta_engine.models.open_struct import OpenStruct, canonical_checksum, checksum_of
from delta_engine.plan_files.document import DeploymentFingerprint, Fingerprints, TableFingerprint
from delta_engine.state.states import CatalogState, SchemaState, TableState

State = TypeVar("State", TableState, SchemaState)

_VOLATILE = ("delta.lastCommitTimestamp", "delta.lastUpdateVersion", "transient_", "spark.sql.statistics.")
"""Prefixes of properties that change with the data."""


_NOT_COUNTED = {
    *("drift", "sync_error", "actual_checksum", "lag", "sync_warning"),  # runs derive them again
    *("delta_version", "schema_checksum", "unknown"),  # nothing is planned from them
    "change",  # names the last run, also one that changed nothing; an undo, which is planned from it, plans anew
}
"""Details of a record that make no plan stale."""


def fingerprints(
    tables: Mapping[str, TableState],
    observed: CatalogState,
    deployment_state: DeploymentFingerprint,
    ids: Mapping[str, str],
) -> Fingerprints:
    """Return the fingerprints of all inputs of a plan; `tables` and Delta's `ids` have `QualifiedName.key` as keys."""
    return Fingerprints(
        tables={key: _table(tables[key], ids.get(key)) for key in sorted(tables)},
        schemas=dict(sorted(_schemas(tables, observed).items())),
        deployment_state=deployment_state,
    )


def deployment_fingerprint(state: DeploymentState | None, touched: Iterable[str]) -> DeploymentFingerprint:
    """Return what a deployment state has of the resources that a plan touches."""
    if state is None or not state.serial:  # a first run starts with an unsaved document
        return DeploymentFingerprint(state_id=None, records=dict.fromkeys(sorted(touched)))
    known = state.resources
    return DeploymentFingerprint(
        state_id=state.state_id,
        records={key: _record(known.get(key)) for key in sorted(touched)},
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
    """Return all facts of a table as plain data, without properties and clustering that change with its data."""
    facts = _values(TABLE_FACETS, table)
    facts["properties"] = {
        key: value for key, value in table.table_properties.items() if not key.startswith(_VOLATILE)
    }
    if table.clusters_automatically:
        facts["cluster_by"] = []
    return {
        **facts,
        "columns": define_columns(table.columns),
        "not_null_checks": sorted(table.not_null_checks),
        "unique_constraints": sorted(table.unique_constraints),
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


def _record(resource: Resource | None) -> str | None:
    """Return the checksum of a record: its models, ownership, ids, accepted drift and last apply.

    What other runs derive again without an apply does not count. Measured with `drift`, `sync` and `sync -t`: they
    change the status, `drift`, `sync_error` and `actual_checksum`, and nothing of a table that `-t` leaves out.
    A `sync` can also adopt a model or an ownership policy without a statement. Plans depend on both, so they count.
    A record without a model only lists a table or schema: it counts as none.
    """
    if resource is None or not (resource.metadata.declared or resource.metadata.attempted):
        return None
    facts = msgspec.structs.asdict(resource.metadata)
    counted = {key: value for key, value in facts.items() if key not in _NOT_COUNTED}
    return _canonical({**counted, "deployed_at": resource.deployed_at})


def _canonical(facts: Mapping[str, object]) -> str:
    return checksum_of(msgspec.json.encode(facts, order="sorted"))
