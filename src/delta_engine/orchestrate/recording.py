"""Records what one run leaves of schemas and tables."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Final, TypeVar

from delta_engine.actions.policy import ColumnOrder
from delta_engine.aspects import former_name, redefines, with_definition
from delta_engine.aspects.columns import ColumnAdd
from delta_engine.aspects.partitioning import RewriteTable
from delta_engine.aspects.renames import pending_renames
from delta_engine.aspects.restores import RestoreTable
from delta_engine.aspects.storage import SetManaged, UnsetManaged
from delta_engine.deployment.definitions import config_checksum, keep
from delta_engine.deployment.document import ApplyActions, Checkpoint
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.resources import (
    applied_plain,
    applied_table,
    noted,
    remodelled,
    unfinished,
    with_agreed_order,
    with_columns_in_order,
    with_references,
    with_renamed,
    with_version,
)
from delta_engine.drift.baselines import with_unmanaged_parts
from delta_engine.drift.renames import ignored_renames, taken_renames
from delta_engine.drift.replacements import is_replaced_by_run
from delta_engine.drift.status import (
    attempted_by,
    confirmed,
    confirmed_other,
    unconfirmed,
    with_accepted_drift,
)
from delta_engine.execute.outcomes import AnyOutcome, OnOutcome, OutcomeKind, is_of_table, of_tables
from delta_engine.models import (
    Part,
    QualifiedName,
    SchemaName,
    Securable,
    SecurableName,
    Table,
    ViewName,
)
from delta_engine.orchestrate.intent import Undo
from delta_engine.orchestrate.runs import PlannedRun
from delta_engine.ownership.recorded import (
    AnyRecord,
    Failure,
    LastChange,
    Recorded,
    Status,
    is_unrecorded,
    resource_key,
    table_record,
)
from delta_engine.state.audits import Audit
from delta_engine.state.catalog_reader import Other
from delta_engine.state.states import ABSENT, CatalogState, TableState
from delta_engine.state.table_queries import TableVersion, TableVersionReader
from delta_engine.telemetry.logs import log

_Model = TypeVar("_Model", bound=Securable)

_NOT_READ_AGAIN: Final = "it was not read again after the apply"

_MOST_RETRIES: Final = 50
"""How many unknown versions a run reads again: each costs a statement, and a principal may never see some."""

_OF_ANOTHER_ID: Final = (RewriteTable, RestoreTable, SetManaged, UnsetManaged)
"""What gives a table another id of Delta, or may."""


class Recording:
    """Records the outcome of each schema and table of a run, as it is done, and those that needed no statement.

    A resource that was not begun leaves no record. `RunRecorder` journals and saves the records.

    Args:
        recorder: keeps the records of the run.
        planned: what the run applies.
        changes: what the run records of itself, by the resources' keys.

    `attempted` has the models that the run is about to apply, by the resources' keys. `earlier` has the records of
    tables before it applied them.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        planned: PlannedRun,
        changes: Mapping[str, LastChange],
        on_outcome: OnOutcome,
    ) -> None:
        plan = planned.plan
        self.attempted = attempted_by(plan, (*planned.models, *planned.others), recorder.resources)
        self.changes = changes
        self.earlier: dict[str, Recorded[Table]] = {}
        self._recorder = recorder
        self._former = recorder.state.resources
        self._on_outcome = on_outcome
        self._intent = planned.intent
        self._undo = planned.intent.undo or Undo(run="")
        self._observed = planned.basis.observed
        self._column_renames = taken_renames(planned.models, planned.drifted)
        self._ignored_renames = ignored_renames(planned.drifted)
        self._tables = {model.key: model for model in planned.models}
        self._redefined = {resource_key(change.name) for change in plan.changes if redefines(change)}
        self._others = {resource_key(model.qualified_name): model for model in planned.others}
        self._intended = {resource_key(model.qualified_name): model for model in self._intent.others}
        self._views = {
            key
            for key in (*self._others, *self._intended, *recorder.resources)
            if key.startswith(f"{ViewName.kind}.")
        }
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
        self._renamed: list[tuple[QualifiedName, QualifiedName]] = []

    @property
    def touched(self) -> ApplyActions:
        """How many securables were touched so far."""
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

    def completed(self, models: Iterable[_Model]) -> list[_Model]:
        """Return the planned tables that this run has changed completely, and others with a definition that it set."""
        done = {
            resource_key(outcome.name)
            for outcome in self._outcomes
            if outcome.failure is None
            and outcome.kind is not OutcomeKind.DROPPED
            and (is_of_table(outcome) or resource_key(outcome.name) in self._redefined)
        }
        return [model for model in models if resource_key(model.qualified_name) in done]

    def confirm(self, models: Iterable[Securable], observed: CatalogState) -> frozenset[str]:
        """Compare what was just applied with a second read, and record a difference as lag.

        Args:
            models: those of `completed`.

        Returns:
            The keys of the verified resources.
        """
        resources = self._recorder.resources
        verified = set()
        for model in models:
            record: AnyRecord
            if isinstance(model, Table):
                record = self._confirmed_table(model, observed)
            else:
                record = self._confirmed_other(model, observed)
            resources[record.key] = record
            if record.status is Status.HEALTHY:
                verified.add(record.key)
        return frozenset(verified)

    def doubt(self, models: Sequence[Table], reason: str) -> None:
        """Record that the applied tables were not read again: whether they are as planned is unknown."""
        for model in models:
            record = unconfirmed(self._table(model.qualified_name), reason)
            self._recorder.resources[record.key] = record

    def applied(
        self,
        model: Table,
        earlier: Recorded[Table] | None,
        *,
        version: TableVersion | None = None,
        is_changed: bool = False,
        is_rewritten: bool = False,
    ) -> Recorded[Table]:
        """Return the record of a table that is as its model says.

        Args:
            version: the present one; None if it is not read, or not yet.
            is_changed: whether this run changed the table, so that it no longer has its recorded version.
            is_rewritten: whether this run replaced the table: it has another id and creation time than recorded.
        """
        observed = self._observed.tables.get(model.key, ABSENT)
        if is_rewritten:  # the snapshot has the creation time of the former table
            observed = replace(observed, audit=Audit())
        if earlier is not None:
            earlier = self._under_taken_renames(model, earlier)
            self.earlier.setdefault(earlier.key, earlier)
        record = applied_table(
            model,
            at=self._recorder.now(),
            by=self._recorder.who,
            version=version,
            earlier=earlier,
            baseline=self._baseline(model, earlier),
            full_ownership=self._owned(earlier),
            attempts=earlier.attempts if earlier is not None and self._intent.is_revert else (),
        )
        if observed.exists and is_unrecorded(earlier):
            record = replace(record, adopted_at=self._recorder.now())
        promised = self._promised(model, observed)
        if earlier is not None:
            is_another = is_rewritten or not observed.exists or is_replaced_by_run(observed, earlier)
            record = replace(record, created_at=None if is_another else earlier.created_at)
            if observed.exists and version is None:
                record = replace(
                    record,
                    delta_table_id=None if is_another else earlier.delta_table_id,
                    delta_version=None if is_changed or earlier.attempts else earlier.delta_version,
                )
            if earlier.accepted and not self._intent.is_revert:
                record = with_accepted_drift(record, model, observed, promised, earlier)
        return noted(record, model, promised, earlier, ordered=self.ordered(model, earlier))

    def ordered(self, model: Table, earlier: Recorded[Table] | None) -> Recorded[Table] | None:
        """Return the record of the order that a table's columns have, but for those that it does not name.

        RESTORE brings back the order from before the run that is undone.

        Args:
            earlier: the record before this run.
        """
        return self._undo.former[model.key] if model.key in self._undo.restored else earlier

    def adopt_others(self, models: Iterable[Other]) -> None:
        """Record schemas, functions and policies that are as their models say without a statement of this run."""
        for model in models:
            record = self.applied_other(model.qualified_name, model)
            self._recorder.resources[record.key] = record

    def adopt(
        self, models: Sequence[Table], versions: Mapping[str, TableVersion] = MappingProxyType({})
    ) -> None:
        """Record tables that are as their models say without a statement of this run.

        Args:
            versions: the current ones of the tables in `with_new_version`, by `QualifiedName.key`.
        """
        resources = self._recorder.resources
        for model in models:
            key = resource_key(model.qualified_name)
            earlier = table_record(resources, model.qualified_name)
            self.note_schema(model)
            is_known = earlier and earlier.config_checksum == config_checksum(model)
            if earlier is None or not is_known or earlier.attempts:
                resources[key] = self.applied(model, earlier, version=versions.get(model.key))
                continue
            observed = self._observed.table(model.qualified_name)
            record = with_agreed_order(earlier, model, observed)
            if record.full_ownership != self._intent.policy.fully_owned:
                record = replace(record, full_ownership=self._intent.policy.fully_owned)
            if model.key in versions:
                record = with_version(record, versions[model.key], observed.audit.created_at)
            if (
                record.is_half_done
            ):  # the table is as the run in doubt promised: what else differs is of others
                record = replace(record, failure=None, explained=())
            if record is not earlier:
                resources[key] = record

    def applied_other(self, name: SecurableName, model: Other | None = None) -> AnyRecord:
        """Return the record of what exists and is no table, and is as its model says, if one declares it.

        The words in which an earlier run saw an unchanged definition stay.
        """
        earlier = self._recorder.resources.get(resource_key(name))
        record = applied_plain(
            name,
            model,
            at=self._recorder.now(),
            by=self._recorder.who,
            earlier=earlier,
            full_ownership=self._owned(earlier),
            views=self._views,
        )
        if model is None or earlier is None or earlier.declared is None or earlier.whole is None:
            return record
        is_same = keep(with_definition(model, earlier.declared)) == record.applied
        return replace(record, whole=keep(with_definition(model, earlier.whole.model)) if is_same else None)

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
            resources[key] = self.applied_other(name)

    def rename(self, former: SecurableName, name: SecurableName) -> None:
        """Move the record of a table or view to its new name. An earlier record of that name gives way."""
        if isinstance(former, QualifiedName) and isinstance(name, QualifiedName):
            self._renamed.append((former, name))
        gone = self._recorder.resources.get(resource_key(name))
        if gone is not None and gone.applied is not None:
            del self._recorder.resources[resource_key(name)]
        self._recorder.resources = with_renamed(self._recorder.resources, former, name)

    def _under_taken_renames(self, model: Table, earlier: Recorded[Table]) -> Recorded[Table]:
        """Return a record under the names of columns and fields that the model has taken from other principals."""
        renames = self._column_renames.get(resource_key(model.qualified_name))
        if not renames:
            return earlier
        names, order = renames.columns, earlier.column_order
        earlier = remodelled(earlier, renames.applied_to)
        return replace(earlier, column_order=order and tuple(names.get(name, name) for name in order))

    def _owned(self, earlier: AnyRecord | None) -> tuple[str, ...] | None:
        """Return the recorded ownership of tags and grants. A revert changes nothing but drift."""
        policy = self._intent.policy
        return earlier.full_ownership if earlier and self._intent.is_revert else policy.fully_owned

    def _takes_renames(self, model: Table) -> bool:
        return resource_key(model.qualified_name) in self._column_renames.keys() - self._ignored_renames

    def _promised(self, model: Table, observed: TableState) -> TableState:
        """Return a table with the columns that its plan leaves, in their order. A second read confirms it."""
        if not observed.exists or self._intent.policy.column_order is ColumnOrder.ENFORCE:
            return replace(observed, exists=True, columns=model.columns)
        if not model.is_about(Part.COLUMNS):
            return observed
        declared_keys = {column.key for column in model.columns}
        present = pending_renames(model, observed).applied_to(observed).columns
        if model.key in self._undo.restored:
            present = with_columns_in_order(model, self._undo.former[model.key])
        kept = [column for column in present if column.key in declared_keys]
        kept_keys = {column.key for column in kept}
        return replace(
            observed, columns=(*kept, *(column for column in model.columns if column.key not in kept_keys))
        )

    def _baseline(self, model: Table, earlier: Recorded[Table] | None) -> Table | None:
        """Return a model with the unmanaged parts, if there are any, and the new names of tables."""
        observed = self._observed.tables.get(model.key, ABSENT)
        if model.key in self._undo.former:
            return self._undo.former[model.key].with_unmanaged_parts
        if self._intent.is_revert:  # a revert brings it back
            return earlier.with_unmanaged_parts if earlier is not None else None
        if not observed.exists:
            return None
        whole = with_unmanaged_parts(model, observed, earlier)
        for former, name in self._renamed:
            whole = whole and with_references(whole, former, name)
        return whole

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
        recorder = self._recorder
        if not isinstance(name, QualifiedName):
            return self.applied_other(name, self._others.get(resource_key(name)))
        model = self._tables[name.key]
        self.note_schema(model)
        earlier, is_rewritten = table_record(recorder.resources, name), name.key in self._replaced
        return self.applied(model, earlier, is_changed=True, is_rewritten=is_rewritten)

    def _unfinished(self, name: SecurableName, outcome: AnyOutcome) -> AnyRecord:
        key, failure = resource_key(name), outcome.failure
        status = Status.DEGRADED if outcome.statements else Status.FAILED
        return unfinished(
            name,
            Failure(status, failure.first_line if failure else ""),
            attempted=self.attempted.get(key, ()) if _is_touched(name, outcome) else (),
            earlier=self._recorder.resources.get(key),
        )

    def _confirmed_table(self, model: Table, observed: CatalogState) -> Recorded[Table]:
        name = model.qualified_name
        earlier = self.earlier.get(resource_key(name))
        return confirmed(
            self._table(name),
            model,
            observed.table(name),
            earlier=earlier,
            ordered=self.ordered(model, earlier),
            added=self._added.get(model.key, ()),
            policy=self._intent.policy,
        )

    def _confirmed_other(self, model: Other, observed: CatalogState) -> AnyRecord:
        name, key = model.qualified_name, resource_key(model.qualified_name)
        record, earlier = self._recorder.resources[key], self._former.get(key)
        is_again = earlier is not None and earlier.applied == record.applied
        before = None if is_again else self._observed.of(name)
        return confirmed_other(record, model, self._intended[key], before, observed.of(name))

    def _table(self, name: QualifiedName) -> Recorded[Table]:
        record = table_record(self._recorder.resources, name)
        assert record is not None
        return record


def _is_touched(name: SecurableName, outcome: AnyOutcome) -> bool:
    """Whether a run may have changed a resource: a table that only waited for a failed one was not touched."""
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
