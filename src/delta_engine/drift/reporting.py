"""Builds a drift report from the detected facts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from delta_engine import aspects
from delta_engine.aspects import Difference
from delta_engine.aspects.comparison import Comparison
from delta_engine.drift.absences import hidden_notes
from delta_engine.drift.comparison import listed_parts
from delta_engine.drift.drift_report import (
    DriftReport,
    IgnoredFinding,
    NextSync,
    PendingChange,
    PendingResource,
    PolicyNote,
    Recommendation,
    ResourceDrift,
)
from delta_engine.drift.drifted_resources import (
    ClassifiedDrift,
    ComparedResource,
    UnmanagedPart,
    changed_field,
)
from delta_engine.drift.handling import reverts, undone_details, with_ignored_drift
from delta_engine.drift.observation import DriftFacts
from delta_engine.drift.recommendations import (
    alternatives,
    alternatives_unmanaged,
    alternatives_unreadable,
    next_sync,
    recommendations,
)
from delta_engine.drift.renames import irreversible
from delta_engine.models import Securable, SecurableName, Table, of_kind, resource_key
from delta_engine.state.states import SecurableState, former_name_of
from delta_engine.telemetry.context import command
from delta_engine.telemetry.garbage import no_garbage_collection

Planned: TypeAlias = Mapping[str, Sequence[Difference]]
"""What the next sync changes in existing securables, by the keys of their models."""


@no_garbage_collection()
def drift_report(facts: DriftFacts) -> DriftReport:
    """Return the report on the facts."""
    state = facts.basis.state
    drifting = [resource for resource in facts.drifted if resource.drift and _is_reported(resource, facts)]
    schemas = [resource for resource in drifting if resource.name.is_container]
    resources = [resource for resource in drifting if not resource.name.is_container]
    existing = [resource for resource in resources if resource.observed.exists]
    gone = [resource for resource in resources if not resource.observed.exists]
    unreadable = _not_ignored(facts.unreadable, facts, alternatives_unreadable)
    unmanaged = _not_ignored(facts.unmanaged, facts, alternatives_unmanaged)
    planned, checked = _planned(facts), _checked(facts)
    syncs = {
        resource.model_key: _next_sync(resource, facts, planned)
        for resource in drifting
        if resource.model_key in facts.declared
    }
    return DriftReport(
        environment=facts.environment,
        host=state.environment.host if state else "",
        checked_at=facts.checked_at,
        state_id=state.state_id if state else "",
        serial=state.serial if state else 0,
        lineage=state.lineage if state else "unknown",
        tables_checked=checked["table"],
        functions_checked=checked["function"],
        policies_checked=checked["policy"],
        views_checked=checked["view"],
        drifted=(*unreadable, *(_drift_of(resource, facts, syncs) for resource in existing)),
        deleted=tuple(_drift_of(resource, facts, syncs) for resource in gone),
        unmanaged=unmanaged,
        schemas=tuple(_drift_of(resource, facts, syncs) for resource in schemas),
        ignored=tuple(_ignored(facts)),
        policy_notes=tuple(_policy_notes(facts)),
        pending=tuple(_pending_resources(facts, planned)),
        left_alone=tuple(_unmanaged_parts(facts)),
        unfinished=tuple(_unfinished(facts)),
        recommendations=tuple(recommendations(facts, existing, schemas, gone, unmanaged, syncs)),
        notes=(*facts.notes, *hidden_notes([*schemas, *gone]), *_notes(facts)),
    )


def _unfinished(facts: DriftFacts) -> Iterator[str]:
    """Yield the keys of what runs left unfinished, without what the comparison no longer doubts."""
    compared = {key: resource.record for key, resource in facts.basis.compared.items()}
    for key, record in sorted(facts.basis.resources.items()):
        if compared.get(key, record).is_half_done:
            yield key


def _notes(facts: DriftFacts) -> Iterator[str]:
    """Yield what neither a revert nor an acceptance can do."""
    for name, drift in facts.unreadable:
        if drift.ignored_by is None:
            yield f"{name} cannot be reverted or accepted. {drift.way_out}"
    for refusal in facts.reversal.refusals:
        yield f"{command('drift --revert')} cannot undo all of the drift: {refusal}"


def _checked(facts: DriftFacts) -> Counter[str]:
    """Return how many applied securables the snapshot covers, by kind."""
    models = (record.declared for record in facts.basis.records.values() if record.declared)
    names = (model.qualified_name for model in models)
    return Counter(name.kind for name in names if facts.basis.observed.of(name) is not None)


def _unmanaged_parts(facts: DriftFacts) -> Iterator[UnmanagedPart]:
    """Yield the parts that a sync keeps, and that are no drift."""
    drifted = {
        (resource.model_key, detail.finding.field)
        for resource in facts.drifted
        for detail in resource.details
    }
    tables, order = of_kind(Table, (model for model, _ in facts.readable)), facts.plan_policy.column_order
    for part in listed_parts(tables, facts.basis.observed, facts.basis.records, order):
        if (part.resource, part.key) not in drifted:
            yield part


def _is_reported(resource: ComparedResource, facts: DriftFacts) -> bool:
    """Whether a resource exists, or was deleted, not retired.

    In a partial report, the schemas of its tables count as declared.
    """
    is_declared = resource.model_key in facts.declared or (
        facts.basis.is_partial and resource.name.is_container
    )
    return resource.observed.exists or is_declared


def _planned(facts: DriftFacts) -> Planned:
    policy = facts.plan_policy
    existing = [(model, state) for model, state in facts.readable if state.exists]
    states = {resource_key(model.qualified_name): state for model, state in existing}
    models = [model for model, _ in existing]
    return {
        key: tuple(
            aspects.differences(Comparison.of(model, states[key], facts.basis.records.get(key), policy))
        )
        for model in with_ignored_drift(models, facts.drifted, policy)
        for key in [resource_key(model.qualified_name)]
    }


def _next_sync(drifted: ComparedResource, facts: DriftFacts, planned: Planned) -> NextSync:
    model = facts.declared[drifted.model_key]
    if isinstance(model, Table) and any(irreversible([model], [drifted])):
        return NextSync.REFUSES
    changes = planned.get(drifted.model_key, ())
    changed = [
        (changed_field(difference.action, difference.change), difference.change.desired)
        for difference in changes
    ]
    undone = [detail.finding for detail, _ in undone_details(drifted, model, changed)]
    return next_sync(drifted, undone, facts.policy)


def _drift_of(drifted: ComparedResource, facts: DriftFacts, syncs: Mapping[str, NextSync]) -> ResourceDrift:
    findings = [detail.finding for detail in drifted.drift]
    findings.sort(key=lambda finding: -finding.severity.rank)
    sync = syncs.get(drifted.model_key)
    return ResourceDrift(
        resource=drifted.key,
        findings=tuple(findings),
        next_sync=sync,
        alternatives=tuple(alternatives(drifted, facts, sync)),
    )


def _not_ignored(
    drift: Iterable[tuple[SecurableName, ClassifiedDrift]],
    facts: DriftFacts,
    advice: Callable[[SecurableName, ClassifiedDrift, DriftFacts], Iterable[Recommendation]],
) -> tuple[ResourceDrift, ...]:
    return tuple(
        ResourceDrift(
            resource=resource_key(name),
            findings=(detail.finding,),
            alternatives=tuple(advice(name, detail, facts)),
        )
        for name, detail in drift
        if detail.ignored_by is None
    )


def _all(facts: DriftFacts) -> Iterator[tuple[SecurableName, ClassifiedDrift]]:
    for resource in facts.drifted:
        for detail in resource.details if _is_reported(resource, facts) else ():
            yield resource.name, detail
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
    findings = [(name, detail.finding) for name, detail in _all(facts)]
    for entry in facts.policy.ignores:
        if entry.is_expired(facts.checked_at):
            problem = f"expired on {entry.expires}"
        elif facts.basis.is_partial or any(
            entry.matches(name, finding.kind, finding.field) for name, finding in findings
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


def _pending_resources(facts: DriftFacts, planned: Planned) -> Iterator[PendingResource]:
    """Yield the declared schemas, then the tables, that the next sync would change."""
    drifted = {resource.model_key: resource for resource in facts.drifted}
    for model, observed in facts.readable:
        key = resource_key(model.qualified_name)
        resource = drifted.get(key)
        pending = _pending(planned[key], resource) if observed.exists else ()
        changes = (*_pending_rename(model, observed), *pending)
        if changes or not (observed.exists or resource):
            yield PendingResource(resource=resource_key(model.qualified_name), changes=changes)


def _pending_rename(model: Securable, observed: SecurableState) -> Iterator[PendingChange]:
    former, name = former_name_of(observed), model.qualified_name
    if former is not None:
        yield PendingChange(
            field=f"{name.kind} name", observed=str(former), desired=str(name), is_rename=True
        )


def _pending(planned: Iterable[Difference], drifted: ComparedResource | None) -> Iterator[PendingChange]:
    """Yield the changes that revert no drift."""
    details = drifted.details if drifted else ()
    names = set(_renamed_names(drifted)) if drifted else set()
    for difference in planned:
        change = difference.change
        is_rename = change.subject.lower().removeprefix("column ") in names  # half of one: a drop or an add
        if not is_rename and not any(reverts(difference, detail.difference) for detail in details):
            yield PendingChange(
                field=change.subject,
                observed=change.observed,
                desired=change.desired,
                is_rename=change.is_rename,
            )


def _renamed_names(drifted: ComparedResource) -> Iterator[str]:
    """Yield both names of each renamed column, and both paths of each renamed field, in lower case."""
    yield from (".".join(path).lower() for pair in drifted.renames.paths.items() for path in pair)
