"""What is no drift: what models want and nobody has applied yet, and what nobody declared. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Change, Comparison
from delta_engine.aspects.table_properties import is_set_by_platform
from delta_engine.deployment.left_alone import beside
from delta_engine.deployment.resources import resource_key, table_key
from delta_engine.drift import schemas
from delta_engine.drift.comparison import Deviation
from delta_engine.drift.detector import DetectedTable
from delta_engine.drift.drift_report import ForeignPart, PendingChange, PendingResource
from delta_engine.drift.evidence import Evidence
from delta_engine.drift.handling import undone
from delta_engine.models import Part, Table
from delta_engine.state.states import CatalogState


def pending_tables(evidence: Evidence) -> Iterator[PendingResource]:
    """Yield what the models want of their tables beyond undoing drift."""
    detected = {table.name.key: table for table in evidence.detected}
    for model in _readable_models(evidence):
        name = model.qualified_name
        observed, drifted = evidence.observed.table(name), detected.get(name.key)
        if not observed.exists:
            if drifted is None:
                yield PendingResource(resource=table_key(name), changes=())
            continue
        policy, applied = evidence.plan_policy, evidence.applied.get(name.key)
        repairs = [detail.deviation for detail in (undone(model, drifted, policy) if drifted else ())]
        changes = tuple(
            _pending(difference.change)
            for difference in aspects.differences(Comparison.of(model, observed, applied, policy))
            if not _is_repair(difference, repairs) and not _is_rename(difference.change.subject, drifted)
        )
        if changes:
            yield PendingResource(resource=table_key(name), changes=changes)


def pending_schemas(evidence: Evidence) -> Iterator[PendingResource]:
    """Yield what the declared schemas want beyond undoing drift."""
    detected = {schema.name.key: schema for schema in evidence.detected_schemas}
    missing = {".".join(pair) for pair in evidence.observed.missing_schemas}
    for model in sorted(evidence.schemas, key=lambda schema: schema.key):
        resource, drifted = resource_key(model.qualified_name), detected.get(model.key)
        observed = evidence.observed.schema_states.get(model.key)
        if observed is None:
            if model.key in missing and drifted is None:
                yield PendingResource(resource=resource, changes=())
            continue
        repairs = [
            detail.deviation
            for detail in (schemas.undone(model, drifted, evidence.plan_policy) if drifted else ())
        ]
        applied = evidence.applied_schemas.get(model.key)
        changes = tuple(
            _pending(difference.change)
            for difference in aspects.differences(
                Comparison.of(model, observed, applied, evidence.plan_policy)
            )
            if not _is_repair(difference, repairs)
        )
        if changes:
            yield PendingResource(resource=resource, changes=changes)


def left_alone(evidence: Evidence) -> Iterator[ForeignPart]:
    """Yield what is in no model and was never applied (the platform's own properties aside), and is no drift."""
    drifted = {
        (table.resource, detail.deviation.field) for table in evidence.detected for detail in table.details
    }
    for part in foreign_parts(_readable_models(evidence), evidence.observed, evidence.applied):
        if (part.resource, part.key) not in drifted:
            yield part


def foreign_parts(
    models: Iterable[Table], observed: CatalogState, applied: Mapping[str, Table]
) -> Iterator[ForeignPart]:
    """Yield what a sync leaves alone: it is in no model, and was never applied; the platform's own properties aside.

    Args:
        models: the declared tables.
        observed: a snapshot that covers them.
        applied: what was applied last, by `QualifiedName.key`.
    """
    for model in models:
        last, table = applied.get(model.qualified_name.key), observed.table(model.qualified_name)
        resource = table_key(model.qualified_name)
        for one in beside(model, table, (last,) if last else ()):
            yield ForeignPart(resource=resource, key=one.change.subject, value=one.change.observed or "")
        if not model.is_about(Part.PROPERTIES):
            continue
        known = {*model.effective_table_properties, *(last.effective_table_properties if last else ())}
        for name, value in table.table_properties.items():
            if name not in known and not is_set_by_platform(name):
                yield ForeignPart(resource=resource, key=name, value=value)


def _readable_models(evidence: Evidence) -> list[Table]:
    readable = (model for model in evidence.models if model.qualified_name.key in evidence.observed.tables)
    return sorted(readable, key=lambda model: model.qualified_name.key)


def _pending(change: Change) -> PendingChange:
    return PendingChange(field=change.subject, observed=change.observed, desired=change.desired)


def _is_repair(difference: aspects.Difference, repairs: Sequence[Deviation]) -> bool:
    """Whether a change undoes drift. Moves of columns all do, or none: drift is of the whole order."""
    if difference.kind is DriftKind.COLUMN_ORDER:
        return any(deviation.kind is DriftKind.COLUMN_ORDER for deviation in repairs)
    change = difference.change
    return any((one.field, one.expected) == (change.subject, change.desired) for one in repairs)


def _is_rename(subject: str, drifted: DetectedTable | None) -> bool:
    """Whether a change is a half of undoing a rename, which looks like a drop and an add."""
    if drifted is None:
        return False
    names = {name.lower() for pair in drifted.applied.renames.items() for name in pair}
    return subject.lower().removeprefix("column ") in names
