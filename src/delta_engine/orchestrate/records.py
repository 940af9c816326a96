"""The records of tables and schemas as one run leaves them: applied models, adopted drift, unmanaged parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.renames import with_renames
from delta_engine.deployment.definitions import TableDefinition, as_table, define, definition_checksum
from delta_engine.deployment.document import Resource, Status
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.resources import (
    applied_schema,
    applied_table,
    noted,
    pointing_at,
    recorded_version,
    redefined,
    resource_key,
    with_renamed,
    with_version,
)
from delta_engine.drift.drifted_resources import (
    DriftedResource,
    DriftedTable,
    drifted_tables,
    is_schema,
    is_table,
)
from delta_engine.drift.handling import accepting
from delta_engine.drift.revert import renames_of
from delta_engine.drift.unmanaged import with_unmanaged_parts
from delta_engine.models import QualifiedName, Schema, SchemaName, Table
from delta_engine.state.states import ABSENT, CatalogState
from delta_engine.state.table_queries import TableVersion, TableVersionReader


class RunRecords:
    """Changes the records of one run; saves nothing.

    Args:
        observed: the snapshot that the run started from.
        settles_attempts: whether the run settles what unfinished runs attempted.
    """

    def __init__(
        self, recorder: RunRecorder, observed: CatalogState, *, settles_attempts: bool = True
    ) -> None:
        self._recorder = recorder
        self._observed = observed
        self._settles_attempts = settles_attempts
        self._renamed: list[tuple[QualifiedName, QualifiedName]] = []
        self._earlier: dict[str, Resource] = {}

    def earlier(self, key: str) -> Resource | None:
        """Return the record of a table before this run applied it."""
        return self._earlier.get(key)

    def applied(
        self, model: Table, earlier: Resource | None, *, version: TableVersion | None = None
    ) -> Resource:
        """Return the record of a table that is as its model says."""
        if earlier is not None:
            self._earlier.setdefault(resource_key(model.qualified_name), earlier)
        return applied_table(
            model,
            at=self._recorder.now(),
            by=self._recorder.who,
            version=version,
            earlier=earlier,
            with_others=self._with_unmanaged_parts(model, earlier),
            settles=self._settles_attempts,
        )

    def adopt(self, models: Sequence[Table | Schema], observed: CatalogState) -> None:
        """Record tables and schemas that are as their models say without a statement of this run."""
        resources = self._recorder.resources
        for model in models:
            key = resource_key(model.qualified_name)
            earlier = resources.get(key)
            if isinstance(model, Schema):
                resources[key] = applied_schema(
                    model, at=self._recorder.now(), by=self._recorder.who, earlier=earlier
                )
                continue
            self.note_schema(model)
            is_known = earlier and earlier.config_checksum == definition_checksum(define(model))
            if not (earlier and is_known) or earlier.metadata.attempted:
                version = recorded_version(earlier.metadata) if earlier else None
                resource = self.applied(model, earlier, version=version)
                resources[key] = noted(resource, observed.table(model.qualified_name))

    def note_schema(self, model: Table) -> None:
        """Record that a table's schema exists."""
        name = SchemaName(model.catalog_name, model.schema_name)
        key, resources = resource_key(name), self._recorder.resources
        known = resources.get(key)
        is_declared = known is not None and known.metadata.schema_definition is not None
        if (
            known is None
            or known.status is Status.MISSING
            or not (is_declared or known.metadata.attempted_schemas or known.status is Status.HEALTHY)
        ):
            resources[key] = applied_schema(name, at=self._recorder.now(), by=self._recorder.who)

    def rename(self, former: QualifiedName, table: QualifiedName) -> None:
        """Move a table's record to the table's new name."""
        self._renamed.append((former, table))
        self._recorder.resources = with_renamed(self._recorder.resources, former, table)

    def _with_unmanaged_parts(self, model: Table, earlier: Resource | None) -> TableDefinition | None:
        """Return a model's definition with the unmanaged parts, if there are any, and the new names of tables."""
        observed = self._observed.tables.get(model.key, ABSENT)
        found = with_unmanaged_parts(model, observed, earlier.metadata if earlier else None)
        if found == model:
            return None
        definition = define(found)
        for former, name in self._renamed:
            definition = pointing_at(name, former, definition)
        return definition


def adopt_drift(
    recorder: RunRecorder, versions: TableVersionReader | None, drifted: Sequence[DriftedResource]
) -> None:
    """Record drift as applied, without what the policy ignores.

    Args:
        versions: reads the current versions of the tables.
    """
    tables = drifted_tables(drifted)
    observed = CatalogState(tables={one.name.key: one.observed for one in tables})
    records = RunRecords(recorder, observed, settles_attempts=False)
    found = _current_versions(versions, (one for one in tables if one.observed.exists))
    for one in drifted:
        if not one.observed.exists:
            recorder.resources.pop(one.resource, None)
        elif is_table(one):
            _adopt_table(recorder, records, one, found.get(one.name.key) or one.version)
        elif is_schema(one):
            records.adopt([accepting(one.recorded.declared, one)], observed)


def refresh_replaced(
    recorder: RunRecorder, versions: TableVersionReader | None, replaced: Iterable[DriftedTable]
) -> None:
    """Record the new ids of replaced tables. Without a reader of versions, the recorded ids stay."""
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
    """Whether the policy ignores the order of columns."""
    return any(
        detail.ignored_by is not None and detail.deviation.kind is DriftKind.COLUMN_ORDER
        for detail in table.details
    )
