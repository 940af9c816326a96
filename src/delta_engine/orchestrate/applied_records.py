"""What a run records of a securable that is as its model says."""

from __future__ import annotations

from dataclasses import replace

from delta_engine.actions.policy import ColumnOrder
from delta_engine.aspects import with_definition
from delta_engine.aspects.renames import pending_renames
from delta_engine.deployment.definitions import config_checksum, keep
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.resources import (
    applied_record,
    noted,
    remodelled,
    with_agreed_order,
    with_columns_in_order,
    with_references,
    with_version,
)
from delta_engine.drift.baselines import with_unmanaged_parts
from delta_engine.drift.lateness import is_creation_begun_recently
from delta_engine.drift.planned_run import PlannedRun, Undo
from delta_engine.drift.renames import taken_renames
from delta_engine.drift.replacements import is_replaced_by_run
from delta_engine.drift.synchronizing import with_accepted_drift
from delta_engine.models import (
    Part,
    QualifiedName,
    Securable,
    SecurableName,
    Table,
    View,
    ViewName,
    by_resource,
    of_kind,
    resource_key,
)
from delta_engine.ownership.recorded import AnyRecord, Recorded, is_unrecorded, table_record
from delta_engine.state.audits import Audit
from delta_engine.state.states import ABSENT, TableState, with_described_protection
from delta_engine.state.table_queries import TableVersion


class AppliedRecords:
    """The records of what a run has brought to its models, or has met as they say.

    Args:
        recorder: has the records of the run.

    `earlier` has the records of tables before the run applied them, by resource key.
    """

    def __init__(self, recorder: RunRecorder, planned: PlannedRun) -> None:
        self.earlier: dict[str, Recorded[Table]] = {}
        self.renamed: list[tuple[QualifiedName, QualifiedName]] = []
        self.column_renames = taken_renames(planned.tables, planned.drifted)
        self._recorder = recorder
        self._intent = planned.intent
        self._undo = planned.intent.undo or Undo(run="")
        self._observed = planned.basis.observed
        views = by_resource(of_kind(View, (*planned.models, *planned.intent.models)))
        recorded = (key for key in recorder.resources if key.startswith(f"{ViewName.kind}."))
        self._views = {*views, *recorded}

    def applied(
        self,
        model: Securable,
        *,
        version: TableVersion | None = None,
        is_changed: bool = False,
        is_rewritten: bool = False,
    ) -> AnyRecord:
        """Return the record of a securable that is as its model says.

        Args:
            version: the present one of a table; None if it is not read, or not yet.
            is_changed: whether this run changed the table, so that it no longer has its recorded version.
            is_rewritten: whether this run replaced the table: it has another id and creation time than recorded.
        """
        if not isinstance(model, Table):
            return self._applied_definition(model)
        observed = self._observed.tables.get(model.key, ABSENT)
        if is_rewritten:  # the snapshot has the creation time of the former table
            observed = replace(observed, audit=Audit())
        earlier = table_record(self._recorder.resources, model.qualified_name)
        if earlier is not None:
            earlier = self._under_taken_renames(earlier)
            self.earlier.setdefault(earlier.key, earlier)
        record: Recorded[Table] = applied_record(
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

    def adopted(self, model: Securable, version: TableVersion | None) -> AnyRecord:
        """Return the record of a securable that is as its model says without a statement of this run."""
        if not isinstance(model, Table):
            return self.applied(model)
        earlier = table_record(self._recorder.resources, model.qualified_name)
        if earlier is None or earlier.attempts or earlier.config_checksum != config_checksum(model):
            return self.applied(model, version=version)
        observed = self._observed.table(model.qualified_name)
        record = with_agreed_order(earlier, model, observed)
        if record.full_ownership != self._intent.policy.fully_owned:
            record = replace(record, full_ownership=self._intent.policy.fully_owned)
        if version is not None:
            record = with_version(record, version, observed.audit.created_at)
        if record.is_half_done:  # the table is as the run in doubt promised: what else differs is of others
            record = replace(record, failure=None, explained=())
        return record

    def existing(self, name: SecurableName) -> AnyRecord:
        """Return the record of what exists and is not declared, such as the schema of a table."""
        return Recorded(name, deployed_at=self._recorder.now(), deployed_by=self._recorder.who)

    def ordered(self, model: Table, earlier: Recorded[Table] | None) -> Recorded[Table] | None:
        """Return the record of the order that a table's columns have, but for those that it does not name.

        RESTORE brings back the order from before the run that is undone.

        Args:
            earlier: the record before this run.
        """
        return self._undo.former[model.key] if model.key in self._undo.restored else earlier

    def _applied_definition(self, model: Securable) -> AnyRecord:
        """Return the record of a securable without columns.

        The words in which an earlier run saw an unchanged definition stay.
        """
        earlier = self._recorder.resources.get(resource_key(model.qualified_name))
        record: AnyRecord = applied_record(
            model,
            at=self._recorder.now(),
            by=self._recorder.who,
            earlier=earlier,
            full_ownership=self._owned(earlier),
            views=self._views,
        )
        if earlier is None or earlier.declared is None or earlier.whole is None:
            return record
        is_same = keep(with_definition(model, earlier.declared)) == record.applied
        return replace(record, whole=keep(with_definition(model, earlier.whole.model)) if is_same else None)

    def _under_taken_renames(self, earlier: Recorded[Table]) -> Recorded[Table]:
        """Return a record under the names of columns and fields that the model has taken from other principals."""
        renames = self.column_renames.get(earlier.key)
        if not renames:
            return earlier
        names, order = renames.columns, earlier.column_order
        earlier = remodelled(earlier, renames.applied_to)
        return replace(earlier, column_order=order and tuple(names.get(name, name) for name in order))

    def _owned(self, earlier: AnyRecord | None) -> tuple[str, ...] | None:
        """Return the recorded ownership of tags and grants. A revert changes nothing but drift."""
        policy = self._intent.policy
        return earlier.full_ownership if earlier and self._intent.is_revert else policy.fully_owned

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
        if is_creation_begun_recently(earlier, self._recorder.now()):
            observed = with_described_protection(observed)
        whole = with_unmanaged_parts(model, observed, earlier)
        for former, name in self.renamed:
            whole = whole and with_references(whole, former, name)
        return whole
