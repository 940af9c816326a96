"""The handling of drift: what a sync reverts, keeps or refuses, and what a model accepts. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.actions.policy import NO_POLICY, Policy
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop
from delta_engine.aspects.comparison import Comparison, Securable
from delta_engine.aspects.foreign_keys import as_declared
from delta_engine.drift.comparison import Deviation, Model, accepted
from delta_engine.drift.drifted_resources import (
    ClassifiedDrift,
    Drifted,
    DriftedResource,
    DriftedTable,
    DriftRefusal,
)
from delta_engine.models import Schema, Table
from delta_engine.telemetry.context import command


def reverted_drift(
    model: Securable, drifted: DriftedResource, policy: Policy = NO_POLICY
) -> tuple[ClassifiedDrift, ...]:
    """Return the drift that a sync reverts, without the order of columns unless the policy enforces it."""
    observed = drifted.observed
    if not observed.exists:
        return drifted.details
    comparison = Comparison.of(model, observed, drifted.recorded.declared, policy)
    planned = tuple(aspects.differences(comparison))
    wanted = {(one.change.subject, one.change.desired) for one in planned}
    declared = {column.key for column in model.columns} if isinstance(model, Table) else set()
    moves_columns = any(one.kind is DriftKind.COLUMN_ORDER for one in planned)
    return tuple(
        detail
        for detail in drifted.details
        if _is_reverted(detail.deviation, declared, wanted, moves_columns=moves_columns)
    )


def with_ignored_drift(
    models: Sequence[Model], drifted: Iterable[DriftedResource], policy: Policy = NO_POLICY
) -> tuple[Model, ...]:
    """Return the models with the observed side of ignored drift, without those whose deletion is ignored."""
    by_key = {one.name.key: one for one in drifted}
    pairs = ((model, by_key.get(model.key)) for model in without_ignored_deletions(models, by_key.values()))
    return tuple(_with_ignored(model, one, policy) if one else model for model, one in pairs)


def without_ignored_deletions(
    models: Sequence[Model], drifted: Iterable[DriftedResource]
) -> tuple[Model, ...]:
    """Return the models without those whose deletion the policy ignores."""
    ignored = {one.name.key for one in drifted if not one.observed.exists and not one.drift}
    return tuple(model for model in models if model.key not in ignored)


def refusals(
    models: Sequence[Securable], drifted: Iterable[DriftedResource], policy: Policy = NO_POLICY
) -> Iterator[DriftRefusal]:
    """Yield one refusal for each severe drift that a sync would revert."""
    by_key = {model.key: model for model in models}
    for one in drifted:
        model = by_key.get(one.name.key)
        if model is not None:
            for detail in reverted_drift(model, one, policy):
                if detail.ignored_by is None and detail.finding.severity is Severity.HIGH:
                    yield _refusal(detail, model)


def is_replaced(drifted: DriftedResource) -> bool:
    """Whether another table of the same name replaced the table."""
    return any(one.deviation.kind is DriftKind.TABLE_REPLACED for one in drifted.details)


def accepting(model: Model, drifted: Drifted[Model, Any]) -> Model:
    """Return a model with the drift of its table or schema, except what the policy ignores."""
    if not drifted.observed.exists:
        return model
    return accepted(model, drifted.observed, [detail.deviation for detail in drifted.drift])


def edited(model: Table, table: DriftedTable) -> Table:
    """Return an accepting model for a model file: new foreign keys have the shortest table names."""
    found = accepting(model, table)
    keys = (
        key if key in model.foreign_keys else as_declared(found.qualified_name, key)
        for key in found.foreign_keys
    )
    return replace(found, foreign_keys=tuple(keys))


def _is_reverted(
    deviation: Deviation,
    declared: Collection[str],
    wanted: Collection[tuple[str, str | None]],
    *,
    moves_columns: bool,
) -> bool:
    match deviation:
        case Deviation(kind=DriftKind.TABLE_REPLACED):  # no model can declare it
            return True
        case Deviation(kind=DriftKind.COLUMN_ORDER):
            return moves_columns
        case Deviation(kind=DriftKind.COLUMN_RENAMED):
            return str(deviation.expected).lower() in declared
        case Deviation(difference=aspects.Difference(action=ColumnAdd(column))):
            return column.key in declared
        case Deviation(difference=aspects.Difference(action=ColumnDrop(column))):
            return column.key not in declared
    return (deviation.field, deviation.expected) in wanted


def _with_ignored(model: Model, drifted: DriftedResource, policy: Policy) -> Model:
    if not drifted.observed.exists:
        return model
    found = reverted_drift(model, drifted, policy)
    ignored = [detail.deviation for detail in found if detail.ignored_by is not None]
    return accepted(model, drifted.observed, ignored) if ignored else model


def _refusal(detail: ClassifiedDrift, model: Securable) -> DriftRefusal:
    finding, name = detail.finding, model.qualified_name
    by = f", by {finding.changed.who}" if finding.changed and finding.changed.who else ""
    at = f" at {finding.changed.at:%Y-%m-%d %H:%M:%S} UTC" if finding.changed and finding.changed.at else ""
    reason = (
        f"it was changed outside the engine{by}{at}, and a sync would revert that: {finding.field} "
        f"was applied as {finding.expected or 'absent'} and is {finding.actual or 'gone'}"
    )
    way_out = (
        f"{command('drift')} shows the details; {command('drift --accept')} takes the change into the models, "
        f"{command('drift --revert')} reverts it where a plan can, "
        "and `policy.drift: revert` lets every sync revert such changes."
    )
    if isinstance(model, Schema):
        return DriftRefusal(f"schema {name}: {reason}", location=model.declared_at, way_out=way_out)
    return DriftRefusal(reason, table=str(name), location=model.declared_at, way_out=way_out)
