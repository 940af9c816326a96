"""Applies a planned run: executes it, records what it did, reads it again, saves, and reports how it ended."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from delta_engine.actions.policy import Consent
from delta_engine.aspects.protection import is_protected
from delta_engine.backends.cancellation import Stop, stopped_by_signals
from delta_engine.deployment.document import ApplyActions
from delta_engine.deployment.errors import StaleStateError, UnsavedStateError
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.resources import with_version
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.drift.synchronizing import NOT_SHOWN_YET
from delta_engine.errors import RefusedError, StatementError
from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError, ApplyStoppedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import AnyOutcome, OnOutcome, TableOutcome, of_tables, undone_keys
from delta_engine.execute.statement_runner import StaleTableError
from delta_engine.models import QualifiedName, Table, by_resource, of_kind, resource_key
from delta_engine.models.parts import joined_grants
from delta_engine.orchestrate.last_changes import last_changes
from delta_engine.orchestrate.planning import as_applied
from delta_engine.orchestrate.recording import Recording
from delta_engine.orchestrate.runs import NOT_STARTED, UNREADABLE, Environment, OpenRun
from delta_engine.ownership.recorded import Status, table_record
from delta_engine.plan_files.document import PlanFile
from delta_engine.plan_files.staleness import require_statements
from delta_engine.report.run_report import RunEnd, RunReport
from delta_engine.state.catalog_reader import bare_model, direct_snapshot_by, under_former_name
from delta_engine.state.states import ABSENT, CatalogState
from delta_engine.state.table_queries import TableVersionReader
from delta_engine.telemetry.context import utc_now
from delta_engine.telemetry.logs import log

_STOPPED: Final = "the run was stopped before it read the table again"

Unsaved: TypeAlias = StaleStateError | UnsavedStateError
"""Why a deployment state was not saved."""


class UnrecordedApplyError(ApplyFailedError):
    """What was applied could not be recorded; schemas and tables may have failed besides.

    Args:
        outcomes: of every schema and table of the plan.
        reason: why it could not be recorded.
        failure: the failure of the apply itself; None if everything was applied.
    """

    topic = "unrecorded-apply"

    def __init__(
        self,
        outcomes: tuple[AnyOutcome, ...],
        *,
        reason: Unsaved,
        failure: ApplyFailedError | None,
    ) -> None:
        self.reason = reason
        self.failure = failure
        super().__init__(outcomes)

    def _message(self) -> str:
        return "\n".join(str(problem) for problem in (self.failure, self.reason) if problem is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedRun:
    """How an apply ended.

    Args:
        outcomes: of every schema and table of the plan.
        is_stopped: whether the user stopped the run.
        unsaved: why it could not be recorded; None if it was.
    """

    outcomes: tuple[AnyOutcome, ...]
    report: RunReport
    is_stopped: bool = False
    unsaved: Unsaved | None = None

    def result(self) -> tuple[TableOutcome, ...]:
        """Return the outcomes of all tables.

        Raises:
            UnrecordedApplyError: the run could not be recorded.
            ApplyStoppedError: the user stopped the run, possibly after everything was done.
            ApplyFailedError: a schema or a table failed.
        """
        failure: ApplyFailedError | None = None
        if self.is_stopped:
            failure = ApplyStoppedError(self.outcomes)
        elif undone_keys(self.outcomes):
            failure = ApplyFailedError(self.outcomes)
        if self.unsaved is not None:
            raise UnrecordedApplyError(self.outcomes, reason=self.unsaved, failure=failure) from self.unsaved
        if failure is not None:
            raise failure
        return of_tables(self.outcomes)


def apply_planned(
    run: OpenRun,
    planned: PlannedRun,
    on_outcome: OnOutcome = lambda _outcome: None,
    control: ApplyControl | None = None,
    *,
    reviewed: PlanFile | None = None,
) -> AppliedRun:
    """Apply a validated plan and record what it did. Ctrl-C and SIGTERM stop it in an orderly way.

    An empty plan still records the tables that match their models.

    Args:
        on_outcome: called as each securable is done or stopped.
        control: shows and stops the apply.
        reviewed: the plan file with the same statements.

    Raises:
        MissingDependencyError, SparkStartError: what runs statements does not start; none of them ran.
        UnreviewedStatementError: the statements are not those of the plan file; none of them ran.
        LockLost: the lock was lost during the run; the journal has what was done until then.
        StoreError, UnsavedStateError: nothing was changed, because it could not be recorded.
    """
    control = control or ApplyControl()
    if planned.plan:
        run.environment.start()
    log(logging.INFO, "apply started", tables=len(tuple(planned.plan.table_actions())))
    with stopped_by_signals(control.stop):
        recording = _recording(run, planned, on_outcome)
        _begin(run, planned, recording, reviewed)
        outcomes = _executed(run, planned, recording, control)
        _remember(run, planned, outcomes, reviewed)
        outcomes, unverified = _verified(run, recording, outcomes, control.stop)
        _record_unchanged(run, planned, recording, outcomes, control.stop)
        unsaved = _save(run, recording.touched if planned.plan else None)
        ended = partial(_ended, run, planned, outcomes, unsaved=unsaved, unverified=unverified)
        applied = ended(is_stopped=control.stop.is_requested())
        _keep(run, applied.report)
    if control.stop.is_requested() and not applied.is_stopped:  # while the report was kept
        return ended(is_stopped=True)
    return applied


def _ended(
    run: OpenRun,
    planned: PlannedRun,
    outcomes: tuple[AnyOutcome, ...],
    *,
    unsaved: Unsaved | None,
    unverified: str,
    is_stopped: bool,
) -> AppliedRun:
    """Return how an apply ended, with its report."""
    undone = undone_keys(outcomes)
    end = RunEnd(
        at=utc_now(),
        is_stopped=is_stopped,
        unsaved=str(unsaved or ""),
        unverified=unverified,
        adopted=[name for name in planned.adopted if resource_key(name) not in undone],
        consents=_used_consents(planned, outcomes),
    )
    report = run.report(planned, outcomes, end)
    return AppliedRun(outcomes=outcomes, report=report, is_stopped=is_stopped, unsaved=unsaved)


def _executed(
    run: OpenRun, planned: PlannedRun, recording: Recording, control: ApplyControl
) -> tuple[AnyOutcome, ...]:
    """Execute a plan; an injected executor gets the plan itself, if there is something to do."""
    executor = run.environment.action_runner
    try:
        if isinstance(executor, ActionRunner):
            return executor.apply(
                planned.compiled,
                recording.record,
                control=control,
                check=run.lease.check,
                reread=lambda table: _statements_now(run.environment, planned, table),
                principal=run.recorder.who,
            )
        outcomes = tuple(executor.apply(planned.plan) or ()) if planned.plan else ()
    except ApplyFailedError as error:
        return error.outcomes
    for outcome in outcomes:
        recording.record(outcome)
    return outcomes


def _remember(
    run: OpenRun, planned: PlannedRun, outcomes: Sequence[AnyOutcome], reviewed: PlanFile | None
) -> None:
    """Remember the plan file that was applied, and the consents that were used."""
    if reviewed is not None:
        run.recorder.remember_plan(reviewed.checksum, is_whole=not undone_keys(outcomes))
    run.recorder.remember_consents(_used_consents(planned, outcomes), planned.intent.policy.consents)


def _used_consents(planned: PlannedRun, outcomes: Sequence[AnyOutcome]) -> list[Consent]:
    undone = undone_keys(outcomes)
    return [consent for consent in planned.consents if resource_key(consent.securable) not in undone]


def _recording(run: OpenRun, planned: PlannedRun, on_outcome: OnOutcome) -> Recording:
    """Prepare to record what becomes of each table."""
    changes = last_changes(
        planned.plan,
        run.recorder.resources,
        run.environment.versions,
        run=run.recorder.run_id,
        at=run.recorder.now(),
        undoes=planned.intent.undo.run if planned.intent.undo else None,
    )
    return Recording(run.recorder, planned, changes, on_outcome)


def _begin(
    run: OpenRun,
    planned: PlannedRun,
    recording: Recording,
    reviewed: PlanFile | None,
) -> None:
    """Journal what is about to be applied, unless it is nothing."""
    if reviewed is not None:
        require_statements(reviewed.statements, planned.compiled)
    if planned.plan:
        run.lease.check()
        run.recorder.begin(
            [resource_key(action.table) for action in planned.plan.table_actions()],
            recording.attempted,
            recording.changes,
            plan_file=reviewed.checksum if reviewed else None,
        )


def _verified(
    run: OpenRun, recording: Recording, outcomes: Sequence[AnyOutcome], stop: Stop
) -> tuple[tuple[AnyOutcome, ...], str]:
    """Return the outcomes, verified by a second read, and why none of a finished table is."""
    verified, unverified = _read_again(run, recording, stop)
    return tuple(
        replace(outcome, is_verified=resource_key(outcome.name) in verified) for outcome in outcomes
    ), "" if all(outcome.failure for outcome in of_tables(outcomes)) else unverified


def _read_again(run: OpenRun, recording: Recording, stop: Stop) -> tuple[frozenset[str], str]:
    """Read the tables again that were changed completely: their versions, and whether they are as planned.

    Returns:
        The keys of the resources that are as planned, none once the run is stopped; and why none is.
    """
    changed, versions = recording.completed(), run.environment.versions
    if not changed or versions is None:
        return frozenset(), ""
    try:
        if not stop.is_requested():
            recording.note_versions(versions)
        if stop.is_requested():
            recording.doubt(changed, _STOPPED)
            return frozenset(), ""
        reread = direct_snapshot_by(run.environment.reader, changed)
    except UNREADABLE as error:  # what was applied is recorded all the same
        unverified = f"the second read after the apply failed: {error}"
        recording.doubt(changed, unverified)
        run.recorder.warn(unverified)
        return frozenset(), unverified
    verified = recording.confirm(changed, reread)
    statuses = {run.recorder.resources[resource_key(model.qualified_name)].status for model in changed}
    return verified, NOT_SHOWN_YET if not verified and Status.UNKNOWN in statuses else ""


def _record_unchanged(
    run: OpenRun, planned: PlannedRun, recording: Recording, outcomes: Sequence[AnyOutcome], stop: Stop
) -> None:
    """Record the securables that needed no statement, and the new ids of replaced tables that were aligned."""
    keys = by_resource(planned.intent.models).keys() - set(map(resource_key, planned.plan.changed_names()))
    unchanged = [model for model in planned.models if resource_key(model.qualified_name) in keys]
    versions = None if stop.is_requested() else run.environment.versions
    new = recording.with_new_version(of_kind(Table, unchanged)) if versions is not None else []
    versions_read = (
        versions.read_versions(new, with_id={name.key for name in new}) if versions and new else {}
    )
    recording.adopt(unchanged, versions_read)
    undone = undone_keys(outcomes)
    replaced = [name for name in planned.replaced if resource_key(name) not in undone]
    _refresh_replaced(run.recorder, versions, planned.basis.observed, replaced)


def _refresh_replaced(
    recorder: RunRecorder,
    versions: TableVersionReader | None,
    observed: CatalogState,
    replaced: Sequence[QualifiedName],
) -> None:
    """Record the new ids and creation times of replaced tables. Without a reader of versions, the recorded ids stay."""
    if versions is None or not replaced:
        return
    versions_read = versions.read_versions(replaced, with_id={name.key for name in replaced})
    for name in replaced:
        state = observed.table(name)
        if name.key in versions_read or is_protected(state):  # whose history is hidden
            record = table_record(recorder.resources, name)
            assert record is not None
            record = with_version(record, versions_read.get(name.key), state.audit.created_at)
            recorder.resources[record.key] = replace(record, accepted=())
            recorder.warn(
                f"{name} was replaced outside the engine: from now on, the new table is the recorded one"
            )


def _save(run: OpenRun, applied: ApplyActions | None) -> Unsaved | None:
    """Save what was found and done; return why that failed."""
    try:
        run.recorder.save(applied)
    except (StaleStateError, UnsavedStateError) as error:
        return error
    return None


def _keep(run: OpenRun, report: RunReport) -> None:
    """Add the report to the span, the log and the history of runs."""
    run.span.add(status=report.status.value, **report.counts)
    log(logging.INFO, "run ended", status=report.status.value, seconds=report.seconds, **report.counts)
    if run.environment.run_history is not None:
        try:
            run.environment.run_history.append(report)
        except (*NOT_STARTED, StatementError, OSError) as error:  # what was applied is recorded all the same
            run.recorder.warn(f"the run could not be added to its history: {error}")


def _statements_now(environment: Environment, planned: PlannedRun, table: QualifiedName) -> Sequence[str]:
    """Read one table again and return the lasting statements that it needs now, by the rules and records of the plan.

    Raises:
        StatementError: it cannot be read, or must not be managed any more.
    """
    models = [model for model in planned.intent.tables if model.qualified_name.key == table.key]
    observed = planned.snapshot.tables.get(table.key, ABSENT)
    former = observed.former_name
    under_way = next((align for align in planned.plan.align_tables if align.table.key == table.key), None)
    asked = [
        replace(table, grants=joined_grants(table.grants, observed.grants))
        for table in (
            *(models or [bare_model(table)]),
            *(under_former_name(model, former) for model in models if former is not None),
        )
    ]
    try:
        fresh = _found_under(table, former, direct_snapshot_by(environment.reader, asked))
        snapshot = as_applied(planned.snapshot.with_tables(fresh), planned.intent, planned.basis)
        plan = planned.intent.plan(snapshot, under_way)
    except RefusedError as error:
        raise StaleTableError(f"reading it again failed: {error}", sql="", error_class=None) from error
    return environment.compiled(plan).lasting_sql_of(table)


def _found_under(table: QualifiedName, former: QualifiedName | None, fresh: CatalogState) -> CatalogState:
    """Return a snapshot of one table, found under its former name as long as it has that name."""
    state = fresh.table(table)
    if former is not None and not state.exists and fresh.table(former).exists:
        state = replace(fresh.table(former), former_name=former)
    return replace(fresh, tables={table.key: state})
