"""Records what one run leaves of securables."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from delta_engine.aspects import former_name, redefines
from delta_engine.aspects.columns import ColumnAdd
from delta_engine.aspects.partitioning import RewriteTable
from delta_engine.aspects.restores import RestoreTable
from delta_engine.aspects.storage import SetManaged, UnsetManaged
from delta_engine.backends.error_conditions import is_refusal, may_have_run
from delta_engine.deployment.document import ApplyActions, Checkpoint
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.resources import unfinished, with_renamed, with_version
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.drift.renames import ignored_renames
from delta_engine.drift.synchronizing import (
    attempted_by,
    confirmed,
    confirmed_definition,
    unconfirmed,
    with_late_views,
)
from delta_engine.execute.outcomes import AnyOutcome, OnOutcome, OutcomeKind, is_of_table, of_tables
from delta_engine.models import (
    QualifiedName,
    SchemaName,
    Securable,
    SecurableName,
    Table,
    by_resource,
    of_kind,
    resource_key,
)
from delta_engine.orchestrate.applied_records import AppliedRecords
from delta_engine.ownership.recorded import (
    AnyRecord,
    Failure,
    Kept,
    LastChange,
    Recorded,
    Status,
    table_record,
)
from delta_engine.state.states import CatalogState
from delta_engine.state.table_queries import TableVersion, TableVersionReader
from delta_engine.telemetry.context import command
from delta_engine.telemetry.logs import log

_NOT_READ_AGAIN: Final = "it was not read again after the apply"

_MOST_RETRIES: Final = 50
"""How many unknown versions a run reads again: each costs a statement, and a principal may never see some."""

_OF_ANOTHER_ID: Final = (RewriteTable, RestoreTable, SetManaged, UnsetManaged)
"""What gives a table another id of Delta, or may."""


class Recording:
    """Records the outcome of each securable of a run, as it is done, and those that needed no statement.

    What a stop kept from beginning leaves no record; what waited for a failed resource is recorded as failed.
    `RunRecorder` journals and saves the records.

    Args:
        recorder: keeps the records of the run.
        planned: what the run applies.
        changes: what the run records of itself, by the resources' keys.

    `attempted` has the models that the run is about to apply, by the resources' keys.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        planned: PlannedRun,
        changes: Mapping[str, LastChange],
        on_outcome: OnOutcome,
    ) -> None:
        plan = planned.plan
        undo = planned.intent.undo
        self.attempted = attempted_by(
            plan, planned.models, recorder.resources, undo.baselines if undo else ()
        )
        self.changes = changes
        self._records = AppliedRecords(recorder, planned)
        self._recorder = recorder
        self._former = recorder.state.resources
        self._on_outcome = on_outcome
        self._intent = planned.intent
        self._observed = planned.basis.observed
        self._ignored_renames = ignored_renames(planned.drifted)
        self._models = by_resource(planned.models)
        self._intended = by_resource(planned.intent.models)
        self._redefined = {resource_key(change.name) for change in plan.changes if redefines(change)}
        self._former_names = {
            resource_key(align.name): former
            for align in plan.alignments
            if (former := former_name(align)) is not None
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
        self._outcomes: list[AnyOutcome] = []

    @property
    def touched(self) -> ApplyActions:
        """How many securables were created, changed and dropped so far, without unfinished ones."""
        kinds = [outcome.kind for outcome in self._outcomes]
        return ApplyActions(
            added=kinds.count(OutcomeKind.CREATED),
            changed=kinds.count(OutcomeKind.CHANGED),
            destroyed=kinds.count(OutcomeKind.DROPPED),
        )

    def record(self, outcome: AnyOutcome) -> None:
        """Record, log and show the outcome of a securable."""
        if outcome.kind is not OutcomeKind.STOPPED or outcome.statements:
            self._record(outcome)
        self._on_outcome(outcome)

    def note_versions(self, versions: TableVersionReader) -> None:
        """Ask Delta for the versions of the changed tables, and for the ids that are not known."""
        done = [
            outcome
            for outcome in of_tables(self._outcomes)
            if outcome.kind in (OutcomeKind.CREATED, OutcomeKind.CHANGED)
            and resource_key(outcome.name) not in self._ignored_renames
        ]
        records = {outcome.name.key: self._table(outcome.name) for outcome in done}
        unknown = [key for key, record in records.items() if record.delta_table_id is None]
        versions_read = versions.read_versions([outcome.name for outcome in done], with_id=unknown)
        for key, record in records.items():
            if (version := versions_read.get(key)) is not None:
                version = replace(version, table_id=version.table_id or record.delta_table_id)
                self._recorder.resources[record.key] = with_version(record, version, record.created_at)

    def completed(self) -> list[Securable]:
        """Return the tables that this run has changed completely, and others with a definition that it set."""
        done = {
            resource_key(outcome.name)
            for outcome in self._outcomes
            if outcome.failure is None
            and outcome.kind is not OutcomeKind.DROPPED
            and (is_of_table(outcome) or resource_key(outcome.name) in self._redefined)
        }
        return [model for key, model in self._intended.items() if key in done]

    def confirm(self, models: Iterable[Securable], observed: CatalogState) -> frozenset[str]:
        """Compare what was just applied with a second read, and record a difference as lag.

        Args:
            models: those of `completed`.

        Returns:
            The keys of the verified resources.
        """
        records = [self._confirmed(model, observed) for model in models]
        self._recorder.resources |= {record.key: record for record in records}
        for record in records:
            for part in record.drift:
                self._recorder.warn(
                    f"{record.name}: its {part.field} was replaced during the run, and is {part.actual}. "
                    f"{command('drift')} shows the details."
                )
        return frozenset(record.key for record in records if record.status is Status.HEALTHY)

    def doubt(self, models: Iterable[Securable], reason: str) -> None:
        """Record that the applied tables were not read again: whether they are as planned is unknown."""
        for table in of_kind(Table, models):
            record = unconfirmed(self._table(table.qualified_name), reason)
            self._recorder.resources[record.key] = record

    def adopt(
        self, models: Iterable[Securable], versions: Mapping[str, TableVersion] = MappingProxyType({})
    ) -> None:
        """Record securables that are as their models say without a statement of this run.

        Args:
            versions: the current ones of the tables in `with_new_version`, by `QualifiedName.key`.
        """
        for model in sorted(models, key=lambda model: isinstance(model, Table)):  # tables note their schemas
            if isinstance(model, Table):
                self.note_schema(model)
            record = self._records.adopted(model, versions.get(model.key))
            self._recorder.resources[record.key] = record

    def with_new_version(self, models: Iterable[Table]) -> list[QualifiedName]:
        """Return the tables that are recorded for the first time, or after an unfinished run, or with renames.

        These are renames by others that the models have taken. A few more have no version, because it could not be
        read, or a killed run made them.
        """
        pairs = [(model, table_record(self._recorder.resources, model.qualified_name)) for model in models]
        new = [
            model.qualified_name
            for model, record in pairs
            if record is None or record.applied is None or record.attempts or self._takes_renames(model)
        ]
        unknown = (
            model.qualified_name
            for model, record in pairs
            if record is not None and record.applied and record.delta_version is None
        )
        return [*new, *islice(unknown, _MOST_RETRIES)]

    def note_schema(self, model: Table) -> None:
        """Record that a table's schema exists."""
        name = SchemaName(model.catalog_name, model.schema_name)
        key, resources = resource_key(name), self._recorder.resources
        recorded = resources.get(key)
        is_declared = recorded is not None and recorded.applied is not None
        if (
            recorded is None
            or recorded.status is Status.MISSING
            or not (is_declared or recorded.attempts or recorded.status is Status.HEALTHY)
        ):
            resources[key] = self._records.existing(name)

    def rename(self, former: SecurableName, name: SecurableName) -> None:
        """Move the record of a table or view to its new name. An earlier record of that name gives way."""
        if isinstance(former, QualifiedName) and isinstance(name, QualifiedName):
            self._records.renamed.append((former, name))
        gone = self._recorder.resources.get(resource_key(name))
        if gone is not None and gone.applied is not None:
            del self._recorder.resources[resource_key(name)]
        self._recorder.resources = with_renamed(self._recorder.resources, former, name)

    def _takes_renames(self, model: Table) -> bool:
        renamed = self._records.column_renames.keys() - self._ignored_renames
        return resource_key(model.qualified_name) in renamed

    def _record(self, outcome: AnyOutcome) -> None:
        former = self._former_names.get(resource_key(outcome.name))
        if former is not None and outcome.statements:
            self.rename(former, outcome.name)  # the first statement
        if outcome.kind is OutcomeKind.DROPPED:  # no journal: the next run sees that it is gone
            self._outcomes.append(outcome)
            self._recorder.resources.pop(resource_key(outcome.name), None)
        else:
            self._record_kept(outcome.name, outcome)
        _log_outcome(outcome)

    def _record_kept(self, name: SecurableName, outcome: AnyOutcome) -> None:
        failure = outcome.failure
        record = self._unfinished(name, outcome) if failure else self._recorded_as_applied(name)
        if _is_touched(name, outcome):
            record = replace(record, change=self.changes[resource_key(name)])
        if failure is None:
            record = self._with_lag(record)
        status = record.status
        if failure is None and resource_key(name) in self._redefined:  # in case that the run is killed before
            record = unconfirmed(record, _NOT_READ_AGAIN)
        checkpoint = Checkpoint(
            resource=resource_key(name),
            status=status,
            statements_done=outcome.statements,
            statement=(failure.sql or None) if failure else None,
            error=failure.message if failure else None,
        )
        self._outcomes.append(outcome)
        self._recorder.record(record, checkpoint)

    def _recorded_as_applied(self, name: SecurableName) -> AnyRecord:
        model = self._models.get(resource_key(name))
        if model is None:
            return self._records.existing(name)
        if isinstance(model, Table):
            self.note_schema(model)
        return self._records.applied(model, is_changed=True, is_rewritten=model.key in self._replaced)

    def _with_lag(self, record: AnyRecord) -> AnyRecord:
        """Return the record of what was just applied; that of a table with what views may show late of it."""
        model = self._intended.get(record.key)
        if not isinstance(model, Table):
            return record
        before = self._observed.table(model.qualified_name)
        earlier = self._records.earlier.get(record.key)
        return with_late_views(record, model, before, earlier=earlier, policy=self._intent.policy)

    def _unfinished(self, name: SecurableName, outcome: AnyOutcome) -> AnyRecord:
        key, failure = resource_key(name), outcome.failure
        return unfinished(
            name,
            Failure(_status_after(outcome), failure.first_line if failure else ""),
            attempted=self._attempted(outcome) if _is_touched(name, outcome) else (),
            earlier=self._recorder.resources.get(key),
            change=self.changes.get(key),
        )

    def _attempted(self, outcome: AnyOutcome) -> Sequence[Kept[Any]]:
        """Return the models that a run attempted of a securable which it did not finish.

        If the first statement was refused, that is what was applied before, or nothing of what the run was to adopt:
        parts of others that the refused model names do not become the engine's. What was to be renamed has its record
        under the former name.
        """
        key = resource_key(outcome.name)
        earlier, present = self._recorder.resources.get(key), self._observed.of(outcome.name)
        if _was_refused(outcome) and key not in self._former_names:
            if earlier is not None and earlier.applied is not None and not earlier.is_begun_drop:
                return (earlier.applied,)
            if present is not None and present.exists:
                return ()
        return self.attempted.get(key, ())

    def _confirmed(self, intended: Securable, observed: CatalogState) -> AnyRecord:
        name, key = intended.qualified_name, resource_key(intended.qualified_name)
        if isinstance(intended, Table):
            earlier = self._records.earlier.get(key)
            return confirmed(
                self._table(intended.qualified_name),
                intended,
                observed.table(intended.qualified_name),
                earlier=earlier,
                ordered=self._records.ordered(intended, earlier),
                added=self._added.get(intended.key, ()),
                policy=self._intent.policy,
            )
        record, former = self._recorder.resources[key], self._former.get(key)
        is_again = former is not None and former.applied == record.applied
        before = None if is_again else self._observed.of(name)
        return confirmed_definition(record, self._models[key], intended, before, observed.of(name))

    def _table(self, name: QualifiedName) -> Recorded[Table]:
        record = table_record(self._recorder.resources, name)
        assert record is not None
        return record


def _status_after(outcome: AnyOutcome) -> Status:
    """Return the status of a resource that a run did not finish."""
    if outcome.statements:
        return Status.DEGRADED
    failure = outcome.failure
    return Status.UNKNOWN if failure is not None and may_have_run(failure) else Status.FAILED


def _was_refused(outcome: AnyOutcome) -> bool:
    """Whether the platform refused the first statement: a repeated one may have run before."""
    failure = outcome.failure
    was_repeated = any(run.retries for run in outcome.runs)
    return failure is not None and is_refusal(failure) and not (outcome.statements or was_repeated)


def _is_touched(name: SecurableName, outcome: AnyOutcome) -> bool:
    """Whether a run may have changed a resource. A table that only waited for a failed one was not touched.

    Everything else counts as touched.
    """
    is_sent = bool(outcome.statements or (outcome.failure and outcome.failure.sql))
    return is_sent or not isinstance(name, QualifiedName)


def _log_outcome(outcome: AnyOutcome) -> None:
    what, failure = outcome.name.kind, outcome.failure
    facts = {what: str(outcome.name), "status": outcome.kind.value, "statements": outcome.statements}
    if failure is None:
        log(logging.INFO, f"{what} done", **facts)
    else:
        reason = {"error": failure.message, "error_class": failure.error_class, "sql": failure.sql or None}
        log(logging.ERROR, f"{what} not done", **facts, **reason)
