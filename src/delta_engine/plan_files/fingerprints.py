"""Fingerprints: short texts that are the same if, and only if, what a plan was made from is still the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from delta_engine.deployment.definitions import (
    checksum_of,
    define,
    define_columns,
    define_schema,
    definition_checksum,
)
from delta_engine.deployment.document import DeploymentState
from delta_engine.models import ForeignKey, PrimaryKey, Schema, Table
from delta_engine.models.open_struct import encode_open
from delta_engine.plan_files.document import DeploymentFingerprint, Fingerprints, TableFingerprint
from delta_engine.state.states import CatalogState, SchemaState, TableState

_VOLATILE = ("delta.lastCommitTimestamp", "delta.lastUpdateVersion", "transient_", "spark.sql.statistics.")
"""Prefixes of properties that move with the data."""


def fingerprints(
    tables: Mapping[str, TableState],
    observed: CatalogState,
    state: DeploymentState | None,
    ids: Mapping[str, str],
) -> Fingerprints:
    """Return the fingerprints of all that a plan was made from.

    Args:
        tables: the tables, by `QualifiedName.key`.
        observed: the snapshot, for the schemas.
        state: the deployment state.
        ids: Delta's ids of those of the tables whose ids are known.
    """
    return Fingerprints(
        tables={key: _table(tables[key], ids.get(key)) for key in sorted(tables)},
        schemas=dict(sorted(_schemas(tables, observed).items())),
        deployment_state=_deployment_state(state),
    )


def model_checksums(models: Iterable[Table]) -> dict[str, str]:
    """Return the checksums of models as the deployment state has them, by `QualifiedName.key`."""
    found = {model.qualified_name.key: definition_checksum(define(model)) for model in models}
    return dict(sorted(found.items()))


def schema_checksums(schemas: Iterable[Schema]) -> dict[str, str]:
    """Return the checksums of declared schemas, by `Schema.key`."""
    found = {
        schema.key: checksum_of(encode_open(define_schema(schema), sort_keys=True)) for schema in schemas
    }
    return dict(sorted(found.items()))


def _table(table: TableState, table_id: str | None) -> TableFingerprint:
    if not table.exists:
        return TableFingerprint()
    return TableFingerprint(
        state=_canonical(_facts(table)),
        table_id=table_id,
        created_at=table.audit.created_at,
    )


def _facts(table: TableState) -> Mapping[str, object]:
    """Return everything that a table is, as plain data; what moves with its data is left out."""
    return {
        "columns": define_columns(table.columns),
        "comment": table.table_comment,
        "properties": {
            key: value for key, value in table.table_properties.items() if not key.startswith(_VOLATILE)
        },
        "primary_key": table.primary_key and _primary_key(table.primary_key),
        "foreign_keys": list(map(_foreign_key, table.foreign_keys)),
        "checks": {check.name: check.expression for check in table.checks},
        "not_null_checks": sorted(table.not_null_checks),
        "cluster_by": table.cluster_by,
        "clusters_automatically": table.clusters_automatically,
        "partitioned_by": table.partitioned_by,
        "tags": dict(table.tags),
        "row_filter": table.row_filter and (table.row_filter.function, table.row_filter.columns),
        "owner": table.owner,
        "grants": {who: sorted(privileges) for who, privileges in table.grants.items()},
        "location": table.location,
        "referenced_by": sorted((one.table.key, one.name) for one in table.referenced_by),
        "relation": table.relation.value,
        "former_name": table.former_name and table.former_name.key,
    }


def _primary_key(key: PrimaryKey) -> object:
    return key.name, key.columns, key.rely


def _foreign_key(key: ForeignKey) -> object:
    return key.name, key.columns, key.references, key.referenced_columns, key.rely


def _schemas(tables: Iterable[str], observed: CatalogState) -> Mapping[str, str | None]:
    missing = {".".join(pair): None for pair in observed.missing_schemas}
    present = {key.rpartition(".")[0]: SchemaState() for key in tables} | dict(observed.schema_states)
    return {key: _canonical(_schema_facts(schema)) for key, schema in present.items()} | missing


def _schema_facts(schema: SchemaState) -> Mapping[str, object]:
    return {
        "comment": schema.comment,
        "tags": dict(schema.tags),
        "owner": schema.owner,
        "grants": {who: sorted(privileges) for who, privileges in schema.grants.items()},
    }


def _deployment_state(state: DeploymentState | None) -> DeploymentFingerprint | None:
    if state is None or not state.serial:  # a run starts with a document that nobody has saved yet
        return None
    return DeploymentFingerprint(
        state_id=state.state_id,
        serial=state.serial,
        checksum=checksum_of(encode_open(state, sort_keys=True)),
    )


def _canonical(facts: Mapping[str, object]) -> str:
    return checksum_of(msgspec.json.encode(facts, order="sorted"))
