"""The use cases that hold the lock: sync, apply a plan file, revert, record statuses. They print nothing.

The command line, the job and Python callers call the same functions; a `RunView` shows the run and answers questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from delta_engine.actions import TablePlan
from delta_engine.deployment.document import DeploymentState
from delta_engine.errors import raise_all
from delta_engine.models import Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.environment import Environment
from delta_engine.orchestrate.locked_run import OpenRun, open_run, plan_revert, plan_sync, record_statuses
from delta_engine.orchestrate.plan_files import earlier_apply, reviewed_plan
from delta_engine.orchestrate.planning import PlannedRun
from delta_engine.orchestrate.project import Project
from delta_engine.orchestrate.views import RunView
from delta_engine.plan_files.document import PlanFile
from delta_engine.plan_files.staleness import ReviewedPlan
from delta_engine.report.run_report import RunEnd, RunReport
from delta_engine.telemetry.context import utc_now


def sync(
    environment: Environment, tables: Sequence[Table], view: RunView, *, is_partial: bool = False
) -> RunReport:
    """Bring the catalog to the models: lock, plan, show, ask, apply, record.

    Args:
        is_partial: whether other models were left out.

    Raises:
        DeltaEngineError: as `Orchestrator.sync_tables`, with all refusals.
    """
    with open_run(environment, "sync", view.notify) as run:
        with view.reading():
            planned = plan_sync(run, tables, is_partial=is_partial)
        return carry_out(run, planned, view)


def revert(
    environment: Environment, tables: Sequence[Table], view: RunView, *, is_partial: bool = False
) -> RunReport:
    """Bring drifted tables and schemas back to what was applied last. Args and errors are those of `sync`."""
    with open_run(environment, "drift --revert", view.notify) as run:
        with view.reading():
            planned = plan_revert(run, tables, is_partial=is_partial)
        return carry_out(run, planned, view)


def apply_file(
    environment: Environment, project: Project, file: PlanFile, path: Path, view: RunView
) -> RunReport:
    """Apply a plan file, unless it was applied before: lock, compare it with a new plan, show, ask, apply, record.

    Args:
        project: loaded with the file's options.
        path: of the file, for messages.

    Raises:
        StalePlanError: something changed since the file was written.
        DeltaEngineError: as `sync`.
    """
    with open_run(environment, "apply", view.notify) as run:
        applied = earlier_apply(file, run.loaded)
        if applied is not None and applied.is_whole:
            report = run.report(TablePlan(), (), RunEnd(at=utc_now()), models=0)
            view.show_already_applied(applied, report)
            return report
        with view.reading():
            planned = plan_sync(run, project.models, is_partial=project.is_partial)
            reviewed = reviewed_plan(file, path, project, run, planned)
        return carry_out(run, planned, view, reviewed)


def record_catalog(
    environment: Environment, tables: Sequence[Table], view: RunView, *, is_partial: bool = False
) -> DeploymentState:
    """Record the statuses of everything that was applied, as the catalog shows them. Changes no table."""
    with open_run(environment, "state sync", view.notify) as run, view.reading():
        return record_statuses(run, tables, is_partial=is_partial)


def carry_out(
    run: OpenRun, planned: PlannedRun, view: RunView, reviewed: ReviewedPlan | None = None
) -> RunReport:
    """Show the plan of a locked run, refuse it if it must not be applied, ask, apply it, and show the report."""
    view.show_plan(planned)
    raise_all(planned.refusals)
    if planned.plan:
        view.confirm()
    with view.applying(planned.plan) as shown:
        applied = apply_planned(run, planned, shown.on_outcome, shown.control, reviewed=reviewed)
    view.show_report(applied.report)
    applied.result()
    return applied.report
