"""Records what one run leaves: applied models, adopted drift, the outcome of each schema and table."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Final

import msgspec

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import ColumnOrder, Policy
from delta_engine.aspects.columns import ColumnAdd
from delta_engine.aspects.renames import Renames
from delta_engine.aspects.table_names import RenameTable
from delta_engine.deployment.definitions import as_table, define
from delta_engine.deployment.document import (
    ApplyActions,
    Checkpoint,
    Resource,
    SchemaResource,
    Status,
    TableResource,
)
from delta_engine.deployment.recorded_models import applied_schema, applied_table, table_record
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.resources import (
    noted,
    pointing_at,
    recorded_schema,
    recorded_table,
    recorded_version,
    redefined,
    unfinished,
    with_agreed_order,
    with_renamed,
    with_version,
)
from delta_engine.drift.baselines import with_unmanaged_parts
from delta_engine.drift.renames import TakenRenames
from delta_engine.drift.status import attempted_by, confirmed, with_accepted_drift
from delta_engine.execute.outcomes import AnyOutcome, OnTable, OutcomeKind, is_of_table, of_tables
from delta_engine.models import Part, QualifiedName, Schema, SchemaName, Table
from delta_engine.models.open_struct import canonical_checksum
from delta_engine.models.record import Record, resource_key
from delta_engine.state.states import ABSENT, CatalogState, TableState
from delta_engine.state.table_queries import TableVersion, TableVersionReader
from delta_engine.telemetry.logs import log

_MOST_RETRIES: Final = 50
"""How many unknown versions a run reads again: each costs a statement, and a principal may never see some."""


class RunRecords:
    """Changes the records of one run; saves nothing.

    Args:
        observed: the snapshot that the run started from.
        policy: of the run.
        column_renames: the renames outside the engine that the models have taken, by table key.
        ignored_renames: the keys of tables whose recorded version stays: the history goes on telling of renames.
        settles_attempts: whether the run settles what unfinished runs attempted.

    `earlier` has the records of tables before this run applied them.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        observed: CatalogState,
        policy: Policy,
        column_renames: Mapping[str, TakenRenames],
        ignored_renames: Collection[str],
        *,
        settles_attempts: bool,
    ) -> None:
        self._recorder = recorder
        self._observed = observed
        self._full_ownership = policy.full_ownership
        self._moves_columns = policy.column_order is ColumnOrder.ENFORCE
        self._column_renames = column_renames
        self.ignored_renames = ignored_renames
        self._settles_attempts = settles_attempts
        self._renamed: list[tuple[QualifiedName, QualifiedName]] = []
        self.earlier: dict[str, TableResource] = {}

    def applied(
        self, model: Table, earlier: TableResource | None, *, version: TableVersion | None = None
    ) -> TableResource:
        """Return the record of a table that is as its model says."""
        renames = self._column_renames.get(model.key)
        if earlier is not None and renames:
            earlier = redefined(earlier, lambda one: define(renames.applied_to(as_table(one))))
            order = earlier.metadata.column_order
            order = order and tuple(renames.columns.get(name, name) for name in order)
            metadata = msgspec.structs.replace(earlier.metadata, column_order=order)
            earlier = msgspec.structs.replace(earlier, metadata=metadata)
        observed = self._observed.tables.get(model.key, ABSENT)
        if earlier is not None:
            self.earlier.setdefault(resource_key(model.qualified_name), earlier)
            if observed.exists and version is None:  # a killed run reads no version
                version = recorded_version(earlier.metadata)
        resource = applied_table(
            model,
            at=self._recorder.now(),
            by=self._recorder.who,
            version=version,
            earlier=earlier,
            baseline=self._baseline(model, earlier),
            full_ownership=self._owned(earlier),
            settles=self._settles_attempts,
        )
        promised = self._promised(model, observed)
        if earlier is not None and earlier.metadata.accepted and self._settles_attempts:
            resource = with_accepted_drift(resource, model, observed, promised, earlier)
        return noted(resource, model, promised, earlier)

    def adopt(
        self,
        models: Sequence[Table | Schema],
        versions: Mapping[str, TableVersion] = MappingProxyType({}),
    ) -> None:
        """Record tables and schemas that are as their models say without a statement of this run.

        Args:
            versions: the current ones of the tables in `with_new_version`, by `QualifiedName.key`.
        """
        resources = self._recorder.resources
        for model in models:
            key = resource_key(model.qualified_name)
            if isinstance(model, Schema):
                resources[key] = self.applied_schema(model)
                continue
            earlier = recorded_table(resources, model.qualified_name)
            self.note_schema(model)
            is_known = earlier and earlier.config_checksum == canonical_checksum(define(model))
            if earlier is None or not is_known or earlier.metadata.attempted:
                resources[key] = self.applied(model, earlier, version=versions.get(model.key))
                continue
            observed = self._observed.table(model.qualified_name)
            resource = with_agreed_order(earlier, model, observed)
            if resource.metadata.full_ownership != self._full_ownership:
                metadata = msgspec.structs.replace(resource.metadata, full_ownership=self._full_ownership)
                resource = msgspec.structs.replace(resource, metadata=metadata)
            if model.key in versions:
                resource = with_version(resource, versions[model.key], observed.audit.created_at)
            if resource is not earlier:
                resources[key] = resource

    def applied_schema(self, schema: Schema | SchemaName) -> SchemaResource:
        """Return the record of a schema that is as its model says."""
        name = schema if isinstance(schema, SchemaName) else schema.qualified_name
        earlier = recorded_schema(self._recorder.resources, name)
        return applied_schema(
            schema,
            at=self._recorder.now(),
            by=self._recorder.who,
            earlier=earlier,
            full_ownership=self._owned(earlier),
        )

    def _owned(self, earlier: Resource | None) -> tuple[str, ...] | None:
        """Return the recorded ownership of tags and grants. A revert changes nothing but drift."""
        is_revert = not self._settles_attempts
        return earlier.metadata.full_ownership if earlier and is_revert else self._full_ownership

    def with_new_version(self, models: Iterable[Table]) -> list[QualifiedName]:
        """Return the tables that are recorded for the first time, or whose renames the models have taken.

        A few more have no version, because it could not be read, or a killed run made them.
        """
        known = [(one, recorded_table(self._recorder.resources, one.qualified_name)) for one in models]
        new = [
            one.qualified_name
            for one, found in known
            if found is None or found.metadata.declared is None or self._takes_renames(one)
        ]
        unknown = (
            one.qualified_name
            for one, found in known
            if found is not None and found.metadata.declared and found.metadata.delta_version is None
        )
        return [*new, *islice(unknown, _MOST_RETRIES)]

    def _takes_renames(self, model: Table) -> bool:
        return model.key in self._column_renames and model.key not in self.ignored_renames

    def note_schema(self, model: Table) -> None:
        """Record that a table's schema exists."""
        name = SchemaName(model.catalog_name, model.schema_name)
        key, resources = resource_key(name), self._recorder.resources
        known = resources.get(key)
        is_declared = known is not None and known.metadata.declared is not None
        if (
            known is None
            or known.status is Status.MISSING
            or not (is_declared or known.metadata.attempted or known.status is Status.HEALTHY)
        ):
            resources[key] = self.applied_schema(name)

    def rename(self, former: QualifiedName, table: QualifiedName) -> None:
        """Move a table's record to the table's new name. The record of an earlier table of that name gives way."""
        self._renamed.append((former, table))
        gone = recorded_table(self._recorder.resources, table)
        if gone is not None and gone.metadata.declared is not None:
            del self._recorder.resources[resource_key(table)]
        self._recorder.resources = with_renamed(self._recorder.resources, former, table)

    def _promised(self, model: Table, observed: TableState) -> TableState:
        """Return a table with the columns that its plan leaves, in their order. A second read confirms it."""
        if not observed.exists or self._moves_columns:
            return replace(observed, exists=True, columns=model.columns)
        if not model.is_about(Part.COLUMNS):
            return observed
        wanted = {column.key for column in model.columns}
        present = Renames.of(model, observed).applied_to(observed).columns
        kept = [column for column in present if column.key in wanted]
        known = {column.key for column in kept}
        return replace(observed, columns=(*kept, *(one for one in model.columns if one.key not in known)))

    def _baseline(self, model: Table, earlier: TableResource | None) -> Table | None:
        """Return a model with the unmanaged parts, if there are any, and the new names of tables."""
        observed = self._observed.tables.get(model.key, ABSENT)
        record = table_record(earlier.metadata) if earlier else Record()
        if not self._settles_attempts:
            return record.with_unmanaged_parts  # a revert brings it back
        if not observed.exists:
            return None
        found = with_unmanaged_parts(model, observed, record)
        for former, name in self._renamed:
            found = found and as_table(pointing_at(name, former, define(found)))
        return found


def _table(recorder: RunRecorder, name: QualifiedName) -> TableResource:
    found = recorded_table(recorder.resources, name)
    assert found is not None
    return found


class OutcomeRecording:
    """Records the outcomes of one apply. A resource that was not begun leaves no record.

    `attempted` is what the run is about to apply, by the resources' keys.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        records: RunRecords,
        plan: TablePlan,
        models: Sequence[Table],
        schemas: Sequence[Schema],
        on_outcome: OnTable,
    ) -> None:
        self.attempted = attempted_by(plan, models, schemas, recorder.resources)
        self._recorder = recorder
        self._on_outcome = on_outcome
        self._records = records
        self._tables = {model.key: model for model in models}
        self._declared_schemas = {schema.key: schema for schema in schemas}
        self._renamed = {
            align.table.key: rename.observed
            for align in plan.align_tables
            for rename in align.of_type(RenameTable)
        }
        self._added = {
            align.table.key: {add.desired.key for add in align.of_type(ColumnAdd)}
            for align in plan.align_tables
        }
        self._recorded: list[AnyOutcome] = []

    @property
    def applied(self) -> ApplyActions:
        """How many tables and schemas were touched so far."""
        kinds = [outcome.kind for outcome in self._recorded]
        return ApplyActions(
            added=kinds.count(OutcomeKind.CREATED),
            changed=kinds.count(OutcomeKind.CHANGED),
            destroyed=kinds.count(OutcomeKind.DROPPED),
        )

    def record(self, outcome: AnyOutcome) -> None:
        """Record, log and show the outcome of a schema or table."""
        if outcome.kind is not OutcomeKind.STOPPED or outcome.statements:
            self._record(outcome)
        if is_of_table(outcome):
            self._on_outcome(outcome)

    def _record(self, outcome: AnyOutcome) -> None:
        if is_of_table(outcome) and outcome.statements and outcome.name.key in self._renamed:
            self._records.rename(self._renamed[outcome.name.key], outcome.name)  # the first statement
        if outcome.kind is OutcomeKind.DROPPED:  # no journal: the next run sees that it is gone
            self._recorded.append(outcome)
            self._recorder.resources.pop(resource_key(outcome.name), None)
        else:
            self._record_kept(outcome.name, outcome)
        _log_outcome(outcome)

    def note_versions(self, versions: TableVersionReader) -> None:
        """Ask Delta for the versions of the changed tables, and for the ids that are not known."""
        done = [
            outcome
            for outcome in of_tables(self._recorded)
            if outcome.kind in (OutcomeKind.CREATED, OutcomeKind.CHANGED)
            and outcome.name.key not in self._records.ignored_renames
        ]
        ids: dict[str, str | None] = {}
        for outcome in done:
            earlier = self._records.earlier.get(resource_key(outcome.name))
            if outcome.kind is OutcomeKind.CREATED or earlier is None:
                ids[outcome.name.key] = None
            else:
                ids[outcome.name.key] = earlier.metadata.delta_table_id
        unknown = [key for key, table_id in ids.items() if table_id is None]
        found = versions.read_versions([outcome.name for outcome in done], with_id=unknown)
        for outcome in done:
            version = found.get(outcome.name.key)
            if version is not None:
                key, table_id = resource_key(outcome.name), version.table_id or ids[outcome.name.key]
                known = TableVersion(table_id=table_id, version=version.version)
                resource = _table(self._recorder, outcome.name)
                self._recorder.resources[key] = with_version(resource, known, resource.metadata.created_at)

    def confirm(self, wanted: Sequence[Table], observed: CatalogState, policy: Policy) -> frozenset[str]:
        """Compare what was just applied with a second read; a difference is lag, and the next run tells.

        Args:
            wanted: what the changed tables were to become.

        Returns:
            The tables that are as they were to be, by `QualifiedName.key`.
        """
        resources = self._recorder.resources
        done = {outcome.name.key for outcome in of_tables(self._recorded)}
        verified = set()
        for model in wanted:
            key = resource_key(model.qualified_name)
            resource = recorded_table(resources, model.qualified_name)
            if model.key not in done or resource is None or resource.status is not Status.HEALTHY:
                continue
            earlier = self._records.earlier.get(key)
            resources[key] = confirmed(
                resource,
                model,
                observed.table(model.qualified_name),
                earlier=earlier,
                added=self._added.get(model.key, ()),
                policy=policy,
            )
            if resources[key].status is Status.HEALTHY:
                verified.add(model.key)
        return frozenset(verified)

    def _record_kept(self, name: QualifiedName | SchemaName, outcome: AnyOutcome) -> None:
        failure = outcome.failure
        resource = self._unfinished(name, outcome) if failure else self._applied(name)
        checkpoint = Checkpoint(
            resource=resource_key(name),
            status=resource.status,
            statements_done=outcome.statements,
            statement=(failure.sql or None) if failure else None,
            error=failure.message if failure else None,
        )
        self._recorded.append(outcome)
        self._recorder.record(resource, checkpoint)

    def _applied(self, name: QualifiedName | SchemaName) -> Resource:
        recorder = self._recorder
        if isinstance(name, SchemaName):
            return self._records.applied_schema(self._declared_schemas.get(name.key, name))
        model = self._tables[name.key]
        self._records.note_schema(model)
        return self._records.applied(model, recorded_table(recorder.resources, name))

    def _unfinished(self, name: QualifiedName | SchemaName, outcome: AnyOutcome) -> Resource:
        key, failure = resource_key(name), outcome.failure
        # a table that only waited for a failed one was not touched
        is_touched = isinstance(name, SchemaName) or outcome.statements or (failure and failure.sql)
        return unfinished(
            name,
            Status.DEGRADED if outcome.statements else Status.FAILED,
            failure.first_line if failure else "",
            attempted=self.attempted.get(key, ()) if is_touched else (),
            earlier=self._recorder.resources.get(key),
        )


def _log_outcome(outcome: AnyOutcome) -> None:
    what, failure = "table" if isinstance(outcome.name, QualifiedName) else "schema", outcome.failure
    facts = {what: str(outcome.name), "status": outcome.kind.value, "statements": outcome.statements}
    if failure is None:
        log(logging.INFO, f"{what} done", **facts)
    else:
        reason = {"error": failure.message, "error_class": failure.error_class, "sql": failure.sql or None}
        log(logging.ERROR, f"{what} not done", **facts, **reason)
