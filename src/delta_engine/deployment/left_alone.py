"""What defines a table beside its model and was there before this engine came: somebody else's, and no drift. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import AS_APPLIED, Policy
from delta_engine.aspects.aspect import Comparison
from delta_engine.aspects.check_constraints import CheckDrop
from delta_engine.aspects.clustering import ChangeClustering
from delta_engine.aspects.foreign_keys import ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.aspects.renames import Renames
from delta_engine.deployment.definitions import as_table
from delta_engine.deployment.document import Difference, ResourceMetadata
from delta_engine.models import CheckConstraint, ForeignKey, Table
from delta_engine.state.states import TableState, state_of

_Thing: TypeAlias = tuple[DriftKind, str]
_Part = TypeVar("_Part", ForeignKey, CheckConstraint)


def beside(model: Table, observed: TableState, ours: Sequence[Table] = ()) -> tuple[aspects.Difference, ...]:
    """Return what defines a table beside its model, and a sync leaves alone: it is somebody else's.

    Args:
        model: the model.
        observed: the table.
        ours: what this engine applied or attempted so far.
    """
    found = tuple(exact_differences(model, observed)) if observed.exists else ()
    if not found:
        return ()
    undone = aspects.differences(Comparison.of(model, observed, attempted=ours))
    subjects = {difference.change.subject for difference in undone}
    return tuple(difference for difference in found if difference.change.subject not in subjects)


def with_others(model: Table, observed: TableState, earlier: ResourceMetadata | None) -> Table:
    """Return a model with what is beside it and no drift: what was there before the engine came.

    What was on record stays there, under the model's names; the model itself if there is nothing of the kind.

    Args:
        model: what is applied.
        observed: the table before that.
        earlier: what is on record of it.
    """
    ours = ours_of(earlier) if earlier else ()
    observed = _without_lost(model, observed, ours)
    if earlier is None or earlier.definition is None:
        return _taking(model, model, observed, ours)
    known = others_of(earlier) or as_table(earlier.definition)
    kept = carried(model, known, ours)
    now = Renames.of(model, observed).applied_to(observed)
    drifted = {_thing(one) for one in exact_differences(_in_names_of(model, known), now)}
    return _taking(kept, model, observed, ours, drifted)


def carried(model: Table, known: Table, ours: Sequence[Table]) -> Table:
    """Return a model with what a plan for it leaves alone of a table.

    Args:
        model: the model.
        known: the table, with what is somebody else's in it.
        ours: what this engine put there.
    """
    return _taking(model, model, _without_lost(model, state_of(known), ours), ours)


def ours_of(metadata: ResourceMetadata) -> tuple[Table, ...]:
    """Return what this engine put there, wholly or in part: what was applied last, and what was attempted since."""
    definitions = (*((metadata.definition,) if metadata.definition else ()), *metadata.attempted)
    return tuple(map(as_table, definitions))


def others_of(metadata: ResourceMetadata) -> Table | None:
    """Return a table as it was applied last, with what was left alone in it; None if nothing was."""
    return as_table(metadata.with_others) if metadata.with_others else None


def drift_of(
    applied: Table, with_others: Table | None, observed: TableState, policy: Policy = AS_APPLIED
) -> tuple[aspects.Difference, ...]:
    """Return in what a table is not as it was left. What somebody else takes away again of his own is no drift.

    Args:
        applied: what was applied last.
        with_others: the same with what was left alone in it; None if nothing was.
        observed: the table.
        policy: whose the things are that neither names.
    """
    found = tuple(exact_differences(with_others or applied, observed, policy))
    if not found or with_others is None:
        return found
    things = {_thing(one) for one in exact_differences(applied, observed, policy)}
    return tuple(one for one in found if _thing(one) in things)


def exact_differences(
    model: Table, observed: TableState, policy: Policy = AS_APPLIED
) -> Iterator[aspects.Difference]:
    """Yield all in which a table is not as a model, whosesoever it is."""
    return aspects.differences(Comparison.of(model, observed, policy=policy))


def as_difference(found: aspects.Difference) -> Difference:
    """Return a difference as documents have it."""
    return Difference(field=found.change.subject, expected=found.change.desired, actual=found.change.observed)


def _taking(
    base: Table,
    model: Table,
    observed: TableState,
    ours: Sequence[Table],
    but: Collection[_Thing] = frozenset(),
) -> Table:
    """Return a table with what is beside a model in it, by the model's names."""
    taken = [one for one in beside(model, observed, ours) if _thing(one) not in but]
    return aspects.accept(base, Renames.of(model, observed).applied_to(observed), taken)


def _without_lost(model: Table, observed: TableState, ours: Sequence[Table]) -> TableState:
    """Return a table without what a plan takes away of others', such as checks on columns that go."""
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


def _in_names_of(model: Table, known: Table) -> Table:
    """Return what is on record with the names that a model gives columns and fields; keys keep theirs."""
    state = state_of(known)
    renamed = Renames.of(model, state).applied_to(state)
    return replace(
        known,
        columns=renamed.columns,
        cluster_by=renamed.cluster_by,
        partitioned_by=renamed.partitioned_by,
    )


def _thing(difference: aspects.Difference) -> _Thing:
    """Return what a difference is about; a table has one primary key, whatever its name."""
    is_key = difference.kind is DriftKind.PRIMARY_KEY
    return difference.kind, "" if is_key else difference.change.subject
