"""Builds a drift report from the detected facts. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import ColumnOrder, DestructiveKind, Policy
from delta_engine.aspects.comparison import Comparison, Securable, SecurableState
from delta_engine.deployment.resources import is_half_done, resource_key
from delta_engine.drift.comparison import listed_parts
from delta_engine.drift.drift_report import (
    DriftReport,
    IgnoredFinding,
    PendingChange,
    PendingResource,
    PolicyNote,
    Recommendation,
    ResourceDrift,
)
from delta_engine.drift.drifted_resources import (
    NOT_DELTA,
    ClassifiedDrift,
    Deviation,
    DriftedResource,
    DriftedSchema,
    DriftedTable,
    DriftFacts,
    drifted_schemas,
    drifted_tables,
    is_table,
)
from delta_engine.drift.handling import has_possible_renames, reverted_drift
from delta_engine.models import QualifiedName, SchemaName
from delta_engine.models.record import Record

_MOST_COMMANDS = 20

_CONSTRAINTS = (DriftKind.PRIMARY_KEY, DriftKind.FOREIGN_KEY, DriftKind.CHECK)


def drift_report(facts: DriftFacts) -> DriftReport:
    """Return the report on the facts."""
    state = facts.state
    found = [one for one in facts.drifted if one.drift]
    tables = drifted_tables(found)
    existing = [one for one in tables if one.observed.exists]
    gone = [one for one in tables if _was_deleted(one, facts)]
    schemas = [one for one in drifted_schemas(found) if one.observed.exists or _was_deleted(one, facts)]
    unreadable, unmanaged = _not_ignored(facts.unreadable), _not_ignored(facts.unmanaged)
    drifted = {(one.resource, detail.deviation.field) for one in facts.drifted for detail in one.details}
    resources = state.resources if state else {}
    return DriftReport(
        environment=facts.environment,
        host=state.environment.host if state else "",
        checked_at=facts.checked_at,
        state_id=state.state_id if state else "",
        serial=state.serial if state else 0,
        lineage=state.lineage if state else "unknown",
        tables_checked=sum(
            key in facts.observed.tables for key, one in facts.records.items() if one.declared
        ),
        drifted=(*unreadable, *map(_drift_of, existing)),
        deleted=tuple(map(_drift_of, gone)),
        unmanaged=unmanaged,
        schemas=tuple(map(_drift_of, schemas)),
        ignored=tuple(_ignored(facts)),
        policy_notes=tuple(_policy_notes(facts)),
        pending=tuple(_pending_resources(facts)),
        left_alone=tuple(
            part
            for part in listed_parts(facts.readable_models, facts.observed, facts.records)
            if (part.resource, part.key) not in drifted
        ),
        unfinished=tuple(key for key, one in sorted(resources.items()) if is_half_done(one)),
        recommendations=tuple(_recommendations(facts, existing, schemas, gone, unmanaged)),
        notes=facts.notes,
    )


def _was_deleted(one: DriftedResource, facts: DriftFacts) -> bool:
    """Whether a resource was deleted, not retired. In a partial report, the schemas of its tables count as declared."""
    declared = {*(model.key for model in facts.models), *(schema.key for schema in facts.schemas)}
    is_declared = one.name.key in declared or (facts.is_partial and not is_table(one))
    return not one.observed.exists and is_declared


def _drift_of(drifted: DriftedResource) -> ResourceDrift:
    findings = [detail.finding for detail in drifted.drift]
    findings.sort(key=lambda finding: -finding.severity.rank)
    return ResourceDrift(resource=drifted.resource, findings=tuple(findings))


def _not_ignored(found: Iterable[tuple[QualifiedName, ClassifiedDrift]]) -> tuple[ResourceDrift, ...]:
    return tuple(
        ResourceDrift(resource=resource_key(name), findings=(one.finding,))
        for name, one in found
        if one.ignored_by is None
    )


def _all(facts: DriftFacts) -> Iterator[tuple[QualifiedName | SchemaName, ClassifiedDrift]]:
    for one in facts.drifted:
        for detail in one.details:
            yield one.name, detail
    yield from facts.unreadable
    yield from facts.unmanaged


def _ignored(facts: DriftFacts) -> Iterator[IgnoredFinding]:
    for name, detail in _all(facts):
        if detail.ignored_by is not None:
            expires = detail.ignored_by.expires
            yield IgnoredFinding(
                resource=resource_key(name),
                finding=detail.finding,
                reason=detail.ignored_by.reason,
                expires=expires.isoformat() if expires else None,
            )


def _policy_notes(facts: DriftFacts) -> Iterator[PolicyNote]:
    """Yield the entries without an effect; a partial report cannot tell which match nothing."""
    findings = [(name, detail.deviation) for name, detail in _all(facts)]
    for entry in facts.policy.ignores:
        if entry.is_expired(facts.checked_at):
            problem = f"expired on {entry.expires}"
        elif facts.is_partial or any(
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


def _recommendations(
    facts: DriftFacts,
    existing: Sequence[DriftedTable],
    schemas: Sequence[DriftedSchema],
    gone: Sequence[DriftedTable],
    unmanaged: Sequence[ResourceDrift],
) -> Iterator[Recommendation]:
    command = f"delta-engine -e {shlex.quote(facts.environment)}"
    if existing or schemas:
        allowed = "".join(f" --allow {kind.value}" for kind in _consents(existing))
        if schemas or any(_can_be_reverted(table, facts.plan_policy) for table in existing):
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


def _consents(tables: Sequence[DriftedTable]) -> Iterator[DestructiveKind]:
    found = [(table, detail.deviation) for table in tables for detail in table.drift]
    if any(one.kind is DriftKind.COLUMN_ADDED and not has_possible_renames(table) for table, one in found):
        yield DestructiveKind.DROP_COLUMN
    if any(one.kind in _CONSTRAINTS and one.expected is None for _, one in found):
        yield DestructiveKind.DROP_CONSTRAINT


def _can_be_reverted(table: DriftedTable, policy: Policy) -> bool:
    """Whether a plan reverts any of a table's drift: never a replacement, and the order of columns by policy."""
    beyond = {DriftKind.TABLE_REPLACED}
    if policy.column_order is not ColumnOrder.ENFORCE:
        beyond.add(DriftKind.COLUMN_ORDER)
    return any(detail.deviation.kind not in beyond for detail in table.drift)


def _pending_resources(facts: DriftFacts) -> Iterator[PendingResource]:
    """Yield the declared schemas, then the tables, that the next sync would change."""
    drifted = {one.name.key: one for one in facts.drifted}
    records: Mapping[str, Record[Securable]] = {**facts.records, **facts.schema_records}
    for model, observed in _declared(facts):
        found = drifted.get(model.key)
        if observed.exists:
            changes = tuple(_pending(facts, model, observed, records.get(model.key), found))
            is_pending = bool(changes)
        else:
            changes, is_pending = (), found is None
        if is_pending:
            yield PendingResource(resource=resource_key(model.qualified_name), changes=changes)


def _declared(facts: DriftFacts) -> Iterator[tuple[Securable, SecurableState]]:
    for schema in sorted(facts.schemas, key=lambda schema: schema.key):
        state = facts.observed.schema(schema.qualified_name)
        if state is not None:
            yield schema, state
    for model in facts.readable_models:
        yield model, facts.observed.table(model.qualified_name)


def _pending(
    facts: DriftFacts,
    model: Securable,
    observed: SecurableState,
    record: Record[Securable] | None,
    drifted: DriftedResource | None,
) -> Iterator[PendingChange]:
    policy = facts.plan_policy
    found = reverted_drift(model, drifted, policy) if drifted else ()
    reverted = [detail.deviation for detail in found]
    renamed = drifted.recorded.renames.items() if drifted else ()
    names = {name.lower() for pair in renamed for name in pair}
    for difference in aspects.differences(Comparison.of(model, observed, record, policy)):
        change = difference.change
        is_rename = change.subject.lower().removeprefix("column ") in names  # half of one: a drop or an add
        if not is_rename and not _reverts(difference, reverted):
            yield PendingChange(field=change.subject, observed=change.observed, desired=change.desired)


def _reverts(difference: aspects.Difference, reverted: Sequence[Deviation]) -> bool:
    """Whether a change reverts drift. All moves of columns do, or none: drift is of the whole order."""
    if difference.kind is DriftKind.COLUMN_ORDER:
        return any(deviation.kind is DriftKind.COLUMN_ORDER for deviation in reverted)
    change = difference.change
    if difference.kind in (DriftKind.COLUMN_DROPPED, DriftKind.COLUMN_ADDED):  # its model may be another one
        return any((one.kind, one.field) == (difference.kind, change.subject) for one in reverted)
    return any((one.field, one.expected) == (change.subject, change.desired) for one in reverted)
