"""Puts a drift report together from what was detected. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from delta_engine import aspects
from delta_engine.addressing import Addressing
from delta_engine.aspects.aspect import Comparison
from delta_engine.aspects.table_properties import is_set_by_platform
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.resources import table_key
from delta_engine.deployment.synchronizer import is_half_done
from delta_engine.drift.detector import Detected, DetectedTable
from delta_engine.drift.drift_report import (
    DriftReport,
    ForeignProperty,
    IgnoredFinding,
    PendingChange,
    PendingTable,
    PolicyNote,
    Recommendation,
    TableDrift,
)
from delta_engine.drift.handling import possible_renames, undone
from delta_engine.drift_policy import DriftKind, DriftPolicy
from delta_engine.models import QualifiedName, Table
from delta_engine.sql import sql_rename_column
from delta_engine.state.states import CatalogState

_MOST_COMMANDS = 20

_NO_PLAN_UNDOES = (DriftKind.COLUMN_ORDER, DriftKind.COLUMN_RENAMED, DriftKind.TABLE_REPLACED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a report is made of.

    Args:
        environment: the environment's name.
        checked_at: when the catalog was read, UTC.
        models: the declared tables that were looked at.
        is_partial: whether others were left out.
        state: the deployment state; None if there is none yet.
        observed: the snapshot.
        applied: what was applied last, by `QualifiedName.key`.
        detected: the tables that are not as they were applied.
        unreadable: the tables that could not be read; the snapshot lacks them.
        unmanaged: the tables that nobody declared.
        policy: what is ignored.
        addressing: how SQL addresses tables, for suggested statements.
    """

    environment: str
    checked_at: datetime
    models: Sequence[Table]
    is_partial: bool
    state: DeploymentState | None
    observed: CatalogState
    applied: Mapping[str, Table]
    detected: Sequence[DetectedTable]
    unreadable: Sequence[tuple[QualifiedName, Detected]]
    unmanaged: Sequence[tuple[QualifiedName, Detected]]
    policy: DriftPolicy
    addressing: Addressing


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
    unreadable, unmanaged = _not_ignored(evidence.unreadable), _not_ignored(evidence.unmanaged)
    return DriftReport(
        environment=evidence.environment,
        host=state.environment.host if state else "",
        checked_at=evidence.checked_at,
        state_id=state.state_id if state else "",
        serial=state.serial if state else 0,
        lineage=state.lineage if state else "unknown",
        tables_checked=sum(key in evidence.observed.tables for key in evidence.applied),
        drifted=(*unreadable, *map(_table_drift, existing)),
        deleted=tuple(map(_table_drift, gone)),
        unmanaged=unmanaged,
        ignored=tuple(_ignored(evidence)),
        policy_notes=tuple(_policy_notes(evidence)),
        pending=tuple(_pending(evidence)),
        left_alone=tuple(_left_alone(evidence)),
        unfinished=tuple(_unfinished(evidence)),
        recommendations=tuple(_recommendations(evidence, existing, gone, unmanaged)),
    )


def _table_drift(table: DetectedTable) -> TableDrift:
    findings = [detail.finding for detail in table.drift]
    findings.sort(key=lambda finding: -finding.severity.rank)
    return TableDrift(resource=table.resource, findings=tuple(findings))


def _not_ignored(found: Iterable[tuple[QualifiedName, Detected]]) -> tuple[TableDrift, ...]:
    return tuple(
        TableDrift(resource=table_key(name), findings=(one.finding,))
        for name, one in found
        if one.ignored_by is None
    )


def _readable_models(evidence: Evidence) -> list[Table]:
    readable = (model for model in evidence.models if model.qualified_name.key in evidence.observed.tables)
    return sorted(readable, key=lambda model: model.qualified_name.key)


def _all(evidence: Evidence) -> Iterator[tuple[QualifiedName, Detected]]:
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
                resource=table_key(name),
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


def _pending(evidence: Evidence) -> Iterator[PendingTable]:
    """Yield what the models want beyond undoing drift."""
    detected = {table.name.key: table for table in evidence.detected}
    for model in _readable_models(evidence):
        name = model.qualified_name
        observed, drifted = evidence.observed.table(name), detected.get(name.key)
        if not observed.exists:
            if drifted is None:
                yield PendingTable(resource=table_key(name), changes=())
            continue
        repairs = {
            (detail.deviation.field, detail.deviation.expected)
            for detail in (undone(model, drifted) if drifted else ())
        }
        comparison = Comparison.of(model, observed, evidence.applied.get(name.key))
        changes = tuple(
            PendingChange(field=change.subject, observed=change.observed, desired=change.desired)
            for change in (difference.change for difference in aspects.differences(comparison))
            if (change.subject, change.desired) not in repairs and not _is_rename(change.subject, drifted)
        )
        if changes:
            yield PendingTable(resource=table_key(name), changes=changes)


def _is_rename(subject: str, drifted: DetectedTable | None) -> bool:
    """Whether a change is a half of undoing a rename, which looks like a drop and an add."""
    if drifted is None:
        return False
    names = {name.lower() for pair in drifted.applied.renames.items() for name in pair}
    return subject.lower().removeprefix("column ") in names


def _left_alone(evidence: Evidence) -> Iterator[ForeignProperty]:
    """Yield properties that are in no model and were never applied (the platform's own aside)."""
    for model in _readable_models(evidence):
        key = model.qualified_name.key
        applied = evidence.applied.get(key)
        known = {
            *model.effective_table_properties,
            *(applied.effective_table_properties if applied else ()),
        }
        for name, value in evidence.observed.table(model.qualified_name).table_properties.items():
            if name not in known and not is_set_by_platform(name):
                yield ForeignProperty(resource=table_key(model.qualified_name), key=name, value=value)


def _unfinished(evidence: Evidence) -> Iterator[str]:
    if evidence.state is None:
        return
    for key, resource in sorted(evidence.state.resources.items()):
        if is_half_done(resource):
            yield key


def _recommendations(
    evidence: Evidence,
    existing: Sequence[DetectedTable],
    gone: Sequence[DetectedTable],
    unmanaged: Sequence[TableDrift],
) -> Iterator[Recommendation]:
    command = f"delta-engine -e {shlex.quote(evidence.environment)}"
    yield from _renames_undone(existing, evidence.addressing)
    if existing:
        drops = any(
            detail.deviation.kind is DriftKind.COLUMN_ADDED
            for table in existing
            for detail in table.drift
            if not any(possible_renames(table))
        )
        allowed = " --allow drop_column" if drops else ""
        if any(detail.deviation.kind not in _NO_PLAN_UNDOES for table in existing for detail in table.drift):
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
    for table in unmanaged[:_MOST_COMMANDS]:
        name = table.resource.removeprefix("table.")
        _, schema, own_name = name.split(".", 2)
        target = shlex.quote(f"conf/models/{schema}/{own_name}.yml")
        yield Recommendation(
            text=f"Declare {name}", command=f"{command} import {shlex.quote(name)} --to {target}"
        )


def _renames_undone(tables: Iterable[DetectedTable], addressing: Addressing) -> Iterator[Recommendation]:
    """Yield statements: a plan would drop the column and add an empty one, and the guard refuses that."""
    for table in tables:
        for detail in table.drift:
            if detail.deviation.kind is DriftKind.COLUMN_RENAMED:
                old, new = str(detail.deviation.expected), str(detail.deviation.actual)
                yield Recommendation(
                    text=f"Rename {table.name}'s column {new} back, with its data",
                    command=sql_rename_column(addressing.table(table.name), (new,), old) + ";",
                )
