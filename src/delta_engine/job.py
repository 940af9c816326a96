"""The tasks of the job: what the notebooks call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from delta_engine.errors import raise_all
from delta_engine.orchestrate.project import load_project, open_backend, orchestrator
from delta_engine.report.run_summary import JobSummary, pending_summary, sync_summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JobSummary", "run_drift_report", "run_sync", "words"]


def run_sync(
    *,
    environment: str,
    conf_dir: str,
    spark: SparkSession,
    allow: Sequence[str] = (),
    tables: Sequence[str] = (),
    dry_run: bool = False,
) -> JobSummary:
    """Plan, validate and apply.

    Args:
        environment: which configuration to use.
        conf_dir: the folder that holds it.
        spark: the notebook's session.
        allow: destructive kinds to allow in this run, such as `drop_column:silver.orders`.
        tables: globs that select models; all by default.
        dry_run: stop before applying.

    Returns:
        What was done, or for a dry run what is pending.

    Raises:
        DeltaEngineError: something was refused, or tables failed (`ApplyFailedError`).
    """
    project = load_project(Path(conf_dir), environment, tables=tables, allow=allow)
    engine = orchestrator(project.settings, open_backend(project.settings, spark))
    plan = engine.plan_tables(project.models)
    raise_all(engine.refusals(plan))
    if dry_run:
        return pending_summary("sync", environment, plan)
    return sync_summary(environment, engine.apply(plan), models=len(project.models))


def run_drift_report(
    *, environment: str, conf_dir: str, spark: SparkSession, tables: Sequence[str] = ()
) -> JobSummary:
    """Report the changes that are pending between models and catalog; change nothing.

    Args and errors are those of `run_sync`.
    """
    project = load_project(Path(conf_dir), environment, tables=tables)
    engine = orchestrator(project.settings, open_backend(project.settings, spark))
    return pending_summary("drift_report", environment, engine.plan_tables(project.models))


def words(text: str) -> tuple[str, ...]:
    """Return the parts of a comma-separated widget value; empty for an empty one."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
