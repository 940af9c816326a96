"""Compares one table with what was applied to it last: deviations, field by field. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import AS_APPLIED, Policy
from delta_engine.aspects.renames import with_renames, without_declared_renames
from delta_engine.deployment.attempts import not_of_runs
from delta_engine.deployment.left_alone import carried, drift_of, exact_differences
from delta_engine.models import Table
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One thing in which a table is not as it was applied.

    Args:
        kind: what was done.
        field: what it was done to.
        expected: as it was applied; None for what was not there.
        actual: as it is; None for what is gone.
        difference: what the aspects make of it; None for what no aspect knows.
    """

    kind: DriftKind
    field: str
    expected: str | None
    actual: str | None
    difference: aspects.Difference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What is recorded of a table.

    Args:
        table: as it was applied last.
        column_order: the names in the table's order after that; None where nobody looked.
        renames: what was renamed since, new names by old ones.
        attempted: what runs attempted since and did not bring to an end.
        with_others: the same table with what was there beside it from the beginning; None if nothing was.
        policy: how a table is held against it.
    """

    table: Table
    column_order: tuple[str, ...] | None = None
    renames: Mapping[str, str]
    attempted: tuple[Table, ...] = ()
    with_others: Table | None = None
    policy: Policy = AS_APPLIED

    @property
    def left(self) -> Table:
        """The table as it was left, with what is somebody else's."""
        return self.with_others or self.table


def deviations(applied: Applied, observed: TableState) -> tuple[Deviation, ...]:
    """Return how an existing table differs from what was applied, but for what is nobody's drift.

    That is what unfinished runs can have done, and what was left alone from the beginning.
    """
    others = _now(applied.with_others, applied) if applied.with_others else None
    found = drift_of(_now(applied.table, applied), others, observed, applied.policy)
    attempted = [with_renames(model, applied.renames) for model in applied.attempted]
    if others:
        attempted = [carried(model, others, (applied.table, *attempted)) for model in attempted]
    drifted = not_of_runs(found, attempted, observed, applied.policy)
    return (*_renamed(applied), *map(_deviation, drifted), *_reordered(applied, observed))


def excused(applied: Applied, observed: TableState) -> tuple[Deviation, ...]:
    """Return how an existing table differs from what was applied and left alone without being anybody's drift."""
    if not applied.attempted and applied.with_others is None:
        return ()
    drift = {(one.kind, one.field, one.actual) for one in deviations(applied, observed)}
    settled = replace(applied, attempted=())
    differences = exact_differences(_now(applied.left, applied), observed, applied.policy)
    everything = (*_renamed(settled), *map(_deviation, differences), *_reordered(settled, observed))
    return tuple(one for one in everything if (one.kind, one.field, one.actual) not in drift)


def accepted(model: Table, observed: TableState, taken: Sequence[Deviation]) -> Table:
    """Return a model that takes the observed side of some deviations, and keeps its own in all others.

    Args:
        model: what was applied last, or what is declared now.
        observed: the table as it is.
        taken: which deviations, as `deviations` returns them.
    """
    renames = {str(one.expected): str(one.actual) for one in taken if one.kind is DriftKind.COLUMN_RENAMED}
    model = with_renames(model, renames)
    differences = (one.difference for one in taken if one.difference is not None)
    model = aspects.accept(model, observed, differences)
    if any(one.kind is DriftKind.COLUMN_ORDER for one in taken):
        places = {column.key: place for place, column in enumerate(observed.columns)}
        ordered = sorted(model.columns, key=lambda column: places.get(column.key, len(places)))
        model = replace(model, columns=tuple(ordered))
    return model


def _now(table: Table, applied: Applied) -> Table:
    """Return a table by the names that its columns have by now."""
    return without_declared_renames(with_renames(table, applied.renames))


def _renamed(applied: Applied) -> Iterator[Deviation]:
    for old, new in applied.renames.items():
        if all(old.lower() in {column.key for column in model.columns} for model in applied.attempted):
            yield Deviation(kind=DriftKind.COLUMN_RENAMED, field=f"column {old}", expected=old, actual=new)


def _deviation(difference: aspects.Difference) -> Deviation:
    return Deviation(
        kind=difference.kind,
        field=difference.change.subject,
        expected=difference.change.desired,
        actual=difference.change.observed,
        difference=difference,
    )


def _reordered(applied: Applied, observed: TableState) -> tuple[Deviation, ...]:
    """Compare the order of the columns that both sides have with the order after the apply."""
    if applied.column_order is None or applied.attempted:
        return ()  # nobody looked, or a run was moving them
    new_names = {old.lower(): new.lower() for old, new in applied.renames.items()}
    recorded = [name.lower() for name in applied.column_order] or [
        column.key for column in applied.table.columns
    ]
    expected = [new_names.get(name, name) for name in recorded]
    shared = {column.key for column in observed.columns} & {*expected}
    wanted = [name for name in expected if name in shared]
    actual = [column.key for column in observed.columns if column.key in shared]
    if wanted == actual:
        return ()
    return (
        Deviation(
            kind=DriftKind.COLUMN_ORDER,
            field="column order",
            expected=f"({', '.join(wanted)})",
            actual=f"({', '.join(actual)})",
        ),
    )
