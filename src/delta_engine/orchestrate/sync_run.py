"""One locked run: plan, then apply, each at most once; or look at drift, and settle it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from delta_engine.actions import TablePlan
from delta_engine.backends.cancellation import Stop, stopped_by_signals
from delta_engine.deployment.deployment import LockedRun
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.errors import StaleStateError, UnsavedStateError
from delta_engine.deployment.recorded_models import last_applied, with_recorded_grants
from delta_engine.deployment.resources import resource_key
from delta_engine.deployment.stamps import utc_now
from delta_engine.drift.attempts import attempted_by
from delta_engine.drift.drifted_resources import DriftedResource, drifted_schemas, drifted_tables
from delta_engine.drift.handling import is_replaced
from delta_engine.drift.revert import irreversible, restored
from delta_engine.drift.status import NOT_SHOWN_YET
from delta_engine.errors import RefusalGroup, RefusedError, StatementError, raise_all
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import (
    AnyOutcome,
    OnTable,
    TableOutcome,
    is_of_schema,
    is_of_table,
    of_tables,
)
from delta_engine.models import QualifiedName, Table
from delta_engine.models.resolution import resolved
from delta_engine.orchestrate.adoption import adopt_drift, refresh_replaced
from delta_engine.orchestrate.outcome_recording import OutcomeRecording
from delta_engine.orchestrate.pipeline import Pipeline, PlanBasis, PlannedRun
from delta_engine.orchestrate.run_endings import Ending, Unsaved
from delta_engine.orchestrate.run_records import RunRecords
from delta_engine.orchestrate.run_reporting import RunReporting
from delta_engine.plan_files.document import Fingerprints
from delta_engine.plan_files.staleness import ReviewedPlan
from delta_engine.report.run_report import RunReport
from delta_engine.state.catalog_reader import former_name, snapshot_with_former_names
from delta_engine.state.states import CatalogState
from delta_engine.telemetry.context import command
from delta_engine.validation.relations import checked_plan

_UNREADABLE = (RefusedError, RefusalGroup, StatementError, OSError)


class SyncRun:
    """A run that holds the lock.

    Args:
        pipeline: its parts.
        locked: the lock, and what records the run.
    """

    def __init__(self, pipeline: Pipeline, locked: LockedRun) -> None:
        self._pipeline = pipeline
        self._lease = locked.lease
        self._recorder = locked.recorder
        self._records = RunRecords(locked.recorder)
        self._recording: OutcomeRecording | None = None
        self._reporting = RunReporting(locked, pipeline.run_history)
        self._report: RunReport | None = None
        self._loaded = locked.recorder.state
        self._models: tuple[Table, ...] = ()
        self._observed = CatalogState(tables={})
        self._last_planned: PlannedRun | None = None
        self._policy = pipeline.planner.policy

    def in_context(self) -> AbstractContextManager[None]:
        """Return what gives everything that happens inside the run's context, in logs and traces."""
        return self._reporting.telling()

    @property
    def report(self) -> RunReport:
        """What the run did; there is a report once `apply` is over, also if tables failed or it was ended early."""
        assert self._report is not None, "nothing was applied yet"
        return self._report

    @property
    def loaded(self) -> DeploymentState:
        """The deployment state as this run found it, with what killed runs left; serial 0 if there was none."""
        return self._loaded

    @property
    def state(self) -> DeploymentState:
        """The deployment state as it stands in this run."""
        return self._recorder.state

    def plan(self, tables: Sequence[Table], *, is_partial: bool = False) -> TablePlan:
        """Read the catalog, take in what became of what was applied, and return what has to be done.

        Args:
            tables: the models.
            is_partial: whether other models were left out; then only these tables are looked at.

        Raises:
            InvalidModelError, CatalogReadError, RefusalGroup: as `Orchestrator.plan_tables`.
        """
        raise_all(self._pipeline.validator.model_violations(tables))
        applied = self._observe(tables, is_partial=is_partial)
        self._last_planned = self._pipeline.plan(
            self._models, self._observed, applied, self._recorder.state, is_partial=is_partial
        )
        self._forget_gone(applied)
        self._warn_of_rights(self._last_planned)
        return self._last_planned.plan

    def plan_revert(self, tables: Sequence[Table], *, is_partial: bool = False) -> TablePlan:
        """Return what brings the declared tables and schemas that drifted back to what was applied to them last.

        Args:
            tables: the models.
            is_partial: whether other models were left out; then only these tables are looked at.

        Raises:
            CatalogReadError, RefusalGroup: as `plan`.
        """
        self._records.keep_attempts()
        declared = {model.key for model in tables} | {one.key for one in self._pipeline.planner.schemas}
        found = self.detect(tables, is_partial=is_partial)
        drifted = [one for one in found if one.drift and one.name.key in declared]
        changed, schemas = drifted_tables(drifted), drifted_schemas(drifted)
        self._models = tuple(table.recorded.declared for table in changed)
        wanted = tuple(map(restored, changed))
        planner = self._pipeline.planner.restoring().with_schemas(tuple(map(restored, schemas)))
        self._policy = planner.policy
        self._last_planned = PlannedRun.of(
            lambda seen, _under_way: checked_plan(wanted, seen, lambda: planner.plan(wanted, seen)),
            self._observed,
            wanted=wanted,
            schemas=tuple(schema.recorded.declared for schema in schemas),
            drift=tuple(irreversible(wanted, changed)),
            replaced=tuple(filter(is_replaced, changed)),
        )
        self._warn_of_rights(self._last_planned)
        return self._last_planned.plan

    def detect(self, tables: Sequence[Table], *, is_partial: bool = False) -> tuple[DriftedResource, ...]:
        """Return the schemas and tables that are not as they were applied, with the authors of changes.

        Args and errors are those of `plan_revert`.
        """
        self._observe(tables, is_partial=is_partial)
        detector = self._pipeline.thorough_detector()
        return detector.detect(self._recorder.state, self._observed, now=utc_now())

    def fingerprints(self, plan: TablePlan, like: Fingerprints) -> Fingerprints:
        """Return the fingerprints of all that `plan` was made from, to be held against earlier ones.

        Raises:
            CatalogReadError, RefusalGroup, StatementError: a table that no model declares cannot be read.
        """
        basis = PlanBasis(models=self._models, observed=self._observed, state=self._loaded)
        return self._pipeline.fingerprints(plan, basis, like=like)

    def refusals(self, plan: TablePlan) -> tuple[RefusedError, ...]:
        """Return why the plan must not be applied: by the drift that it would undo, the rules, and the rows."""
        planned = self._planned
        return (*planned.drift, *self._pipeline.plan_refusals(plan, planned.wanted, self._observed))

    def accept(self, drifted: Sequence[DriftedResource]) -> None:
        """Record drift as applied.

        Args:
            drifted: schemas and tables, as `detect` returned them; what the policy ignores stays out.

        Raises:
            StaleStateError, UnsavedStateError: it could not be recorded.
        """
        adopt_drift(self._recorder, self._records, self._pipeline.versions, drifted)
        self._recorder.save()

    def synchronize(self, tables: Sequence[Table], *, is_partial: bool = False) -> DeploymentState:
        """Record what the catalog shows of everything that was applied; change nothing in it.

        Args:
            tables: the models.
            is_partial: whether other models were left out.

        Raises:
            CatalogReadError, RefusalGroup: a table cannot be read.
            StaleStateError, UnsavedStateError: it could not be recorded.
        """
        self._observe(tables, is_partial=is_partial)
        self._recorder.save()
        return self._recorder.state

    def apply(
        self,
        plan: TablePlan,
        on_outcome: OnTable = lambda _outcome: None,
        control: ApplyControl | None = None,
        *,
        reviewed: ReviewedPlan | None = None,
    ) -> tuple[TableOutcome, ...]:
        """Apply a validated plan, and record what it did. Ctrl-C and SIGTERM end it in an orderly way.

        Args:
            plan: what `plan` returned; may be empty, which still records tables that are as declared.
            on_outcome: called as each table is done, or as far as it is to be.
            control: what to see of it, and how to end it.
            reviewed: the plan file with the same statements.

        Raises:
            ApplyStoppedError: it was ended before all was done; what was done is recorded.
            ApplyFailedError: some schemas or tables failed; that is recorded too.
            UnreviewedStatementError: the statements are not those of the plan file; none of them ran.
            LockLost: the lock was lost on the way; the journal has what was done until then.
            UnrecordedApplyError: what was applied could not be recorded; tables may have failed besides.
            StoreError, UnsavedStateError: nothing was changed, because it could not be recorded.
        """
        control = control or ApplyControl()
        self._reporting.apply_started(plan)
        with stopped_by_signals(control.stop):
            ending = self._carried_out(plan, on_outcome, control, reviewed)
            if reviewed is not None:
                self._recorder.remember_plan(reviewed.checksum, is_whole=not ending.has_failed)
            verified, unverified = self._looked_at(plan, control.stop)
            unsaved = self._save(plan)
            ending = replace(
                ending,
                outcomes=tuple(replace(one, is_verified=one.name.key in verified) for one in ending.outcomes),
                is_stopped=control.stop.is_requested(),
                unsaved=unsaved,
                unverified="" if all(one.failure for one in of_tables(ending.outcomes)) else unverified,
            )
            self._report = self._reporting.ended(plan, ending, models=len(self._models))
        if control.stop.is_requested() and not ending.is_stopped:  # while the report was kept
            ending = replace(ending, is_stopped=True)
            self._report = self._reporting.report(plan, ending, models=len(self._models))
        ending.raise_failure()
        return of_tables(ending.outcomes)

    def unchanged(self) -> RunReport:
        """Return the report of a run that has nothing to do; no history keeps it."""
        return self._reporting.report(TablePlan(), Ending(), models=len(self._models))

    @property
    def _planned(self) -> PlannedRun:
        assert self._last_planned is not None, "nothing was planned yet"
        return self._last_planned

    def _carried_out(
        self, plan: TablePlan, on_outcome: OnTable, control: ApplyControl, reviewed: ReviewedPlan | None
    ) -> Ending:
        """Apply a plan; return what became of it so far."""
        compiled = self._pipeline.action_runner.compile(plan)
        if reviewed is not None:
            reviewed.require(compiled)
        schemas = self._planned.schemas
        attempted = attempted_by(plan, self._models, schemas, self._recorder.resources)
        if plan:
            self._lease.check()
            self._recorder.begin(
                [resource_key(action.table) for action in plan.table_actions()],
                attempted,
                plan_file=reviewed.checksum if reviewed else None,
            )
        recording = self._recording = OutcomeRecording(
            self._recorder, self._records, self._reporting, plan, self._models, schemas, attempted
        )

        def record(outcome: AnyOutcome) -> None:
            if is_of_schema(outcome):
                recording.schema(outcome)
            elif is_of_table(outcome):
                recording.table(outcome)
                on_outcome(outcome)

        try:
            outcomes = self._pipeline.action_runner.apply(
                compiled, record, control=control, check=self._lease.check, reread=self._statements_now
            )
        except ApplyFailedError as error:
            return Ending(outcomes=error.outcomes, has_failed=True)
        return Ending(outcomes=outcomes)

    def _looked_at(self, plan: TablePlan, stop: Stop) -> tuple[frozenset[str], str]:
        """Look at what was changed once more, unless nobody wants to wait for it; adopt what needed no statement.

        Returns:
            The tables that are as they were meant to be, by `QualifiedName.key`; and why none is, if that is so.
        """
        planned = {action.table.key for action in plan.table_actions()}
        touched = {str(schema).lower() for schema in (*plan.create_schemas, *plan.align_schemas)}
        wanted = self._planned.wanted
        untouched = [schema for schema in self._planned.schemas if schema.key not in touched]
        self._records.adopt(untouched, self._observed)
        changed = [model for model in wanted if model.qualified_name.key in planned]
        verified, unverified = self._confirm(changed, stop)
        looked_at = {model.qualified_name.key for model in wanted} - planned
        self._records.adopt(
            [model for model in self._models if model.qualified_name.key in looked_at], self._observed
        )
        if not stop.is_requested():
            refresh_replaced(self._recorder, self._pipeline.versions, self._planned.replaced)
        return verified, unverified

    def _save(self, plan: TablePlan) -> Unsaved | None:
        """Save what was found and done; return why that was not possible."""
        try:
            self._recorder.save(self._recording.applied if plan and self._recording else None)
        except (StaleStateError, UnsavedStateError) as error:
            return error
        return None

    def _warn_of_rights(self, planned: PlannedRun) -> None:
        for warning in self._pipeline.rights_warnings(planned):
            self._recorder.warn(warning)

    def _statements_now(self, table: QualifiedName) -> Sequence[str]:
        """Return what one table needs by a fresh look at it; see `Pipeline.statements_now`."""
        return self._pipeline.statements_now(table, self._planned)

    def _observe(self, tables: Sequence[Table], *, is_partial: bool) -> Mapping[str, Table]:
        """Read the models' tables, and take in what became of them.

        Returns:
            What was applied last, by `QualifiedName.key`.
        """
        self._models = resolved(tables)
        state = self._recorder.state
        self._observed = snapshot_with_former_names(
            self._pipeline.reader,
            with_recorded_grants(self._models, state),
            with_recorded_grants(self._pipeline.planner.schemas, state),
        )
        self._records.settle_renames(self._models, self._observed)
        applied = last_applied(self._recorder.state)
        keys = {model.qualified_name.key for model in self._models}
        keys |= {former.key for former in map(former_name, self._models) if former is not None}
        managed = None if is_partial else {resource_key(model.qualified_name) for model in self._models}
        self._records.synchronize(self._observed, managed=managed, policy=self._pipeline.planner.policy)
        if not is_partial:
            self._look_after([table for key, table in applied.items() if key not in keys])
        return applied

    def _forget_gone(self, applied: Mapping[str, Table]) -> None:
        """Forget tables that are to be dropped and are not there: an earlier run dropped them, or somebody did."""
        if not self._pipeline.planner.drops_tables:
            return
        declared = {model.qualified_name.key for model in self._models}
        for key, table in applied.items():
            is_gone = key in self._observed.tables and not self._observed.tables[key].exists
            if key not in declared and is_gone:
                self._recorder.resources.pop(resource_key(table.qualified_name), None)

    def _look_after(self, undeclared: Sequence[Table]) -> None:
        """Take in what became of tables that were applied once and are not declared any more.

        They are in nobody's way: one that cannot be read is a warning.
        """
        if not undeclared:
            return
        try:
            observed = self._pipeline.reader.snapshot(with_recorded_grants(undeclared, self._recorder.state))
        except _UNREADABLE as error:
            self._recorder.warn(
                f"tables that were applied once and are not declared any more cannot be read: {error} "
                f"{command('state rm')} forgets them."
            )
        else:
            self._records.synchronize(observed, managed=None, policy=self._pipeline.planner.policy)
            self._observed = self._observed.with_tables(observed)

    def _confirm(self, changed: Sequence[Table], stop: Stop) -> tuple[frozenset[str], str]:
        """Look at the changed tables once more: what became of them, and at which version.

        Returns:
            Those that are as they were meant to be, by `QualifiedName.key`, none once the run is to end; and why
            none is, if that is so.
        """
        recording = self._recording
        if not changed or not recording or self._pipeline.versions is None or stop.is_requested():
            return frozenset(), ""
        try:
            recording.note_versions(self._pipeline.versions)
            if stop.is_requested():
                return frozenset(), ""
            found = self._pipeline.reader.snapshot_directly(changed)
        except _UNREADABLE as error:  # what was applied is recorded all the same
            unverified = f"what was applied could not be looked at once more: {error}"
            self._recorder.warn(unverified)
            return frozenset(), unverified
        verified = recording.confirm(changed, found, self._policy)
        return verified, "" if verified else NOT_SHOWN_YET
