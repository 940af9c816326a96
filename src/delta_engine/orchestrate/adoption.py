"""Records changes made outside the engine as applied: accepted drift, and replaced tables. Saves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.renames import with_renames
from delta_engine.deployment.definitions import as_table, define
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.renamed_resources import redefined
from delta_engine.deployment.resources import noted, recorded_version, with_version
from delta_engine.drift.drifted_resources import (
    DriftedResource,
    DriftedTable,
    drifted_tables,
    is_schema,
    is_table,
)
from delta_engine.drift.handling import accepting
from delta_engine.drift.revert import renames_of
from delta_engine.orchestrate.run_records import RunRecords
from delta_engine.state.states import CatalogState
from delta_engine.state.table_queries import TableVersion, TableVersionReader


def adopt_drift(
    recorder: RunRecorder,
    records: RunRecords,
    versions: TableVersionReader | None,
    drifted: Sequence[DriftedResource],
) -> None:
    """Record drift as applied, but for what the policy ignores.

    Args:
        versions: asks Delta for the current versions of the tables.
    """
    records.keep_attempts()
    found = _current_versions(versions, (one for one in drifted_tables(drifted) if one.observed.exists))
    for one in drifted:
        if not one.observed.exists:
            recorder.resources.pop(one.resource, None)
        elif is_table(one):
            _adopt_table(recorder, records, one, found.get(one.name.key) or one.version)
        elif is_schema(one):
            records.adopt([accepting(one.recorded.declared, one)], CatalogState(tables={}))


def refresh_replaced(
    recorder: RunRecorder, versions: TableVersionReader | None, replaced: Iterable[DriftedTable]
) -> None:
    """Record the new ids of replaced tables: they are as wanted by now.

    Args:
        versions: asks Delta for the tables' ids; without it, the recorded ones stay.
    """
    tables = tuple(replaced)
    found = _current_versions(versions, tables)
    for table in tables:
        if table.name.key in found:
            resource = with_version(recorder.resources[table.resource], found[table.name.key])
            metadata = msgspec.structs.replace(resource.metadata, created_at=table.observed.audit.created_at)
            recorder.resources[table.resource] = msgspec.structs.replace(resource, metadata=metadata)


def _adopt_table(
    recorder: RunRecorder, records: RunRecords, table: DriftedTable, version: TableVersion | None
) -> None:
    known, renames = recorder.resources[table.resource], renames_of(table)
    earlier = (
        redefined(known, lambda definition: define(with_renames(as_table(definition), renames)))
        if renames
        else known
    )
    model = accepting(table.recorded.declared, table)
    resource = records.applied(model, earlier, version=version or recorded_version(earlier.metadata))
    resource = noted(resource, table.observed)
    if _ignores_order(table):
        metadata = msgspec.structs.replace(resource.metadata, column_order=earlier.metadata.column_order)
        resource = msgspec.structs.replace(resource, metadata=metadata)
    recorder.resources[table.resource] = resource


def _current_versions(
    versions: TableVersionReader | None, tables: Iterable[DriftedTable]
) -> dict[str, TableVersion]:
    names = [table.recorded.declared.qualified_name for table in tables]
    if versions is None or not names:
        return {}
    return dict(versions.read_versions(names, with_id={name.key for name in names}))


def _ignores_order(table: DriftedTable) -> bool:
    """Whether the policy ignores that columns stand in another order."""
    return any(
        detail.ignored_by is not None and detail.deviation.kind is DriftKind.COLUMN_ORDER
        for detail in table.details
    )
