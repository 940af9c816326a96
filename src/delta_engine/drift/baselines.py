"""What a table has besides its model, and the baseline that an apply leaves. Pure.

Unmanaged parts are constraints, clustering, comments and defaults that no model of the engine ever named. The first
apply records the existing ones. Removing them is not drift, and a revert restores them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TypeAlias, TypeVar

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import AS_APPLIED
from delta_engine.aspects.check_constraints import CheckDrop
from delta_engine.aspects.clustering import ChangeClustering
from delta_engine.aspects.comparison import Comparison, Renames
from delta_engine.aspects.foreign_keys import ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.models import CheckConstraint, ForeignKey, Table
from delta_engine.models.record import Record
from delta_engine.state.states import TableState, state_of

Subject: TypeAlias = tuple[DriftKind, str]
"""What a difference is about: its kind, and the part."""

_Part = TypeVar("_Part", ForeignKey, CheckConstraint)


def subject_of(difference: aspects.Difference) -> Subject:
    """Return the subject of a difference. A table has one primary key, whatever its name."""
    is_key = difference.kind is DriftKind.PRIMARY_KEY
    return difference.kind, "" if is_key else difference.change.subject


def unmanaged_parts(
    model: Table, observed: TableState, record: Record[Table] | None
) -> tuple[aspects.Difference, ...]:
    """Return the differences that a sync keeps."""
    if not observed.exists:
        return ()
    found = tuple(aspects.differences(Comparison.of(model, observed, policy=AS_APPLIED)))
    if not found:
        return ()
    planned = aspects.differences(Comparison.of(model, observed, record))
    subjects = {difference.change.subject for difference in planned}
    return tuple(difference for difference in found if difference.change.subject not in subjects)


def with_unmanaged_parts(model: Table, observed: TableState, earlier: Record[Table]) -> Table | None:
    """Return the baseline of an apply: the model with the prior unmanaged parts that are not drift; None without any.

    Recorded parts stay, under the model's names. Parts that are new since the last apply are drift and stay out.
    """
    known = earlier.with_unmanaged_parts
    if known is None and earlier.declared is not None:
        return None
    observed = _without_dropped(model, observed, earlier)
    if known is None:
        found = _with_parts(model, model, observed, earlier)
    else:
        kept = kept_by_plan(model, known, earlier)
        now = Renames.of(model, observed).applied_to(observed)
        comparison = Comparison.of(_with_names_of(model, known), now, policy=AS_APPLIED)
        drifted = {subject_of(one) for one in aspects.differences(comparison)}
        found = _with_parts(kept, model, observed, earlier, drifted)
    return None if found == model else found


def kept_by_plan(model: Table, known: Table, record: Record[Table]) -> Table:
    """Return a model with the unmanaged parts of a table that its plan keeps."""
    return _with_parts(model, model, _without_dropped(model, state_of(known), record), record)


def _with_parts(
    base: Table,
    model: Table,
    observed: TableState,
    record: Record[Table],
    excluded: Collection[Subject] = frozenset(),
) -> Table:
    parts = [one for one in unmanaged_parts(model, observed, record) if subject_of(one) not in excluded]
    return aspects.accept(base, Renames.of(model, observed).applied_to(observed), parts)


def _without_dropped(model: Table, observed: TableState, record: Record[Table]) -> TableState:
    """Return a table without the unmanaged parts that a plan has to drop, such as checks on dropped columns."""
    for action in aspects.diff(Comparison.of(model, observed, record)):
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
