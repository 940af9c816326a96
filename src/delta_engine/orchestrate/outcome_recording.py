"""Records the outcome of each schema and table of one run, as it is done."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.aspects.columns import ColumnAdd
from delta_engine.aspects.partitioning import RewriteTable
from delta_engine.aspects.restores import RestoreTable
from delta_engine.aspects.storage import SetManaged, UnsetManaged
from delta_engine.aspects.table_names import RenameTable
from delta_engine.deployment.document import ApplyActions, Checkpoint
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.resources import unfinished, with_version
from delta_engine.drift.status import attempted_by, confirmed, unconfirmed
from delta_engine.execute.outcomes import AnyOutcome, OnTable, OutcomeKind, is_of_table, of_tables
from delta_engine.models import QualifiedName, Schema, SchemaName, Table
from delta_engine.orchestrate.records import RunRecords
from delta_engine.ownership.recorded import (
    AnyRecord,
    Failure,
    LastChange,
    Recorded,
    Status,
    resource_key,
    table_record,
)
from delta_engine.state.states import CatalogState
from delta_engine.state.table_queries import TableVersion, TableVersionReader
from delta_engine.telemetry.logs import log


def _table(recorder: RunRecorder, name: QualifiedName) -> Recorded[Table]:
    record = table_record(recorder.resources, name)
    assert record is not None
    return record


_OF_ANOTHER_ID: Final = (RewriteTable, RestoreTable, SetManaged, UnsetManaged)
"""What gives a table another id of Delta, or may."""


class OutcomeRecording:
    """Records the outcomes of one apply. A resource that was not begun leaves no record.

    `attempted` is what the run is about to apply, and `changes` what it records of itself, by the resources' keys.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        records: RunRecords,
        plan: TablePlan,
        models: Sequence[Table],
        schemas: Sequence[Schema],
        changes: Mapping[str, LastChange],
        on_outcome: OnTable,
    ) -> None:
        self.attempted = attempted_by(plan, models, schemas, recorder.resources)
        self.changes = changes
        self._recorder = recorder
        self._on_outcome = on_outcome
        self.records = records
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
        self._replaced = {
            align.table.key
            for align in plan.align_tables
            if any(isinstance(action, _OF_ANOTHER_ID) for action in align.actions)
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
            self.records.rename(self._renamed[outcome.name.key], outcome.name)  # the first statement
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
            and outcome.name.key not in self.records.ignored_renames
        ]
        ids = {outcome.name.key: _table(self._recorder, outcome.name).delta_table_id for outcome in done}
        unknown = [key for key, table_id in ids.items() if table_id is None]
        found = versions.read_versions([outcome.name for outcome in done], with_id=unknown)
        for outcome in done:
            version = found.get(outcome.name.key)
            if version is not None:
                key, table_id = resource_key(outcome.name), version.table_id or ids[outcome.name.key]
                known = TableVersion(table_id=table_id, version=version.version)
                record = _table(self._recorder, outcome.name)
                self._recorder.resources[key] = with_version(record, known, record.created_at)

    def applied_of(self, wanted: Iterable[Table]) -> list[Table]:
        """Return the planned models whose tables this run has changed completely."""
        done = {
            outcome.name.key
            for outcome in of_tables(self._recorded)
            if outcome.failure is None and outcome.kind is not OutcomeKind.DROPPED
        }
        return [model for model in wanted if model.key in done]

    def confirm(self, wanted: Sequence[Table], observed: CatalogState, policy: Policy) -> frozenset[str]:
        """Compare what was just applied with a second read, and record a difference as lag.

        Args:
            wanted: the models of `applied_of`.

        Returns:
            The verified tables, by `QualifiedName.key`.
        """
        resources = self._recorder.resources
        verified = set()
        for model in wanted:
            key = resource_key(model.qualified_name)
            earlier = self.records.earlier.get(key)
            resources[key] = confirmed(
                _table(self._recorder, model.qualified_name),
                model,
                observed.table(model.qualified_name),
                earlier=earlier,
                ordered=self.records.ordered(model, earlier),
                added=self._added.get(model.key, ()),
                policy=policy,
            )
            if resources[key].status is Status.HEALTHY:
                verified.add(model.key)
        return frozenset(verified)

    def doubt(self, wanted: Sequence[Table], reason: str) -> None:
        """Record that the applied tables were not read again: whether they are as planned is unknown."""
        for model in wanted:
            record = unconfirmed(_table(self._recorder, model.qualified_name), reason)
            self._recorder.resources[record.key] = record

    def _record_kept(self, name: QualifiedName | SchemaName, outcome: AnyOutcome) -> None:
        failure = outcome.failure
        record = self._unfinished(name, outcome) if failure else self._applied(name)
        if _is_touched(name, outcome):
            record = replace(record, change=self.changes[resource_key(name)])
        checkpoint = Checkpoint(
            resource=resource_key(name),
            status=record.status,
            statements_done=outcome.statements,
            statement=(failure.sql or None) if failure else None,
            error=failure.message if failure else None,
        )
        self._recorded.append(outcome)
        self._recorder.record(record, checkpoint)

    def _applied(self, name: QualifiedName | SchemaName) -> AnyRecord:
        recorder = self._recorder
        if not isinstance(name, QualifiedName):
            return self.records.applied_schema(name, self._declared_schemas.get(name.key))
        model = self._tables[name.key]
        self.records.note_schema(model)
        earlier, is_rewritten = table_record(recorder.resources, name), name.key in self._replaced
        return self.records.applied(model, earlier, is_changed=True, is_rewritten=is_rewritten)

    def _unfinished(self, name: QualifiedName | SchemaName, outcome: AnyOutcome) -> AnyRecord:
        key, failure = resource_key(name), outcome.failure
        status = Status.DEGRADED if outcome.statements else Status.FAILED
        return unfinished(
            name,
            Failure(status, failure.first_line if failure else ""),
            attempted=self.attempted.get(key, ()) if _is_touched(name, outcome) else (),
            earlier=self._recorder.resources.get(key),
        )


def _is_touched(name: QualifiedName | SchemaName, outcome: AnyOutcome) -> bool:
    """Whether a run may have changed a resource: a table that only waited for a failed one was not touched."""
    is_sent = bool(outcome.statements or (outcome.failure and outcome.failure.sql))
    return is_sent or not isinstance(name, QualifiedName)


def _log_outcome(outcome: AnyOutcome) -> None:
    what, failure = "table" if isinstance(outcome.name, QualifiedName) else "schema", outcome.failure
    facts = {what: str(outcome.name), "status": outcome.kind.value, "statements": outcome.statements}
    if failure is None:
        log(logging.INFO, f"{what} done", **facts)
    else:
        reason = {"error": failure.message, "error_class": failure.error_class, "sql": failure.sql or None}
        log(logging.ERROR, f"{what} not done", **facts, **reason)
