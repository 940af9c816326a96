"""What a view has to precede and to follow so that it resolves after every statement of a plan.

A view that stops reading a column changes before the column goes. A view that begins to read a column changes after the
column has come. A column that is renamed does both at once: the view reads the table's columns by their position while
the name changes (`sql.view_queries.without_names`). If it also begins to read a new column of that table, its former
query names the columns that it reads until the new one has come (`sql.view_queries.with_columns`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from delta_engine.actions import Order, Place, Turn
from delta_engine.models.views import SchemaMode
from delta_engine.sql.view_queries import Reads

_EARLY: Final = (Turn.RENAME_COLUMNS, Turn.ADD_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """How a plan changes the columns of a table or a view, all in lower case.

    Args:
        before: None for a missing one.
        after: None for one that is dropped; as before if they are unknown.
        renamed: the new names of columns, by former name; views have none.
        is_view: whether one statement changes all of its columns.
        is_known: whether the new columns of a view are known.
    """

    before: frozenset[str] | None
    after: frozenset[str] | None
    renamed: Mapping[str, str] = field(default_factory=dict)
    is_view: bool = False
    is_known: bool = True

    @property
    def lost(self) -> frozenset[str]:
        """The columns that go, without renamed ones."""
        return (self.before or frozenset()) - (self.after or frozenset()) - {*self.renamed}

    @property
    def gained(self) -> frozenset[str]:
        """The columns that come, without renamed ones."""
        return (self.after or frozenset()) - (self.before or frozenset()) - {*self.renamed.values()}


class Side(NamedTuple):
    """A view before or after a plan.

    Args:
        mode: None for the platform's default, which does not evolve.
        bound: the columns of tables, also below other views, that have to keep their types: table and column.
        swapped: the columns of tables, also below other views, that it needs and that other columns take the places of.
        kept: the columns that the view returned when its query was set, and keeps; empty if they are unknown.
    """

    reads: Reads
    mode: SchemaMode | None
    bound: frozenset[tuple[str, str]] = frozenset()
    swapped: frozenset[tuple[str, str]] = frozenset()
    kept: frozenset[str] = frozenset()

    def of_types(self) -> Side:
        """Return the view as far as types of columns matter to it."""
        return self._replace(reads=_NOTHING.reads)

    def names(self, key: str, columns: Collection[str]) -> bool:
        """Whether it matters to the view that one of some columns of a table or view is there."""
        return bool(self.named(key, columns))

    def named(self, key: str, columns: Collection[str]) -> frozenset[str]:
        """Return those of some columns of a table or view that have to be there, by name or by a star."""
        named = self.reads.columns.get(key, frozenset()).intersection(columns)
        if named or key not in self.reads.spread or self.mode is SchemaMode.EVOLUTION:
            return named
        return self.kept.intersection(columns) if self.kept else frozenset(columns)

    def needs(self, key: str, columns: Collection[str]) -> bool:
        """Whether some columns of a table or view make up what the view returns, or are named by its query."""
        return bool(columns) and (key in self.reads.spread or self.names(key, columns))

    def counts(self, key: str, columns: Collection[str]) -> bool:
        """Whether it matters to the view that some columns come or go because it needs a certain number of them."""
        return bool(columns) and key in self.reads.counted


_NOTHING: Final = Side(Reads({}, frozenset(), frozenset(), is_sure=True), None)


def order_of(observed: Sequence[Side], desired: Side | None, moved: Mapping[str, Moved]) -> Order:
    """Return where the change of a view belongs among the changes of what it reads.

    Args:
        observed: with each query that the view may have; empty for a new view.
        desired: None for a view that is dropped.
        moved: what the plan changes, by key.
    """
    precedes = {place for side in observed for place in _leaves(side, moved)}
    follows = {*(_arrives(desired, moved) if desired else ())}
    new = desired or _NOTHING
    bound = _NOTHING.bound.union(*(side.bound for side in observed))
    swapped = _NOTHING.swapped.union(*(side.swapped for side in observed))
    precedes |= {(key, Turn.DROP_COLUMNS) for key, _ in bound - new.bound}  # types change then
    precedes |= {(key, Turn.ADD_COLUMNS) for key, _ in swapped - new.swapped}  # conversions begin then
    follows |= {(key, Turn.DROP_COLUMNS) for key, _ in (new.bound - bound) | (new.swapped - swapped)}
    added = {key for key, turn in follows if turn is Turn.ADD_COLUMNS}
    renamed = {key for key, turn in follows if turn is Turn.RENAME_COLUMNS}
    narrowed = {key for key, turn in precedes if turn in _EARLY and key in added}
    bridged = {key for key, turn in precedes if turn is Turn.RENAME_COLUMNS and key in narrowed | renamed}
    narrowed |= bridged if narrowed else set()
    renames = {(key, Turn.RENAME_COLUMNS) for key in bridged}
    return Order(
        precedes=frozenset(precedes - renames - {(key, Turn.ADD_COLUMNS) for key in narrowed}),
        follows=frozenset(follows - renames),
        bridged=frozenset(bridged),
        narrowed=frozenset(narrowed),
    )


def broken_by(view: Side, moved: Mapping[str, Moved]) -> Iterator[tuple[str, frozenset[str] | None]]:
    """Yield what a view that the plan does not change reads and loses: a key, and the columns or None for all."""
    for key in sorted({*view.reads.columns} & {*moved}):
        change = moved[key]
        if change.before is not None and change.after is None:
            yield key, None
            continue
        gone = change.lost | {*change.renamed}
        if view.names(key, gone) or view.counts(key, change.lost | change.gained):
            yield key, view.named(key, gone) or gone


def _leaves(view: Side, moved: Mapping[str, Moved]) -> Iterator[Place]:
    """Yield the changes that the former query of a view does not survive, or that would change what it returns."""
    for key in {*view.reads.columns} & {*moved}:
        change = moved[key]
        if change.after is None:
            yield key, Turn.DROP
        elif change.is_view:
            if view.needs(key, change.lost) or view.counts(key, change.lost | change.gained):
                yield key, Turn.QUERY
        else:
            if view.needs(key, change.renamed):
                yield key, Turn.RENAME_COLUMNS
            if view.counts(key, change.gained):
                yield key, Turn.ADD_COLUMNS
            if view.needs(key, change.lost) or view.counts(key, change.lost):
                yield key, Turn.DROP_COLUMNS


def _arrives(view: Side, moved: Mapping[str, Moved]) -> Iterator[Place]:
    """Yield the changes that the new query of a view needs.

    A star names the columns that are there when it is set: all that come have to be there for views that read it, and
    those that go must not be there unless the view evolves.
    """
    for key in {*view.reads.columns} & {*moved}:
        change = moved[key]
        evolves = view.mode is SchemaMode.EVOLUTION
        is_bound = view.counts(key, change.lost) or (key in view.reads.spread and not evolves)
        if change.before is None:
            yield key, Turn.CREATE
        elif change.is_view:
            if (
                view.needs(key, change.gained)
                or view.counts(key, change.gained)
                or (is_bound and change.lost)
                or not change.is_known
            ):
                yield key, Turn.QUERY
        else:
            if view.needs(key, change.renamed.values()):
                yield key, Turn.RENAME_COLUMNS
            if view.needs(key, change.gained) or view.counts(key, change.gained):
                yield key, Turn.ADD_COLUMNS
            if is_bound and change.lost:
                yield key, Turn.DROP_COLUMNS
