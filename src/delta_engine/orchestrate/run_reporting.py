"""Tells of a run: log records, spans, its report, and the history that keeps it. Decides nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from delta_engine.actions import TablePlan
from delta_engine.deployment.deployment import LockedRun
from delta_engine.deployment.stamps import utc_now
from delta_engine.errors import StatementError
from delta_engine.execute.outcomes import AnyOutcome, SchemaOutcome, TableOutcome
from delta_engine.orchestrate.run_endings import Ending
from delta_engine.report.run_history import RunHistory
from delta_engine.report.run_report import RunEnd, RunFrame, RunReport, run_report
from delta_engine.telemetry.context import in_context
from delta_engine.telemetry.logs import log
from delta_engine.telemetry.spans import OpenSpan, span


class RunReporting:
    """Tells of one locked run.

    Args:
        locked: the run.
        history: keeps its report; nobody does without it.
    """

    def __init__(self, locked: LockedRun, history: RunHistory | None) -> None:
        self._locked = locked
        self._history = history
        self._started_at = utc_now()
        self._span = OpenSpan()

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Give everything that happens inside the run's context, in logs and traces."""
        run = {
            "run_id": self._locked.recorder.run_id,
            "environment": self._locked.facts.environment.name,
            "operation": self._locked.operation,
        }
        with in_context(**run), span("delta_engine.run", **run) as self._span:
            log(logging.INFO, "run started")
            yield

    def apply_started(self, plan: TablePlan) -> None:
        """Tell that a plan is about to be applied."""
        log(logging.INFO, "apply started", tables=len(tuple(plan.table_actions())))

    def schema_done(self, outcome: SchemaOutcome) -> None:
        """Tell what became of a schema."""
        _log_outcome("schema", outcome)

    def table_done(self, outcome: TableOutcome) -> None:
        """Tell what became of a table."""
        _log_outcome("table", outcome)

    def ended(self, plan: TablePlan, ending: Ending, *, models: int) -> RunReport:
        """Make the report of a run whose plan was applied, and keep it where reports are kept.

        Args:
            plan: what was to be done.
            ending: what became of it.
            models: how many models there are.
        """
        report = self.report(plan, ending, models=models)
        self._span.add(status=report.status.value, **report.counts)
        facts = {"status": report.status.value, "seconds": report.seconds, **report.counts}
        log(logging.INFO, "run ended", **facts)
        if self._history is not None:
            try:
                self._history.append(report)
            except (StatementError, OSError) as error:  # what was applied is recorded all the same
                self._locked.recorder.warn(f"the run could not be added to its history: {error}")
        return report

    def report(self, plan: TablePlan, ending: Ending, *, models: int) -> RunReport:
        """Return the report of a run; nothing keeps it. Args are those of `ended`."""
        frame = RunFrame(
            run_id=self._locked.recorder.run_id,
            operation=self._locked.operation,
            facts=self._locked.facts,
            started_at=self._started_at,
            models=models,
        )
        end = RunEnd(
            at=utc_now(),
            warnings=tuple(self._locked.recorder.warnings),
            is_stopped=ending.is_stopped,
            unsaved=str(ending.unsaved or ""),
            unverified=ending.unverified,
        )
        return run_report(frame, plan, ending.outcomes, end=end)


def _log_outcome(what: str, outcome: AnyOutcome) -> None:
    facts: dict[str, object] = {
        what: str(outcome.name),
        "status": outcome.kind.value,
        "statements": outcome.statements,
    }
    failure = outcome.failure
    if failure is None:
        log(logging.INFO, f"{what} done", **facts)
    else:
        reason = {"error": failure.message, "error_class": failure.error_class, "sql": failure.sql or None}
        log(logging.ERROR, f"{what} not done", **facts, **reason)
