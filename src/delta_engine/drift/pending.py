"""What is pending: what the models want beyond reverting drift, and no run has applied yet. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Comparison, Securable, SecurableState
from delta_engine.deployment.resources import resource_key
from delta_engine.drift.comparison import Deviation
from delta_engine.drift.drift_report import PendingChange, PendingResource
from delta_engine.drift.drifted_resources import DriftedResource
from delta_engine.drift.facts import DriftFacts
from delta_engine.drift.handling import reverted_drift


def pending_resources(facts: DriftFacts) -> Iterator[PendingResource]:
    """Yield the declared schemas, then the tables, that the next sync would change."""
    drifted = {one.name.key: one for one in facts.drifted}
    applied: Mapping[str, Securable] = {**facts.applied, **facts.applied_schemas}
    for model, observed in _declared(facts):
        found = drifted.get(model.key)
        if observed.exists:
            changes = tuple(_pending(facts, model, observed, applied.get(model.key), found))
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
    applied: Securable | None,
    drifted: DriftedResource | None,
) -> Iterator[PendingChange]:
    policy = facts.plan_policy
    found = reverted_drift(model, drifted, policy) if drifted else ()
    reverted = [detail.deviation for detail in found]
    renamed = drifted.recorded.renames.items() if drifted else ()
    names = {name.lower() for pair in renamed for name in pair}
    for difference in aspects.differences(Comparison.of(model, observed, applied, policy)):
        change = difference.change
        is_rename = change.subject.lower().removeprefix("column ") in names  # half of one: a drop or an add
        if not is_rename and not _reverts(difference, reverted):
            yield PendingChange(field=change.subject, observed=change.observed, desired=change.desired)


def _reverts(difference: aspects.Difference, reverted: Sequence[Deviation]) -> bool:
    """Whether a change reverts drift. All moves of columns do, or none: drift is of the whole order."""
    if difference.kind is DriftKind.COLUMN_ORDER:
        return any(deviation.kind is DriftKind.COLUMN_ORDER for deviation in reverted)
    change = difference.change
    return any((one.field, one.expected) == (change.subject, change.desired) for one in reverted)
