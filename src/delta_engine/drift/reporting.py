"""Puts a drift report together from what was detected. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import ColumnOrder, DestructiveKind, Policy
from delta_engine.deployment.resources import resource_key, table_key
from delta_engine.deployment.synchronizer import is_half_done
from delta_engine.drift.detector import DetectedTable
from delta_engine.drift.drift_report import (
    NOT_DELTA,
    DriftReport,
    IgnoredFinding,
    PolicyNote,
    Recommendation,
    ResourceDrift,
)
from delta_engine.drift.evidence import Evidence
from delta_engine.drift.field_renames import renamed_fields
from delta_engine.drift.handling import possible_renames
from delta_engine.drift.judgement import Detected
from delta_engine.drift.pending import left_alone, pending_schemas, pending_tables
from delta_engine.drift.schemas import DetectedSchema
from delta_engine.models import QualifiedName, SchemaName

_MOST_COMMANDS = 20

_CONSTRAINTS = (DriftKind.PRIMARY_KEY, DriftKind.FOREIGN_KEY, DriftKind.CHECK)


def drift_report(evidence: Evidence) -> DriftReport:
    """Return the report."""
    state = evidence.state
    existing = [table for table in evidence.detected if table.observed.exists and table.drift]
    declared = {model.qualified_name.key for model in evidence.models}
    gone = [
        table
        for table in evidence.detected
        if not table.observed.exists and table.drift and table.name.key in declared
    ]  # a table that is neither declared nor there any more was retired
    drifted_schemas = _drifted_schemas(evidence)
    unreadable, unmanaged = _not_ignored(evidence.unreadable), _not_ignored(evidence.unmanaged)
    return DriftReport(
        environment=evidence.environment,
        host=state.environment.host if state else "",
        checked_at=evidence.checked_at,
        state_id=state.state_id if state else "",
        serial=state.serial if state else 0,
        lineage=state.lineage if state else "unknown",
        tables_checked=sum(key in evidence.observed.tables for key in evidence.applied),
        drifted=(*unreadable, *map(_drift_of, existing)),
        deleted=tuple(map(_drift_of, gone)),
        unmanaged=unmanaged,
        schemas=tuple(map(_drift_of, drifted_schemas)),
        ignored=tuple(_ignored(evidence)),
        policy_notes=tuple(_policy_notes(evidence)),
        pending=(*pending_schemas(evidence), *pending_tables(evidence)),
        left_alone=tuple(left_alone(evidence)),
        unfinished=tuple(_unfinished(evidence)),
        recommendations=tuple(_recommendations(evidence, existing, drifted_schemas, gone, unmanaged)),
        notes=evidence.notes,
    )


def _drifted_schemas(evidence: Evidence) -> list[DetectedSchema]:
    """Return the schemas that drifted; one that is neither declared nor there any more was retired, like a table.

    In a report on some tables those of their schemas that were applied count as declared: tables here need them.
    """
    declared = {schema.key for schema in evidence.schemas}
    return [
        schema
        for schema in evidence.detected_schemas
        if schema.drift
        and (schema.observed is not None or schema.name.key in declared or evidence.is_partial)
    ]


def _drift_of(detected: DetectedTable | DetectedSchema) -> ResourceDrift:
    findings = [detail.finding for detail in detected.drift]
    findings.sort(key=lambda finding: -finding.severity.rank)
    return ResourceDrift(resource=detected.resource, findings=tuple(findings))


def _not_ignored(found: Iterable[tuple[QualifiedName, Detected]]) -> tuple[ResourceDrift, ...]:
    return tuple(
        ResourceDrift(resource=table_key(name), findings=(one.finding,))
        for name, one in found
        if one.ignored_by is None
    )


def _all(evidence: Evidence) -> Iterator[tuple[QualifiedName | SchemaName, Detected]]:
    for schema in evidence.detected_schemas:
        for detail in schema.details:
            yield schema.name, detail
    for table in evidence.detected:
        for detail in table.details:
            yield table.name, detail
    yield from evidence.unreadable
    yield from evidence.unmanaged


def _ignored(evidence: Evidence) -> Iterator[IgnoredFinding]:
    for name, detail in _all(evidence):
        if detail.ignored_by is not None:
            expires = detail.ignored_by.expires
            yield IgnoredFinding(
                resource=resource_key(name),
                finding=detail.finding,
                reason=detail.ignored_by.reason,
                expires=expires.isoformat() if expires else None,
            )


def _policy_notes(evidence: Evidence) -> Iterator[PolicyNote]:
    """Yield the entries that do nothing; of a part of the tables nobody can tell which match nothing."""
    findings = [(name, detail.deviation) for name, detail in _all(evidence)]
    for entry in evidence.policy.ignores:
        if entry.is_expired(evidence.checked_at):
            problem = f"expired on {entry.expires}"
        elif evidence.is_partial or any(
            entry.matches(name, deviation.kind, deviation.field) for name, deviation in findings
        ):
            continue
        else:
            problem = "matches nothing"
        yield PolicyNote(
            resource=entry.resource,
            fields=entry.fields,
            reason=entry.reason,
            problem=problem,
            location=str(entry.location or ""),
        )


def _unfinished(evidence: Evidence) -> Iterator[str]:
    if evidence.state is None:
        return
    for key, resource in sorted(evidence.state.resources.items()):
        if is_half_done(resource):
            yield key


def _recommendations(
    evidence: Evidence,
    existing: Sequence[DetectedTable],
    drifted_schemas: Sequence[DetectedSchema],
    gone: Sequence[DetectedTable],
    unmanaged: Sequence[ResourceDrift],
) -> Iterator[Recommendation]:
    command = f"delta-engine -e {shlex.quote(evidence.environment)}"
    if existing or drifted_schemas:
        allowed = "".join(f" --allow {kind.value}" for kind in _consents(existing))
        if drifted_schemas or any(_can_be_undone(table, evidence.plan_policy) for table in existing):
            yield Recommendation(
                text="Undo the drift in the catalog", command=f"{command} drift --revert{allowed}"
            )
        yield Recommendation(
            text="Take the drift into the models, and commit them", command=f"{command} drift --accept"
        )
    if gone:
        targets = " ".join(f"-t {shlex.quote(str(table.name))}" for table in gone[:_MOST_COMMANDS])
        yield Recommendation(
            text="Create the deleted tables again, without their data",
            command=f"{command} drift --revert {targets}",
        )
        yield Recommendation(
            text="Or take their models away, and forget them", command=f"{command} drift --accept {targets}"
        )
    importable = [table for table in unmanaged if table.findings[0].actual != NOT_DELTA]
    for table in importable[:_MOST_COMMANDS]:
        name = table.resource.removeprefix("table.")
        _, schema, own_name = name.split(".", 2)
        target = shlex.quote(f"conf/models/{schema}/{own_name}.yml")
        yield Recommendation(
            text=f"Declare {name}", command=f"{command} import {shlex.quote(name)} --to {target}"
        )


def _consents(tables: Sequence[DetectedTable]) -> Iterator[DestructiveKind]:
    """Yield what a revert has to be allowed."""
    if any(
        detail.deviation.kind is DriftKind.COLUMN_ADDED
        for table in tables
        for detail in table.drift
        if not any(possible_renames(table)) and not any(renamed_fields(table))
    ):
        yield DestructiveKind.DROP_COLUMN
    if any(
        detail.deviation.kind in _CONSTRAINTS and detail.deviation.expected is None
        for table in tables
        for detail in table.drift
    ):
        yield DestructiveKind.DROP_CONSTRAINT


def _can_be_undone(table: DetectedTable, policy: Policy) -> bool:
    """Whether a plan undoes any of a table's drift: never that it is another one, and seldom the order of columns."""
    beyond = {DriftKind.TABLE_REPLACED}
    if policy.column_order is not ColumnOrder.ENFORCE:
        beyond.add(DriftKind.COLUMN_ORDER)
    return any(detail.deviation.kind not in beyond for detail in table.drift)
