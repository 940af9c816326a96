"""The tasks of the job: what the notebooks call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import DeltaEngineError, raise_all
from delta_engine.orchestrate.deployments import UNKNOWN_ORIGIN, RunOrigin, open_deployment, open_report_files
from delta_engine.orchestrate.drift_reports import drift_page, record_drift, report_drift
from delta_engine.orchestrate.opening import open_backend, open_environment
from delta_engine.orchestrate.orchestrator import sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.project import Project, load_project
from delta_engine.orchestrate.runs import Environment, RunView
from delta_engine.report.drift_text import summary
from delta_engine.report.json_documents import JobSummary, drift_summary, pending_summary, report_json
from delta_engine.report.notebook_html import plan_html
from delta_engine.report.plan_text import adopted_lines, allowed_lines
from delta_engine.report.run_report import RunReport, RunStatus
from delta_engine.telemetry.context import in_context
from delta_engine.tools.doctor.examination import examine
from delta_engine.tools.doctor.report import described, doctor_html, doctor_summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "DoctorError",
    "DriftFoundError",
    "DriftTaskResult",
    "JobSummary",
    "RunOrigin",
    "SyncTaskResult",
    "run_doctor",
    "run_drift_report",
    "run_sync",
    "words",
]


MOST_BYTES_OF_A_NOTEBOOK: Final = 4_000_000
"""The Jobs API returns the first 5 MB of a notebook's exit value (docs.databricks.com: "NotebookOutput")."""

_LONGEST_MESSAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncTaskResult:
    """What the sync task did, or, in a dry run, would do.

    Args:
        values: the task values: counts of tables by outcome, or by pending change.
        exit_value: what the notebook exits with: the run's report, or the summary of a dry run.
        is_report_due: whether anything was changed, so that a drift report is due.
    """

    values: Mapping[str, int]
    exit_value: str
    is_report_due: bool = False


def run_sync(
    *,
    environment: str,
    conf_dir: str,
    spark: SparkSession,
    allow: Sequence[str] = (),
    tables: Sequence[str] = (),
    dry_run: bool = False,
    origin: RunOrigin = UNKNOWN_ORIGIN,
    show: Callable[[str], object] = lambda _html: None,
) -> SyncTaskResult:
    """Lock, plan, validate, apply and record.

    Args:
        allow: destructive kinds to allow in this run, such as `drop_column:silver.orders`.
        tables: globs that select models; all by default.
        dry_run: stop before applying; takes no lock and writes nothing.
        show: gets the plan as HTML, also if it is refused.

    Raises:
        DeltaEngineError: something was refused, the environment is locked (`LockHeld`), or tables failed
            (`ApplyFailedError`).
    """
    with in_context(environment=environment):
        project = load_project(Path(conf_dir), environment, tables=tables, allow=allow)
        opened = _opened(project, spark, origin)
        if dry_run:
            planned = plan_unlocked(opened, project.synced, is_partial=project.is_partial)
            show(_plan_html(planned, environment))
            for warning in planned.warnings:
                print(warning)
            raise_all(planned.refusals)
            pending = pending_summary("sync", environment, planned.plan)
            return SyncTaskResult(values=pending.counts, exit_value=pending.as_json())
        report = sync(
            opened,
            project.synced,
            _TaskView(environment=environment, show=show),
            is_partial=project.is_partial,
        )
        return SyncTaskResult(
            values=report.counts,
            exit_value=short_run_json(report),
            is_report_due=report.counts["statements"] > 0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _TaskView(RunView):
    """Shows a run in a notebook's output. A task asks nothing: deploying the job is the consent."""

    environment: str
    show: Callable[[str], object]

    def notify(self, note: str) -> None:
        print(note)

    def show_plan(self, planned: PlannedRun) -> None:
        self.show(_plan_html(planned, self.environment))

    def show_report(self, report: RunReport) -> None:
        if report.status not in (RunStatus.DONE, RunStatus.UNCHANGED):
            print(short_run_json(report))  # a notebook that fails exits without a value


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftTaskResult:
    """What the drift task found.

    Args:
        summary: the counts, for the task's exit value.
        values: the task values: the counts, and `max_severity` (`none` without drift).
        html: the report as a page.
        files: where the page and its JSON were written.
        failure: why the task has to fail; None if it has not.
    """

    summary: JobSummary
    values: Mapping[str, int | str]
    html: str
    files: tuple[str, ...] = ()
    failure: str | None = None

    def fail_if_severe(self) -> None:
        """Fail the task at or above the severity that `drift.fail_on` names, so that the job notifies.

        Raises:
            DriftFoundError: there is such drift.
        """
        if self.failure is not None:
            raise DriftFoundError(self.failure)


class DriftFoundError(DeltaEngineError):
    """Drift reached the severity that `drift.fail_on` names."""

    topic = "drift-found"


def run_drift_report(
    *,
    environment: str,
    conf_dir: str,
    spark: SparkSession,
    tables: Sequence[str] = (),
    record: bool = False,
) -> DriftTaskResult:
    """Report what changed outside the engine since it was applied; change no table.

    Args:
        tables: globs that select models; all by default.
        record: write the report beside the deployment state, and add it to the history table.

    Raises:
        DeltaEngineError: a configuration or a table cannot be read, or the report could not be kept.
    """
    with in_context(environment=environment):
        project = load_project(Path(conf_dir), environment, tables=tables)
        settings, opened = project.settings, _opened(project, spark)
        report = report_drift(opened, project.synced, is_partial=project.is_partial)
        if record:
            record_drift(opened, report)
        html = drift_page(opened, report)
        files: tuple[str, ...] = ()
        if record:
            place = open_report_files(settings)
            files = (
                place.write(f"{environment}.drift.html", html.encode()),
                place.write(f"{environment}.drift.json", report_json(report).encode()),
            )
        is_severe = settings.fail_drift_on is not None and report.reaches(settings.fail_drift_on)
        place_note = f"; the report is in {files[0]}" if files else ""
        drifted = drift_summary(report)
        worst = report.max_severity.value if report.max_severity else "none"
        return DriftTaskResult(
            summary=drifted,
            values={**drifted.counts, "max_severity": worst},
            html=html,
            files=files,
            failure=f"{summary(report)}{place_note}" if is_severe else None,
        )


class DoctorError(DeltaEngineError):
    """The environment lacks something."""

    topic = "missing-prerequisites"


def run_doctor(
    *,
    environment: str,
    conf_dir: str,
    spark: SparkSession,
    show: Callable[[str], object],
    origin: RunOrigin = UNKNOWN_ORIGIN,
) -> str:
    """Check that nothing is missing that the environment needs; change nothing.

    Args:
        show: gets the report as HTML, also if something is missing.

    Returns:
        The report as JSON.

    Raises:
        DoctorError: something is missing.
    """
    with in_context(environment=environment):
        report = examine(Path(conf_dir), environment, spark=spark, lineage=origin.lineage, notify=print)
        show(doctor_html(report))
        if report.missing:
            lines = "\n".join(f"{described(check)} → {check.way_out}" for check in report.missing)
            raise DoctorError(f"{doctor_summary(report)}\n{lines}")
        return report_json(report)


def _plan_html(planned: PlannedRun, environment: str) -> str:
    notes = (*adopted_lines(planned.adopted), *allowed_lines(planned.consents))
    return plan_html(planned, environment=environment, notes=notes)


def _opened(project: Project, spark: SparkSession, origin: RunOrigin = UNKNOWN_ORIGIN) -> Environment:
    backend = open_backend(project.settings, spark, notify=print)
    return open_environment(project, backend, open_deployment(project.settings, backend, origin))


def words(text: str) -> tuple[str, ...]:
    """Return the parts of a comma-separated widget value; empty for an empty one."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def short_run_json(report: RunReport, most_bytes: int = MOST_BYTES_OF_A_NOTEBOOK) -> str:
    """Return a run report on one line, shortened to fit; its `left_out` names the omitted parts."""
    text = ""
    for candidate in _shorter(report):
        text = report_json(candidate, indent=None)
        if len(text.encode("utf-8")) <= most_bytes:
            break
    return text


def _shorter(report: RunReport) -> Iterator[RunReport]:
    """Yield a report and then ever shorter ones, in which failures stay longest."""
    yield report
    tables = tuple(
        replace(table, statements=(), actions=(), planned=()) if table.error is None else table
        for table in report.tables
    )
    yield replace(report, tables=tables, left_out="actions and statements of tables that are done")
    tables = tuple(
        replace(
            table,
            statements=(),
            actions=(),
            planned=(),
            error=replace(table.error, message=table.error.message[:_LONGEST_MESSAGE], sql=None),
        )
        for table in tables
        if table.error is not None
    )
    yield replace(
        report, tables=tables, left_out="tables that are done; actions, statements and the ends of messages"
    )
    yield replace(report, tables=(), warnings=(), left_out="tables and warnings")
