"""A run that holds the lock: what it may do before it applies anything, or instead."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from delta_engine.actions import TablePlan
from delta_engine.deployment.deployment import LockedRun
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.recorder import Notify, RunRecorder
from delta_engine.deployment.resources import resource_key
from delta_engine.drift.drifted_resources import DriftedResource
from delta_engine.errors import raise_all
from delta_engine.execute.outcomes import AnyOutcome
from delta_engine.models import Table
from delta_engine.orchestrate.environment import Environment
from delta_engine.orchestrate.observing import Observation, observe
from delta_engine.orchestrate.planning import PlannedRun, draft_revert, draft_sync, drift_detector, judged
from delta_engine.orchestrate.records import adopt_drift
from delta_engine.report.run_report import RunEnd, RunFrame, RunReport, run_report
from delta_engine.telemetry.context import in_context, utc_now
from delta_engine.telemetry.logs import log
from delta_engine.telemetry.spans import OpenSpan, span


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run that holds the lock of an environment.

    Args:
        loaded: the deployment state as the run found it, with the journals of killed runs; serial 0 if there was none.
        started_at: when it had the lock, UTC.
    """

    environment: Environment
    locked: LockedRun
    loaded: DeploymentState
    started_at: datetime
    span: OpenSpan

    @property
    def recorder(self) -> RunRecorder:
        """What keeps the deployment state of the run."""
        return self.locked.recorder

    def report(
        self,
        plan: TablePlan,
        outcomes: Sequence[AnyOutcome],
        end: RunEnd,
        *,
        models: int,
    ) -> RunReport:
        """Return the report of the run, with its warnings."""
        frame = RunFrame(
            run_id=self.recorder.run_id,
            operation=self.locked.operation,
            facts=self.locked.facts,
            started_at=self.started_at,
            models=models,
        )
        end = replace(end, warnings=tuple(self.recorder.warnings))
        return run_report(frame, plan, outcomes, end=end)


@contextmanager
def open_run(
    environment: Environment, operation: str, notify: Notify = lambda _note: None
) -> Iterator[OpenRun]:
    """Hold the environment's lock for a run; logs and traces name the run.

    Args:
        operation: the command, shown to runs that wait for the lock.
        notify: gets notes for the user.

    Raises:
        LockHeld: another run holds the lock.
        StoreError, RefusedError: the deployment state cannot be used.
    """
    with environment.deployment.locked(operation, notify) as locked:
        started_at = utc_now()
        names = {
            "run_id": locked.recorder.run_id,
            "environment": locked.facts.environment.name,
            "operation": operation,
        }
        with in_context(**names), span("delta_engine.run", **names) as opened:
            log(logging.INFO, "run started")
            yield OpenRun(
                environment=environment,
                locked=locked,
                loaded=locked.recorder.state,
                started_at=started_at,
                span=opened,
            )


def plan_sync(run: OpenRun, tables: Sequence[Table], *, is_partial: bool = False) -> PlannedRun:
    """Read the catalog, record the statuses that it shows, and return what has to be done.

    Args:
        is_partial: whether other models were left out; then only these tables are read.

    Raises:
        InvalidModelError, CatalogReadError, RefusalGroup: models are refused, or tables cannot be read.
    """
    raise_all(run.environment.validator.model_violations(tables))
    basis = _observe(run, tables, is_partial=is_partial)
    draft = draft_sync(run.environment, basis)
    _forget_dropped(run, basis)
    return _judged(run, draft)


def plan_revert(run: OpenRun, tables: Sequence[Table], *, is_partial: bool = False) -> PlannedRun:
    """Return what brings the declared tables and schemas that drifted back to what was applied to them last.

    Args and errors are those of `plan_sync`.
    """
    declared = {model.key for model in tables} | {one.key for one in run.environment.planner.schemas}
    basis, found = _detect(run, tables, is_partial=is_partial)
    drifted = [one for one in found if one.drift and one.name.key in declared]
    return _judged(run, draft_revert(run.environment, basis, drifted))


def find_drift(
    run: OpenRun, tables: Sequence[Table], *, is_partial: bool = False
) -> tuple[DriftedResource, ...]:
    """Return the schemas and tables that differ from what was applied, with the authors of the changes.

    Args and errors are those of `plan_sync`.
    """
    return _detect(run, tables, is_partial=is_partial)[1]


def record_accepted(run: OpenRun, drifted: Sequence[DriftedResource]) -> None:
    """Record drift as applied, without what the policy ignores.

    Raises:
        StaleStateError, UnsavedStateError: it could not be recorded.
    """
    adopt_drift(run.recorder, run.environment.versions, drifted)
    run.recorder.save()


def record_statuses(run: OpenRun, tables: Sequence[Table], *, is_partial: bool = False) -> DeploymentState:
    """Record what the catalog shows of everything that was applied; changes nothing in the catalog.

    Raises:
        CatalogReadError, RefusalGroup: a table cannot be read.
        StaleStateError, UnsavedStateError: it could not be recorded.
    """
    _observe(run, tables, is_partial=is_partial)
    run.recorder.save()
    return run.recorder.state


def _observe(run: OpenRun, tables: Sequence[Table], *, is_partial: bool) -> Observation:
    """Read the tables and record the statuses that are found."""
    basis = observe(run.environment, tables, run.loaded, is_partial=is_partial)
    if basis.state is not None:
        run.recorder.state = basis.state
    for warning in basis.warnings:
        run.recorder.warn(warning)
    return basis


def _detect(
    run: OpenRun, tables: Sequence[Table], *, is_partial: bool
) -> tuple[Observation, tuple[DriftedResource, ...]]:
    basis = _observe(run, tables, is_partial=is_partial)
    detector = drift_detector(run.environment)
    return basis, detector.detect(run.recorder.state, basis.observed, now=utc_now())


def _judged(run: OpenRun, draft: PlannedRun) -> PlannedRun:
    planned = judged(run.environment, draft)
    for warning in planned.warnings:
        run.recorder.warn(warning)
    return planned


def _forget_dropped(run: OpenRun, basis: Observation) -> None:
    """Remove the records of tables to be dropped that do not exist any more."""
    if not run.environment.planner.drops_tables:
        return
    declared = {model.key for model in basis.models}
    for key, table in basis.applied.items():
        is_gone = key in basis.observed.tables and not basis.observed.tables[key].exists
        if key not in declared and is_gone:
            run.recorder.resources.pop(resource_key(table.qualified_name), None)
