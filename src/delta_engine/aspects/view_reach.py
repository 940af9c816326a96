"""What a view has to precede and to follow so that it resolves after every statement of a plan.

What a plan changes of a table or a view is a sequence of states: the facts that hold before it, and after each change.
A query needs some of these facts. One that goes is set aside before the first state that lacks one of them, and one
that comes is set in a state from which on all of them hold. A renamed column leaves no such moment: the view reads the
table's columns by their position while the name changes (`sql.view_queries.without_names`). If it also begins to read a
new column of that table, its former query names the columns that it reads until the new one has come
(`sql.view_queries.with_columns`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from delta_engine.actions import Place, Setting, Turn

Fact: TypeAlias = tuple[str, str]
"""A column with its origin, by which one of the same name is another one; or, without a name, a fact of the whole."""

State: TypeAlias = frozenset[Fact]
"""The facts of a table or a view at a moment of a plan; none while it is missing."""

Needs: TypeAlias = Mapping[tuple[str, bool], State]
"""The facts that a query needs, by the key of the table or view, and whether it reads it only through other views."""

Column: TypeAlias = tuple[str, str]
"""A column of a table: the key of the table, and its name in lower case."""

ABSENT: Final[State] = frozenset()
EXISTS: Final[Fact] = ("", "exists")
UNKNOWN: Final[Fact] = ("", "unknown")
"""The fact of a view that a plan gives a query with unknown columns, for which its readers wait."""

_TYPE: Final = "type of\0"

_BRIDGED: Final = frozenset({Turn.RENAME_COLUMNS, Turn.ADD_COLUMNS})
"""The changes during which another query can stand."""


def state_of(columns: Mapping[str, str], whole: object, *others: Fact) -> State:
    """Return the state with some columns.

    Args:
        columns: their origins by name.
        whole: what matters to a query that needs a certain number of columns.
    """
    return frozenset({*columns.items(), EXISTS, ("", f"has {whole}"), *others})


def type_of(column: str, *, is_new: bool) -> Fact:
    """Return the fact that a column has its former or its new type."""
    return (f"{_TYPE}{column}", "new" if is_new else "former")


def is_about_types(fact: Fact) -> bool:
    """Whether a fact is about the type of a column."""
    return fact[0].startswith(_TYPE)


def typed_columns(needs: Needs) -> Set[Column]:
    """Return the columns whose types a query needs."""
    return {
        (table, name.removeprefix(_TYPE))
        for (table, _), facts in of_types(needs).items()
        for name, _ in facts
    }


def counts_columns(facts: State) -> bool:
    """Whether some facts are of a query that needs a certain number of columns."""
    return any(not name and (name, whole) not in (EXISTS, UNKNOWN) for name, whole in facts)


def of_types(needs: Needs) -> Needs:
    """Return what a query needs of the types of columns alone."""
    return {key: frozenset(filter(is_about_types, facts)) for key, facts in needs.items()}


class Moved(NamedTuple):
    """What a plan changes of a table or a view.

    Args:
        states: before the plan, and after each turn.
    """

    turns: Sequence[Turn]
    states: Sequence[State]

    def needed(self, place: int, names: Collection[str] | None, *, is_counted: bool) -> State:
        """Return the facts of one of the states that a query needs.

        Args:
            names: those of the columns that it reads; None for all.
            is_counted: whether it needs a certain number of columns.
        """

        def is_needed(fact: Fact) -> bool:
            name, _ = fact
            if not name:
                return is_counted or fact in (EXISTS, UNKNOWN)
            return not is_about_types(fact) and (names is None or name in names)

        return frozenset(filter(is_needed, self.states[place]))

    def lost(self, needed: State) -> State:
        """Return the facts that a change takes, perhaps for a while."""
        return needed - frozenset.intersection(*self.states)

    def end_of(self, needed: State) -> int:
        """Return the number of the first state that lacks one of some facts; one too high if none does."""
        return next(
            (place for place, state in enumerate(self.states) if not needed <= state), len(self.states)
        )

    def start_of(self, needed: State) -> int:
        """Return the number of the state from which on all of some facts hold."""
        return max((place + 1 for place, state in enumerate(self.states) if not needed <= state), default=0)


class Reach(NamedTuple):
    """The changes of tables and views that a change of a view has to precede or to follow.

    Args:
        bridged: the keys of tables whose columns it has to read by position while they are renamed.
        narrowed: the keys of tables of which it has to read no more columns than before, until its own query is set.
    """

    precedes: frozenset[Place]
    follows: frozenset[Place]
    bridged: frozenset[str]
    narrowed: frozenset[str]

    def settings(self, queries: Sequence[str]) -> Sequence[Setting]:
        """Return the places of queries that stand for a while, and of the own one of the view."""
        if not queries:
            return [Setting(precedes=self.precedes, follows=self.follows)]
        renames = _places(self.bridged, Turn.RENAME_COLUMNS)
        if not self.narrowed:
            return [
                Setting(query=queries[0], precedes=self.precedes | renames, follows=self.follows),
                Setting(precedes=_places(self.bridged, Turn.ADD_COLUMNS, Turn.DROP_COLUMNS), follows=renames),
            ]
        *first, last = queries
        return [
            *(Setting(query=query, is_new=False, precedes=renames) for query in first),
            Setting(
                query=last,
                is_new=False,
                precedes=_places(self.narrowed, Turn.ADD_COLUMNS),
                follows=_places(self.narrowed, Turn.RENAME_COLUMNS),
            ),
            Setting(precedes=self.precedes | _places(self.narrowed, Turn.DROP_COLUMNS), follows=self.follows),
        ]


def _places(keys: Iterable[str], *turns: Turn) -> frozenset[Place]:
    return frozenset((key, turn) for key in keys for turn in turns)


def reach_of(
    observed: Sequence[Needs],
    desired: Needs,
    moved: Mapping[str, Moved],
    *,
    bridged_turns: Set[Turn] = _BRIDGED,
) -> Reach:
    """Return where the change of a view belongs among the changes of what it reads.

    Args:
        observed: what each query needs that the view may have; empty for a new view.
        desired: what its new query needs.
        bridged_turns: the changes during which another query can stand. Without them, the view and its table may wait
            for each other.
    """
    precedes, follows, bridged, narrowed = set[Place](), set[Place](), set[str](), set[str]()
    for read in {*desired, *chain.from_iterable(observed)}:
        (key, is_below), change = read, moved[read[0]]
        end = min(change.end_of(needs.get(read, ABSENT)) for needs in (*observed, {}))
        start = change.start_of(desired.get(read, ABSENT))
        leaves, arrives = change.turns[end - 1 : end], change.turns[start - 1 : start] if start else ()
        if start < end or is_below or not {*leaves, *arrives} <= bridged_turns:
            precedes |= {(key, turn) for turn in leaves}
            follows |= {(key, turn) for turn in arrives}
            continue
        if Turn.RENAME_COLUMNS in leaves:
            bridged.add(key)
        if Turn.ADD_COLUMNS in arrives:
            narrowed.add(key)
            follows.add((key, Turn.ADD_COLUMNS))
    return Reach(
        precedes=frozenset(precedes),
        follows=frozenset(follows),
        bridged=frozenset(bridged),
        narrowed=frozenset(narrowed | bridged if narrowed else narrowed),
    )
