"""Drift reports of a project: made, kept in the history, rendered as a page."""

from __future__ import annotations

from delta_engine.deployment.stamps import new_id
from delta_engine.drift.drift_report import DriftReport, PastRun
from delta_engine.drift.history import DriftHistory
from delta_engine.errors import StatementError
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.orchestrate.project import Project
from delta_engine.report.pages import drift_html


class DriftReporting:
    """Makes the reports of one project.

    Args:
        project: settings and models.
        backend: what runs SQL.
        engine: the pipeline.
    """

    def __init__(self, project: Project, backend: Backend, engine: Orchestrator) -> None:
        self._project = project
        self._engine = engine
        table = project.settings.drift_history
        self._history = DriftHistory(backend.runner, backend.addressing.table(table)) if table else None

    def report(self) -> DriftReport:
        """Return a report; see `Orchestrator.drift_report`."""
        settings = self._project.settings
        return self._engine.drift_report(
            self._project.models,
            environment=settings.environment,
            is_partial=self._project.is_partial,
            not_ours=[table for table in (settings.drift_history, settings.run_history) if table is not None],
        )

    def record(self, report: DriftReport) -> None:
        """Add a report to the history; nothing without a `history_table`.

        Raises:
            StatementError: the platform refused it.
        """
        if self._history is not None:
            self._history.append(report, new_id())

    def html(self, report: DriftReport) -> str:
        """Return a report as a page, with the earlier ones as a chart."""
        return drift_html(report, self._past())

    def _past(self) -> tuple[PastRun, ...]:
        if self._history is None:
            return ()
        try:
            return self._history.recent(self._project.settings.environment)
        except StatementError:  # the report matters more than its chart
            return ()
