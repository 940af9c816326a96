"""The tables and views before and after a plan: their columns and queries, and what each view needs of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, TypeAlias

from delta_engine.actions import (
    Align,
    Drop,
    TablePlan,
    Turn,
)
from delta_engine.aspects.backfill_actions import AbandonConversion, DropFormerColumn, SwapColumn
from delta_engine.aspects.column_renames import renamed_columns
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop
from delta_engine.aspects.conversions import new_name, old_name
from delta_engine.aspects.table_names import RenameTable
from delta_engine.aspects.view_definition import (
    AlterViewQuery,
    RenameView,
)
from delta_engine.aspects.view_needs import TURNS
from delta_engine.aspects.view_reach import (
    ABSENT,
    EXISTS,
    UNKNOWN,
    Column,
    Moved,
    Needs,
    State,
    state_of,
    type_of,
)
from delta_engine.models import Part, QualifiedName, SchemaMode, Table, View, ViewName
from delta_engine.models.nested_types import Widening
from delta_engine.sql.missing_columns import is_failing
from delta_engine.sql.view_queries import (
    Reads,
    is_same_query,
    named_columns,
    read_columns,
    read_relations,
    returned_columns,
    retyped_columns,
)
from delta_engine.state.states import CatalogState, TableState
from delta_engine.state.view_states import ViewState

Relations = Mapping[str, Sequence[str]]
"""The columns of tables and views in lower case, by key."""

_Needed: TypeAlias = Iterator[tuple[tuple[str, bool], State]]

NOTHING: Final[frozenset[str]] = frozenset()


def relation_columns(tables: Iterable[Table], views: Iterable[View]) -> Relations:
    """Return the columns of declared tables and views by key, as far as the models have all of them."""
    columns: dict[str, Sequence[str]] = {
        table.key: [column.name for column in table.columns]
        for table in tables
        if table.is_about(Part.COLUMNS)
    }
    return with_views(columns, {view.key: view.query for view in views})


def with_views(columns: Relations, queries: Mapping[str, str]) -> Relations:
    """Return columns of relations with those that queries of views return, as far as these are known."""
    settled = dict(columns)
    for key in readers_last({key: (query,) for key, query in queries.items()}):
        if (returned := returned_columns(queries[key], settled)) is not None:
            settled[key] = returned
    return settled


def readers_last(queries: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield the keys of views, each after the views that its queries read, without those in circles."""
    waiting = {
        key: {name.key for query in several for name in read_relations(query) or ()}
        for key, several in queries.items()
    }
    while ready := [key for key, read in waiting.items() if read.isdisjoint(waiting)]:
        yield from ready
        waiting = {key: read for key, read in waiting.items() if key not in ready}


def readers_of(names: Set[str], views: Iterable[View]) -> list[View]:
    """Return the views that read some tables or views, also through other views."""
    reached, left = {*names}, [*views]
    readers: list[View] = []
    reads = {view.key: {name.key for name in read_relations(view.query) or ()} for view in left}
    while reading := [view for view in left if not reached.isdisjoint(reads[view.key])]:
        readers += reading
        reached |= {view.key for view in reading}
        left = [view for view in left if view.key not in reached]
    return readers


def widened_columns(plan: TablePlan) -> Set[Column]:
    """Return the columns of tables that get other types, by the names that they get."""
    return {
        (align.table.key, change.name.lower())
        for align in plan.align_tables
        for change in align.of_type(ColumnTypeChange)
        if change.widening is not Widening.NOTHING
    }


def renames(plan: TablePlan) -> Iterator[RenameTable | RenameView]:
    """Yield the renames of tables and views."""
    for align in plan.alignments:
        yield from align.of_type(RenameTable)
        yield from align.of_type(RenameView)


@dataclass(frozen=True)
class Side:
    """The tables and views before or after a plan.

    Args:
        relations: the columns of tables and views.
        queries: those that each view may have.
    """

    sides: Sides
    is_new: bool
    relations: Relations
    queries: Mapping[str, Sequence[str]]

    @cached_property
    def reads(self) -> Callable[[str], Reads | None]:
        """Return what a query reads; None if sqlglot does not read it."""
        return cache(lambda query: read_columns(query, self.relations))

    def mode(self, key: str) -> SchemaMode | None:
        """Return the schema mode of a view."""
        return self.sides.modes(key)[self.is_new]

    def needs_of(self, key: str, query: str, returned: Set[str] | None, counted: Set[str]) -> Needs:
        """Return the facts that a query of a view needs, also those of types that the view has to keep.

        Args:
            returned: the columns that its stars return; None for all.
            counted: the keys of those of which it needs a certain number of columns.
        """
        needs: dict[tuple[str, bool], State] = defaultdict(frozenset)
        if (reads := self.reads(query)) is not None:
            for read, facts in self._needed(reads, returned, counted, NOTHING):
                needs[read] |= facts
        for read, facts in self._kept_types(key, query):
            needs[read] |= facts
        return needs

    def counted_by(self, views: Set[str]) -> Set[str]:
        """Return what some views need a certain number of columns of, also through views that evolve."""
        counted = set[str]()
        for key in reversed([*readers_last(self.queries)]):
            for reads in filter(None, map(self.reads, self.queries[key])):
                if key in views:
                    counted |= reads.counted
                if key in counted and self.sides.evolves(key):
                    counted |= reads.spread
        return counted

    def _kept_types(self, key: str, query: str) -> _Needed:
        """Yield the facts of the types that a view has to keep."""
        for (table, name), outputs in self._typed.items() if self.mode(key) is SchemaMode.BINDING else ():
            if retyped_columns(query, self.relations, outputs):
                yield (table, True), frozenset({type_of(name, is_new=self.is_new)})

    def _needed(self, reads: Reads, returned: Set[str] | None, counted: Set[str], above: Set[str]) -> _Needed:
        for key, names in reads.columns.items():
            read: Set[str] | None = names
            if key in reads.spread:
                read = None if returned is None else names | returned
            yield from self._needed_of(key, read, key in counted, above)

    def _needed_of(self, key: str, names: Set[str] | None, is_counted: bool, above: Set[str]) -> _Needed:
        """Yield the facts of a table or view, and those below a view that evolves, or that is dropped.

        Args:
            above: the views through which the query reads it.
        """
        if (moved := self.sides.moved.get(key)) is not None:
            yield (key, bool(above)), moved.needed(-1 if self.is_new else 0, names, is_counted=is_counted)
        is_dropped = not self.is_new and key not in self.sides.queries_after
        is_set_before = not self.is_new and key in self.sides.set_again  # see `needs_before`
        for query in self.queries.get(key, ()) if key not in above else ():
            below = self.reads(query)
            if is_dropped:
                yield from self._kept_types(key, query)
            if below is not None and is_dropped:
                counted = below.counted | (below.spread if is_counted else NOTHING)
                yield from self._needed(below, None, counted, above | {key})
            elif below is not None and self.sides.evolves(key) and not is_set_before:
                for spread in below.spread:
                    yield from self._needed_of(spread, names, is_counted, above | {key})

    @cached_property
    def _typed(self) -> Mapping[Column, Mapping[str, frozenset[str]]]:
        """The columns of tables and views whose types change with each one that gets another type."""
        typed = {}
        for column in self.sides.retyped:
            table, name = column if self.is_new else self.sides.former(column)
            reached = typed[column] = {table: frozenset({name})}
            for key in filter(self.sides.passes_types, readers_last(self.queries)):
                outputs = (retyped_columns(query, self.relations, reached) for query in self.queries[key])
                if columns := frozenset[str]().union(*outputs):
                    reached[key] = columns
        return typed


@dataclass(frozen=True)
class Sides:
    """The tables and views before and after a plan."""

    plan: TablePlan
    views: Mapping[str, View]
    state: CatalogState

    @cached_property
    def possible(self) -> Mapping[str, Sequence[str]]:
        """The queries that each observed view may have; a hidden one that no run has set is as it is declared."""
        declared = {key: (view.query,) for key, view in self.views.items()}
        return {
            key: _standing(state, state.queries or declared.get(key, ("",)), self.views.get(key), self.fixed)
            for key, state in self.state.views.items()
            if state.exists
        }

    @cached_property
    def queries(self) -> Mapping[str, str]:
        """The observed queries by key: of several possible ones, the oldest of those whose names are clear."""
        return {key: queries[0] for key, queries in self.possible.items()}

    @cached_property
    def staying(self) -> Mapping[str, str]:
        """The observed queries of the views that no model of the plan declares, and that it does not drop."""
        gone = {*self.views, *(drop.name.key for drop in self.plan.of_kind(Drop, "view"))}
        return {key: query for key, query in self.queries.items() if key not in gone}

    @cached_property
    def before(self) -> Relations:
        """The columns before the plan; those of views that evolve are the ones that their queries return."""
        views = {key: state for key, state in self.state.views.items() if state.exists}
        shown = {_key_before(key, state): _keys(state) for key, state in views.items()}
        evolving = {
            _key_before(key, views[key]): query
            for key, query in self.queries.items()
            if views[key].evolves and len(views[key].queries) < 2
        }
        return with_views({**shown, **self.fixed}, evolving)

    @cached_property
    def fixed(self) -> Relations:
        """The observed columns of tables, and of views that do not evolve."""
        views = {key: state for key, state in self.state.views.items() if not state.evolves}
        states: Iterable[tuple[str, TableState | ViewState]] = (*self.state.tables.items(), *views.items())
        return {_key_before(key, state): _keys(state) for key, state in states if state.exists}

    @cached_property
    def after(self) -> Relations:
        """The columns after the plan, as far as they are known."""
        tables = {key: self.before[key] for key in self.state.tables if key in self.before}
        for align in self.plan.align_tables:
            gone = {drop.observed.key for drop in align.of_type(ColumnDrop)}
            gone |= {old_name(drop.name.lower()) for drop in align.of_type(DropFormerColumn)}
            abandoned = {name for table, name in self.abandoned if table == align.table.key}
            gone |= {*map(new_name, abandoned)}
            swapped = {new_name(swap.desired.key): swap.desired.key for swap in align.of_type(SwapColumn)}
            swapped |= {old_name(name): name for name in abandoned}
            names = self.renamed(align.table.key).items()
            kept = dict.fromkeys(swapped.get(new, new) for old, new in names if old not in gone)
            tables[align.table.key] = [*kept, *(add.desired.key for add in align.of_type(ColumnAdd))]
        for create in self.plan.create_tables:
            tables[create.table.key] = [column.key for column in create.columns]
        for drop in self.plan.drop_tables:
            tables.pop(drop.table.key, None)
        kept_views = {
            key: self.before[key]
            for key, query in self.queries_after.items()
            if key in self.before and self._keeps_columns(key, query)
        }
        changed = {key: query for key, query in self.queries_after.items() if key not in kept_views}
        return with_views({**tables, **kept_views}, changed)

    def _keeps_columns(self, key: str, query: str) -> bool:
        is_set = key in self.set_again or not is_same_query(self.queries.get(key), query)
        return not is_set and not self.evolves(key)

    @cached_property
    def set_again(self) -> Set[str]:
        """The views that get a query, perhaps the same one again."""
        aligns: Iterable[Align[Any]] = self.plan.of_kind(Align, "view")
        return {align.name.key for align in aligns if align.of_type(AlterViewQuery)}

    def modes(self, key: str) -> tuple[SchemaMode | None, SchemaMode | None]:
        """Return the schema modes of a view, before the plan and after it."""
        observed, view = self.state.views.get(key), self.views.get(key)
        mode = None if observed is None else observed.schema_mode
        return mode, (view and view.schema_mode) or mode

    def evolves(self, key: str) -> bool:
        """Whether a view evolves before the plan, or after it."""
        return SchemaMode.EVOLUTION in self.modes(key)

    def passes_types(self, key: str) -> bool:
        """Whether a view takes over the types of what it reads, before the plan or after it."""
        return SchemaMode.TYPE_EVOLUTION in self.modes(key) or self.evolves(key)

    @cached_property
    def moved(self) -> Mapping[str, Moved]:
        """The tables and views whose columns or types change, by key."""
        views = {*self.views, *self.state.views}
        changed = {key for key in {*self.before, *self.after} if self.before.get(key) != self.after.get(key)}
        changed |= self.queries_after.keys() - self.after.keys()
        changed |= {key for key, _ in self.retyped | self.swapped} | {*self._renames}
        moved = {
            key: self._moved_view(key) if key in views else self._moved_table(key)
            for key in sorted(changed - self.new_names.keys())
        }
        return {key: change for key, change in moved.items() if {*change.states} != {change.states[0]}}

    def _moved_view(self, key: str) -> Moved:
        """Return a view, or a table that comes or goes: all columns change at once, and may mean other ones."""
        is_set = key in self.set_again
        before, after = (
            state_of(dict.fromkeys(columns[key], ""), sorted(columns[key]) if is_set else len(columns[key]))
            if key in columns
            else ABSENT
            for columns in (self.before, self.after)
        )
        if key in self.queries_after:
            after = after or (before | {EXISTS, UNKNOWN})
        turn = Turn.DROP if not after else Turn.QUERY if before else Turn.CREATE
        return Moved((turn,), (before, after))

    def _moved_table(self, key: str) -> Moved:
        former_key, names = self._former_names.get(key, key), self.renamed(key)
        if former_key not in self.before or key not in self.after:
            return self._moved_view(key)
        swapped = {name for table, name in self.swapped if table == key}
        before, renamed = {name: name for name in names}, {new: old for old, new in names.items()}
        after = {name: "" if name in swapped else renamed.get(name, "") for name in self.after[key]}
        both = dict.fromkeys((rename(name) for name in swapped for rename in (new_name, old_name)), "")
        abandoned = {name for table, name in self.abandoned if table == key}
        gone = swapped.union(map(new_name, abandoned), map(old_name, abandoned))
        added = {name: origin for name, origin in (renamed | after | both).items() if name not in gone}
        retyped = [name for table, name in self.retyped if table == key]
        states = [
            state_of(columns, len(columns), *(type_of(name, is_new=columns is after) for name in retyped))
            for columns in (before, renamed, added, after)
        ]
        return Moved(TURNS, [ABSENT, *states]) if former_key != key else Moved(TURNS[1:], states)

    @cached_property
    def new_names(self) -> Mapping[str, QualifiedName | ViewName]:
        """The new names of tables and views, by the keys of their former ones."""
        return {rename.observed.key: rename.desired for rename in renames(self.plan)}

    def needs_after(self, view: View) -> Needs | None:
        """Return what a view needs as the plan leaves it; None if sqlglot does not read its query."""
        reads = self.new.reads(view.query)
        if reads is None:
            return None
        is_exact = self.new.mode(view.key) is not SchemaMode.EVOLUTION or view.key in self._counted
        counted = reads.counted | (reads.spread if is_exact else NOTHING)
        return self.new.needs_of(view.key, view.query, None, counted)

    def needs_before(self, key: str, *, stays: bool = False) -> Iterator[tuple[Reads, Needs]]:
        """Yield what a view reads and needs before the plan, with each query that it may have.

        An evolving view that gets another query leaves its own before it loses a column, and before it gets a column
        where another view counts its columns. So its readers need nothing of what is below it.

        Args:
            stays: whether its query stays: then it does not need what its star may lose.
        """
        kept = frozenset(column.key for column in self.state.views[key].columns) if stays else NOTHING
        returned = NOTHING if stays and self.evolves(key) else kept or None
        is_exact = key in self._counted_before & self.set_again and self.evolves(key)
        for query in self.possible.get(key, ()):
            if (reads := self.old.reads(query)) is not None:
                counted = reads.counted | (reads.spread if is_exact else NOTHING)
                yield reads, self.old.needs_of(key, query, returned, counted)

    @cached_property
    def old(self) -> Side:
        """The tables and views before the plan."""
        return Side(self, False, self.before, self.possible)

    @cached_property
    def new(self) -> Side:
        """The tables and views after the plan."""
        queries = {key: (query,) for key, query in self.queries_after.items()}
        return Side(self, True, self.after, queries)

    @cached_property
    def _counted(self) -> Set[str]:
        """What the views that stay need a certain number of columns of after the plan."""
        return self.new.counted_by(self.queries.keys() - self.set_again)

    @cached_property
    def _counted_before(self) -> Set[str]:
        """What the views need a certain number of columns of before the plan."""
        return self.old.counted_by(self.possible.keys())

    def keeps_query(self, view: View) -> bool:
        """Whether a view exists and surely keeps its query."""
        queries = self.possible.get(view.key, ())
        is_declared = view.key in self.views
        return bool(queries) and not (
            is_declared and any(not is_same_query(query, view.query) for query in queries)
        )

    def renamed(self, key: str) -> Mapping[str, str]:
        """Return the columns that a table has before a plan, with the names that they get."""
        names = self._renames.get(key, {})
        return {name: names.get(name, name) for name in self.before.get(self._former_names.get(key, key), ())}

    def former(self, column: Column) -> Column:
        """Return a column of a table as it is before the plan."""
        key, name = column
        names = {new: old for old, new in self._renames[key].items()}
        return self._former_names.get(key, key), names.get(name, name)

    @cached_property
    def _renames(self) -> Mapping[str, Mapping[str, str]]:
        return {
            align.table.key: {old.lower(): new.lower() for old, new in renamed_columns(align).columns.items()}
            for align in self.plan.align_tables
        }

    @cached_property
    def _former_names(self) -> Mapping[str, str]:
        return {new.key: key for key, new in self.new_names.items()}

    @cached_property
    def queries_after(self) -> Mapping[str, str]:
        """The queries by key as the plan leaves them."""
        return {**self.staying, **{key: view.query for key, view in self.views.items()}}

    @cached_property
    def retyped(self) -> Set[Column]:
        """The columns that get other types, by the names that they get."""
        return widened_columns(self.plan)

    @cached_property
    def swapped(self) -> Set[Column]:
        """The columns of conversions that give their names to other columns, by the names that they get."""
        return {
            (align.table.key, swap.desired.key)
            for align in self.plan.align_tables
            for swap in align.of_type(SwapColumn)
            if not swap.is_begun
        }

    @cached_property
    def abandoned(self) -> Set[Column]:
        """The columns whose conversions are undone before their swap."""
        return {
            (align.table.key, action.observed.key)
            for align in self.plan.align_tables
            for action in align.of_type(AbandonConversion)
        }

    def ends_conversions(self, key: str) -> bool:
        """Whether a plan only takes from the number of columns of a table those that begun conversions have added."""
        ended = {name for table, name in self.abandoned if table == key}
        for align in self.plan.align_tables:
            if align.table.key == key:
                ended |= {drop.name.lower() for drop in align.of_type(DropFormerColumn)}
        return bool(ended) and len(self.renamed(key)) == len(self.after.get(key, ())) + len(ended)

    @cached_property
    def swapping(self) -> Set[str]:
        """The keys of tables with a conversion: one to do, begun or not, or one to undo."""
        swapped = {align.table.key for align in self.plan.align_tables if align.of_type(SwapColumn)}
        return swapped | {table for table, _ in self.abandoned}


def _standing(
    state: ViewState, queries: Sequence[str], view: View | None, columns: Relations
) -> Sequence[str]:
    """Return the queries that a view may have and that matter to a plan: it works, and has not its new one yet.

    A run that did not end has set the new one behind all changes that it does not survive. Queries with names whose
    owner is unclear are last: a LATERAL VIEW may have these columns, or they are gone and the query fails.
    """
    if len(queries) == 1:
        return queries
    working = [
        query for query in queries if _may_return(query, state, columns) and not is_failing(query, columns)
    ]
    former = [query for query in working if view is None or not is_same_query(query, view.query)]
    return sorted(former or working or queries, key=lambda query: _has_unclear_names(query, columns))


def _has_unclear_names(query: str, columns: Relations) -> bool:
    reads = read_columns(query, columns)
    return (
        reads is not None and not reads.is_sure and not reads.counted and reads.columns.keys() <= {*columns}
    )


def _may_return(query: str, state: ViewState, columns: Relations) -> bool:
    """Whether a query may return the columns that the platform shows of a view."""
    shown, named = _keys(state), named_columns(query)
    if not shown or named is not None:
        return not shown or [*map(str.lower, named or ())] == shown
    returned = None if state.evolves else returned_columns(query, columns)
    return returned is None or {*shown} <= {*map(str.lower, returned)}


def _key_before(key: str, state: TableState | ViewState) -> str:
    """Return the key that a table or view has before a plan."""
    return state.former_name.key if state.former_name is not None else key


def _keys(state: TableState | ViewState) -> Sequence[str]:
    return [column.key for column in state.columns]
