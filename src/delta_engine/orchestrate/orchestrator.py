"""The use cases that hold the lock, as functions. They print nothing.

The command line, the job and the Python API call the same functions; a `RunView` shows the run and answers questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from delta_engine.actions import TablePlan
from delta_engine.drift.absences import without_hidden
from delta_engine.drift.drifted_resources import ComparedResource
from delta_engine.drift.observation import Observation
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.drift.synchronizing import is_accepted_deletion
from delta_engine.errors import raise_all
from delta_engine.execute.outcomes import TableOutcome
from delta_engine.models import Securable, by_resource, resource_key
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.judging import judged
from delta_engine.orchestrate.observing import detected_drift, observe_locked
from delta_engine.orchestrate.planning import draft_revert, draft_sync, plan_unlocked
from delta_engine.orchestrate.reviewed_plans import earlier_apply, require_fresh
from delta_engine.orchestrate.runs import Environment, OpenRun, RunView, open_run
from delta_engine.orchestrate.undoing import draft_undo, plan_undo, undo_note
from delta_engine.plan_files.document import Options, PlanFile
from delta_engine.report.run_report import RunEnd, RunReport
from delta_engine.telemetry.context import utc_now

if TYPE_CHECKING:
    from delta_engine.orchestrate.project import Project


class Orchestrator(Environment):
    """An environment that plans and syncs, made of parts that the caller injects.

    Without a `deployment`, it knows only what it applied itself since it was made: parts of a table that other
    processes applied are unmanaged, and no change is drift.
    """

    __slots__ = ()

    def sync_tables(self, models: Sequence[Securable]) -> tuple[TableOutcome, ...]:
        """Bring the catalog to the models; return the outcome of each table that needed a change.

        Raises:
            InvalidModelError: a model breaks a rule; nothing was read or changed. First violation wins.
            LockHeld: another run holds the lock.
            CatalogReadError: a table cannot be read; nothing was changed.
            DriftRefusal: it would revert a change made outside the engine; nothing was changed.
            UnsafePlanError: the plan breaks a rule; nothing was changed. First violation wins.
            ApplyStoppedError: Ctrl-C or SIGTERM stopped it; what was done is recorded.
            ApplyFailedError: some tables failed; all others were applied. One kind of it, `UnrecordedApplyError`,
                says that the result could not be recorded.
        """
        self.validator.validate_models(models)
        with open_run(self, "sync") as run:
            planned = plan_sync(run, models)
            for refusal in planned.refusals:
                raise refusal
            return apply_planned(run, planned).result()

    def plan_tables(self, models: Sequence[Securable]) -> TablePlan:
        """Return what has to be done, without the verdict of the plan rules; changes nothing and takes no lock.

        Raises:
            InvalidModelError, CatalogReadError: as `sync_tables` does.
            RefusalGroup: several of them; unlike `sync_tables`, all are collected.
        """
        raise_all(self.validator.model_violations(models))
        return plan_unlocked(self, models).plan


def sync(
    environment: Environment, models: Sequence[Securable], view: RunView, *, is_partial: bool = False
) -> RunReport:
    """Bring the catalog to the models: lock, plan, show, ask, apply, record; raises as `Orchestrator.sync_tables`.

    Args:
        models: those that pass the model rules, as those of a project do.
        is_partial: whether other models were left out; then only these are read.
    """
    with open_run(environment, "sync", view.notify) as run:
        with view.reading():
            planned = plan_sync(run, models, is_partial=is_partial)
        return _carry_out(run, planned, view)


def revert(
    environment: Environment, models: Sequence[Securable], view: RunView, *, is_partial: bool = False
) -> RunReport:
    """Bring drifted securables back to what was applied last."""
    with open_run(environment, "drift --revert", view.notify) as run:
        with view.reading():
            planned = plan_revert(run, models, is_partial=is_partial)
        return _carry_out(run, planned, view)


def undo(environment: Environment, options: Options, view: RunView) -> RunReport:
    """Bring back what was declared before a run: lock, plan, show, ask, apply, record."""
    with open_run(environment, "undo", view.notify) as run:
        with view.reading():
            planned = _recorded_plan(run, plan_undo(run.environment, run.loaded, options))
        view.notify(undo_note(planned))
        return _carry_out(run, planned, view)


def apply_file(
    environment: Environment, project: Project, file: PlanFile, path: Path | None, view: RunView
) -> RunReport:
    """Apply a plan file, unless it was applied before: lock, compare it with a new plan, show, ask, apply, record.

    Args:
        project: loaded with the file's options.
        path: of the file, for messages; None for a plan that was never written.

    Raises:
        StalePlanError: something changed since the file was written.
    """
    with open_run(environment, "apply", view.notify) as run:
        applied = earlier_apply(file, run.loaded)
        if applied is not None and applied.is_whole:
            report = run.report(PlannedRun(), (), RunEnd(at=utc_now()))
            view.show_already_applied(applied, report)
            return report
        with view.reading():
            if file.options.undoes:
                draft = _recorded_plan(run, draft_undo(run.environment, run.loaded, file.options))
            else:
                draft = _drafted_sync(run, project.synced, is_partial=project.is_partial)
            require_fresh(file, path, project, run, draft)  # before tables are asked
            planned = _judged(run, draft)
        return _carry_out(run, planned, view, file)


def plan_sync(run: OpenRun, models: Sequence[Securable], *, is_partial: bool = False) -> PlannedRun:
    """Read the catalog, record the statuses that it shows, and return what has to be done.

    Args:
        models: those that pass the model rules.

    Raises:
        InvalidModelError, CatalogReadError, RefusalGroup: models do not fit what exists, or tables cannot be read.
    """
    return _judged(run, _drafted_sync(run, models, is_partial=is_partial))


def plan_revert(run: OpenRun, models: Sequence[Securable], *, is_partial: bool = False) -> PlannedRun:
    """Return what brings the declared securables that drifted back to what was applied to them last.

    Without those that may be hidden, of which it warns, unless the tables were selected.
    """
    declared = by_resource(models).keys()
    basis, resources = _detected(run, models, is_partial=is_partial)
    drifted = [
        resource for resource in resources if resource.drift and resource_key(resource.model_name) in declared
    ]
    if not is_partial:
        drifted = without_hidden(drifted, run.recorder.warn)
    return _judged(run, draft_revert(run.environment, basis, drifted))


def find_drift(
    run: OpenRun, models: Sequence[Securable], *, is_partial: bool = False
) -> tuple[ComparedResource, ...]:
    """Return the securables that differ from what was applied, with the authors of the changes.

    A view under whose name there is a table now is a deleted one.

    Raises:
        CatalogReadError, RefusalGroup: something else that is declared cannot be read.
    """
    basis, resources = _detected(run, models, is_partial=is_partial, tolerates_unreadable=True)
    deleted = {f"view {key}" for key, state in basis.observed.views.items() if not state.exists}
    raise_all(refusal for refusal in basis.unreadable if (refusal.securable or "").lower() not in deleted)
    return resources


def _carry_out(
    run: OpenRun, planned: PlannedRun, view: RunView, reviewed: PlanFile | None = None
) -> RunReport:
    """Show the plan of a locked run, refuse it if it must not be applied, ask, apply it, and show the report."""
    view.show_plan(planned)
    raise_all(planned.refusals)
    if planned.plan:
        view.confirm()
        with view.starting():
            run.environment.start()
    with view.applying(planned.plan) as (control, on_outcome):
        applied = apply_planned(run, planned, on_outcome, control, reviewed=reviewed)
    view.show_report(applied.report)
    applied.result()
    return applied.report


def _detected(
    run: OpenRun, models: Sequence[Securable], *, is_partial: bool, tolerates_unreadable: bool = False
) -> tuple[Observation, tuple[ComparedResource, ...]]:
    basis = observe_locked(run, models, is_partial=is_partial, tolerates_unreadable=tolerates_unreadable)
    return basis, detected_drift(run.environment, basis, now=utc_now())


def _recorded_plan(run: OpenRun, planned: PlannedRun) -> PlannedRun:
    """Record the statuses that the plan of an undo was made from, and its warnings."""
    if planned.basis.state is not None:
        run.recorder.state = planned.basis.state
    for warning in planned.warnings:
        run.recorder.warn(warning)
    return planned


def _drafted_sync(run: OpenRun, models: Sequence[Securable], *, is_partial: bool) -> PlannedRun:
    basis = observe_locked(run, models, is_partial=is_partial, adopts=True)
    draft = draft_sync(run.environment, basis)
    if not is_partial:
        _forget_deleted(run, basis)
    return draft


def _judged(run: OpenRun, draft: PlannedRun) -> PlannedRun:
    planned = judged(run.environment, draft)
    for warning in planned.judged_warnings:  # `observe_locked` showed the others
        run.recorder.warn(warning)
    return planned


def _forget_deleted(run: OpenRun, basis: Observation) -> None:
    """Remove the records of undeclared resources that are gone: this engine dropped them, or it was accepted."""
    planner, resources = run.environment.planner, run.recorder.resources
    declared = by_resource(basis.models).keys()
    for key, record in list(resources.items()):
        state = basis.observed.of(record.name)
        if key in declared or (state is not None and state.exists):
            continue
        is_dropped = planner.policy.drops(record.kind) and record.applied is not None and state is not None
        if is_accepted_deletion(record) or is_dropped:
            resources.pop(key)
