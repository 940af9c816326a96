"""Drift reports: made, added to the history, rendered as a page with the earlier ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.recorded_models import (
    last_applied,
    last_applied_schemas,
    with_recorded_grants,
)
from delta_engine.drift.attribution import with_audited_authors
from delta_engine.drift.drift_report import DriftReport
from delta_engine.drift.reporting import DriftFacts, drift_report
from delta_engine.errors import CatalogReadError, StatementError, raise_all
from delta_engine.models import Schema, Table
from delta_engine.models.constraints import resolved
from delta_engine.orchestrate.environment import Environment
from delta_engine.orchestrate.planning import drift_detector
from delta_engine.report.pages import drift_html
from delta_engine.state.catalog_reader import readable_snapshot
from delta_engine.telemetry.context import new_id, utc_now

_MOST_READS = 3
"""How often a report reads the catalog because a run of the engine was under way."""


def report_drift(
    environment: Environment, tables: Sequence[Table], *, is_partial: bool = False
) -> DriftReport:
    """Report what was changed outside the engine since it was applied; changes nothing and takes no lock.

    Args:
        is_partial: whether other models were left out; then only these tables are read.

    Raises:
        InvalidModelError, RefusalGroup: models are refused.
        CatalogReadError: a whole catalog cannot be read; a single table is a finding.
    """
    raise_all(environment.validator.model_violations(tables))
    models, deployment = resolved(tables), environment.deployment
    state = deployment.peek_replayed()
    for _ in range(_MOST_READS):
        facts = _facts(environment, models, state, is_partial=is_partial)
        known, state = state, deployment.peek_replayed() if facts.drifted else state
        if state == known:
            break
    if environment.audit_log is not None:
        facts = with_audited_authors(facts, environment.audit_log)
    return drift_report(facts)


def record_drift(environment: Environment, report: DriftReport) -> None:
    """Add a report to the history of drift, if the environment has one.

    Raises:
        StatementError: the platform refused it.
    """
    if environment.drift_history is not None:
        environment.drift_history.append(report, new_id())


def drift_page(environment: Environment, report: DriftReport) -> str:
    """Return a report as a page, with the earlier ones as a chart."""
    if environment.drift_history is None:
        return drift_html(report, ())
    try:
        return drift_html(report, environment.drift_history.recent(environment.name))
    except StatementError:  # the report matters more than its chart
        return drift_html(report, ())


def _facts(
    environment: Environment, tables: Sequence[Table], state: DeploymentState | None, *, is_partial: bool
) -> DriftFacts:
    declared = {model.key for model in tables}
    applied = last_applied(state) if state else {}
    undeclared = [] if is_partial else [one for key, one in applied.items() if key not in declared]
    schemas = environment.planner.schemas
    applied_schemas = last_applied_schemas(state) if state else {}
    around = with_recorded_grants(_schemas_of(tables, applied_schemas) if is_partial else schemas, state)
    declared_tables = with_recorded_grants(tables, state)
    recorded_tables = with_recorded_grants(undeclared, state)
    try:
        observed, unreadable = readable_snapshot(
            environment.reader, [*declared_tables, *recorded_tables], around
        )
    except CatalogReadError:  # the catalog of an undeclared table may be gone
        if not undeclared:
            raise
        observed, unreadable = readable_snapshot(environment.reader, declared_tables, around)
    now, detector = utc_now(), drift_detector(environment)
    known = {*declared, *applied, *(name.key for name in environment.own_tables)}
    return DriftFacts(
        environment=environment.name,
        checked_at=now,
        models=tables,
        is_partial=is_partial,
        state=state,
        observed=observed,
        applied=applied,
        drifted=detector.detect(state, observed, now=now) if state else (),
        unreadable=detector.unreadable(unreadable, now=now),
        unmanaged=() if is_partial else detector.unmanaged(observed, known, now=now),
        schemas=schemas,
        applied_schemas=applied_schemas,
        policy=environment.drift_policy,
        plan_policy=environment.planner.policy,
    )


def _schemas_of(tables: Sequence[Table], applied: Mapping[str, Schema]) -> tuple[Schema, ...]:
    """Return the schemas of tables that were applied."""
    keys = sorted({f"{table.catalog_name}.{table.schema_name}".lower() for table in tables})
    return tuple(applied[key] for key in keys if key in applied)
