"""The tasks of the job: what the notebooks call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from delta_engine.errors import raise_all
from delta_engine.orchestrate.deployments import UNKNOWN_ORIGIN, RunOrigin, open_deployment
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.orchestrate.project import Project, load_project, open_backend, orchestrator
from delta_engine.report.run_summary import JobSummary, pending_summary, sync_summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JobSummary", "RunOrigin", "run_drift_report", "run_sync", "words"]


def run_sync(
    *,
    environment: str,
    conf_dir: str,
    spark: SparkSession,
    allow: Sequence[str] = (),
    tables: Sequence[str] = (),
    dry_run: bool = False,
    origin: RunOrigin = UNKNOWN_ORIGIN,
) -> JobSummary:
    """Lock, plan, validate, apply and record.

    Args:
        environment: which configuration to use.
        conf_dir: the folder that holds it.
        spark: the notebook's session.
        allow: destructive kinds to allow in this run, such as `drop_column:silver.orders`.
        tables: globs that select models; all by default.
        dry_run: stop before applying; takes no lock and writes nothing.
        origin: which commit was deployed, and where the run can be watched.

    Returns:
        What was done, or for a dry run what is pending.

    Raises:
        DeltaEngineError: something was refused, the environment is locked (`LockHeld`), or tables failed
            (`ApplyFailedError`).
    """
    project = load_project(Path(conf_dir), environment, tables=tables, allow=allow)
    engine = _orchestrator(project, spark, origin)
    if dry_run:
        plan = engine.plan_tables(project.models)
        raise_all(engine.refusals(plan))
        return pending_summary("sync", environment, plan)
    with engine.run("sync", print) as run:
        plan = run.plan(project.models, is_partial=project.is_partial)
        raise_all(engine.refusals(plan))
        return sync_summary(environment, run.apply(plan), models=len(project.models))


def run_drift_report(
    *, environment: str, conf_dir: str, spark: SparkSession, tables: Sequence[str] = ()
) -> JobSummary:
    """Report the changes that are pending between models and catalog; change nothing.

    Args and errors are those of `run_sync`.
    """
    project = load_project(Path(conf_dir), environment, tables=tables)
    engine = _orchestrator(project, spark, UNKNOWN_ORIGIN)
    return pending_summary("drift_report", environment, engine.plan_tables(project.models))


def _orchestrator(project: Project, spark: SparkSession, origin: RunOrigin) -> Orchestrator:
    backend = open_backend(project.settings, spark)
    return orchestrator(project.settings, backend, open_deployment(project.settings, backend, origin))


def words(text: str) -> tuple[str, ...]:
    """Return the parts of a comma-separated widget value; empty for an empty one."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
