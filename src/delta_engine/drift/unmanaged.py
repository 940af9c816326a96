"""Unmanaged parts: parts of a table that no model declares and a sync keeps. Pure.

They are constraints, clustering, comments and defaults that no model of the engine ever named. The first apply records
the existing ones. Removing them is not drift, and a revert restores them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import AS_APPLIED
from delta_engine.aspects.check_constraints import CheckDrop
from delta_engine.aspects.clustering import ChangeClustering
from delta_engine.aspects.comparison import Comparison, Renames
from delta_engine.aspects.delta_properties import is_set_by_platform
from delta_engine.aspects.foreign_keys import ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.deployment.definitions import as_table
from delta_engine.deployment.document import ResourceMetadata
from delta_engine.deployment.recorded_models import models_of, table_with_unmanaged_parts
from delta_engine.deployment.resources import resource_key
from delta_engine.drift.drift_report import UnmanagedPart
from delta_engine.models import CheckConstraint, ForeignKey, Part, Table
from delta_engine.state.states import CatalogState, TableState, state_of

Subject: TypeAlias = tuple[DriftKind, str]
"""What a difference is about: its kind, and the part."""

_Part = TypeVar("_Part", ForeignKey, CheckConstraint)


def unmanaged_parts(
    model: Table, observed: TableState, ours: Sequence[Table] = ()
) -> tuple[aspects.Difference, ...]:
    """Return the differences that a sync keeps; `ours` are the applied and attempted models."""
    if not observed.exists:
        return ()
    found = tuple(aspects.differences(Comparison.of(model, observed, policy=AS_APPLIED)))
    if not found:
        return ()
    planned = aspects.differences(Comparison.of(model, observed, attempted=ours))
    subjects = {difference.change.subject for difference in planned}
    return tuple(difference for difference in found if difference.change.subject not in subjects)


def with_unmanaged_parts(model: Table, observed: TableState, earlier: ResourceMetadata | None) -> Table:
    """Return the baseline of an apply: the model with the prior unmanaged parts that are not drift.

    Recorded parts stay, under the model's names. Parts that are new since the last apply are drift and stay out.
    """
    ours = models_of(earlier) if earlier else ()
    observed = _without_dropped(model, observed, ours)
    if earlier is None or earlier.definition is None:
        return _with_parts(model, model, observed, ours)
    known = table_with_unmanaged_parts(earlier) or as_table(earlier.definition)
    kept = kept_by_plan(model, known, ours)
    now = Renames.of(model, observed).applied_to(observed)
    comparison = Comparison.of(_with_names_of(model, known), now, policy=AS_APPLIED)
    drifted = {subject_of(one) for one in aspects.differences(comparison)}
    return _with_parts(kept, model, observed, ours, drifted)


def kept_by_plan(model: Table, known: Table, ours: Sequence[Table]) -> Table:
    """Return a model with the unmanaged parts that its plan keeps; `ours` as in `unmanaged_parts`."""
    return _with_parts(model, model, _without_dropped(model, state_of(known), ours), ours)


def listed_parts(
    models: Iterable[Table], observed: CatalogState, applied: Mapping[str, Table]
) -> Iterator[UnmanagedPart]:
    """Yield the unmanaged parts of tables, and properties that no platform sets; `applied` is by table key."""
    for model in models:
        last, table = applied.get(model.key), observed.table(model.qualified_name)
        resource = resource_key(model.qualified_name)
        for one in unmanaged_parts(model, table, (last,) if last else ()):
            yield UnmanagedPart(resource=resource, key=one.change.subject, value=one.change.observed or "")
        if not model.is_about(Part.PROPERTIES):
            continue
        known = {*model.effective_table_properties, *(last.effective_table_properties if last else ())}
        for name, value in table.table_properties.items():
            if name not in known and not is_set_by_platform(name):
                yield UnmanagedPart(resource=resource, key=name, value=value)


def subject_of(difference: aspects.Difference) -> Subject:
    """Return the subject of a difference. A table has one primary key, whatever its name."""
    is_key = difference.kind is DriftKind.PRIMARY_KEY
    return difference.kind, "" if is_key else difference.change.subject


def _with_parts(
    base: Table,
    model: Table,
    observed: TableState,
    ours: Sequence[Table],
    excluded: Collection[Subject] = frozenset(),
) -> Table:
    parts = [one for one in unmanaged_parts(model, observed, ours) if subject_of(one) not in excluded]
    return aspects.accept(base, Renames.of(model, observed).applied_to(observed), parts)


def _without_dropped(model: Table, observed: TableState, ours: Sequence[Table]) -> TableState:
    """Return a table without the unmanaged parts that a plan has to drop, such as checks on dropped columns."""
    for action in aspects.diff(Comparison.of(model, observed, attempted=ours)):
        match action:
            case ChangeClustering(desired):
                observed = replace(observed, cluster_by=desired)
            case PrimaryKeyDrop():
                observed = replace(observed, primary_key=None)
            case ForeignKeyDrop(key, is_remade=False):
                observed = replace(observed, foreign_keys=_without(observed.foreign_keys, key))
            case CheckDrop(check, is_remade=False):
                observed = replace(observed, checks=_without(observed.checks, check))
    return observed


def _without(parts: tuple[_Part, ...], part: _Part) -> tuple[_Part, ...]:
    return tuple(one for one in parts if one != part)


def _with_names_of(model: Table, known: Table) -> Table:
    state = state_of(known)
    renamed = Renames.of(model, state).applied_to(state)
    return replace(
        known, columns=renamed.columns, cluster_by=renamed.cluster_by, partitioned_by=renamed.partitioned_by
    )
