"""What defines a table beside its model and was there before this engine came: somebody else's, and no drift. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec

from delta_engine import aspects
from delta_engine.aspects.aspect import Comparison
from delta_engine.aspects.clustering import places_of
from delta_engine.aspects.foreign_keys import ARROW
from delta_engine.deployment.definitions import as_table
from delta_engine.deployment.document import Difference, ResourceMetadata
from delta_engine.models import Part, QualifiedName, Table
from delta_engine.policy import AS_APPLIED
from delta_engine.sql_expressions import is_same_expression
from delta_engine.state.states import TableState

_CHECK, _FOREIGN_KEY = "check ", "foreign key "


def beside(model: Table, observed: TableState, ours: Sequence[Table] = ()) -> tuple[Difference, ...]:
    """Return what defines a table beside its model, and a sync leaves alone: it is somebody else's.

    Args:
        model: the model.
        observed: the table.
        ours: what this engine applied or attempted so far.
    """
    if not observed.exists:
        return ()
    undone = aspects.differences(Comparison.of(model, observed, attempted=ours))
    subjects = {difference.change.subject for difference in undone}
    return tuple(
        as_difference(difference)
        for difference in exact_differences(model, observed)
        if difference.change.subject not in subjects
    )


def left_alone(
    model: Table, observed: TableState, earlier: ResourceMetadata | None
) -> tuple[Difference, ...]:
    """Return what is beside a model and no drift: what was there before the engine came, by the model's names.

    What was on record stays there, for a rename may be undone.

    Args:
        model: what is applied.
        observed: the table before that.
        earlier: what is on record of it.
    """
    after = _without_lost_clustering(model, observed)
    if earlier is None or earlier.definition is None:
        return beside(model, after, tuple(map(as_table, earlier.attempted)) if earlier else ())
    applied = as_table(earlier.definition)
    drift = {
        one.field
        for one in map(as_difference, exact_differences(applied, observed))
        if not is_among(one, earlier.left_alone)
    }
    ours = (applied, *map(as_table, earlier.attempted))
    found = {one.field: one for one in beside(model, after, ours) if one.field not in drift}
    return (*(one for one in earlier.left_alone if one.field not in found), *found.values())


def _without_lost_clustering(model: Table, observed: TableState) -> TableState:
    """Return a table without the columns in its clustering that go with a model: plans take them out."""
    if not model.is_about(Part.COLUMNS):
        return observed
    kept = {column.key for column in model.columns}
    kept |= {column.renamed_from.lower() for column in model.columns if column.renamed_from}
    left = (name for name in observed.cluster_by if not kept.isdisjoint(places_of(name)))
    return replace(observed, cluster_by=tuple(left))


def is_among(difference: Difference, known: Iterable[Difference]) -> bool:
    """Whether a difference is a known one; checks, which plans take out of the way and add again, in normal form."""
    return any(
        one == difference
        or (
            one.field == difference.field
            and one.field.startswith(_CHECK)
            and one.expected is None
            and difference.expected is None
            and is_same_expression(one.actual or "", difference.actual or "")
        )
        for one in known
    )


def with_renamed_parent(known: Difference, former: QualifiedName, name: QualifiedName) -> Difference:
    """Return a difference as it is once a table has another name: foreign keys to it follow."""
    if not known.field.startswith(_FOREIGN_KEY) or known.actual is None:
        return known
    actual = known.actual.replace(f"{ARROW}{former.key} (", f"{ARROW}{name.key} (")
    return msgspec.structs.replace(known, actual=actual)


def exact_differences(model: Table, observed: TableState) -> Iterator[aspects.Difference]:
    """Yield all in which a table is not as a model, whosesoever it is."""
    return aspects.differences(Comparison.of(model, observed, policy=AS_APPLIED))


def as_difference(found: aspects.Difference) -> Difference:
    """Return a difference as documents have it."""
    return Difference(field=found.change.subject, expected=found.change.desired, actual=found.change.observed)
