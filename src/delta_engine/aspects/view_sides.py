"""The tables and views before and after a plan: their columns and queries, and what each view needs of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, TypeAlias

from delta_engine.actions import (
    Align,
    AlignTable,
    Drop,
    TablePlan,
)
from delta_engine.aspects.backfill_actions import SwapColumn
from delta_engine.aspects.column_renames import renamed_columns
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop
from delta_engine.aspects.table_names import RenameTable
from delta_engine.aspects.view_definition import (
    AlterViewQuery,
    RenameView,
)
from delta_engine.aspects.view_reach import Moved, Side
from delta_engine.models import Part, QualifiedName, SchemaMode, Table, View, ViewName
from delta_engine.models.nested_types import Widening
from delta_engine.sql.missing_columns import is_failing
from delta_engine.sql.view_queries import (
    is_same_query,
    named_columns,
    read_columns,
    read_relations,
    returned_columns,
    retyped_columns,
)
from delta_engine.state.states import CatalogState, TableState
from delta_engine.state.view_states import ABSENT_VIEW, ViewState

Relations = Mapping[str, Sequence[str]]
"""The columns of tables and views in lower case, by key."""

Column: TypeAlias = tuple[str, str]
"""A column of a table: the key of the table, and its name in lower case."""

NO_COLUMNS: Final[frozenset[Column]] = frozenset()
"""What a view needs that is in no mapping of such columns."""


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
    for key in readers_last(queries):
        if (returned := returned_columns(queries[key], settled)) is not None:
            settled[key] = returned
    return settled


def readers_last(queries: Mapping[str, str]) -> Iterator[str]:
    """Yield the keys of views, each after the views that it reads, without those in circles."""
    waiting = {key: {name.key for name in read_relations(query) or ()} for key, query in queries.items()}
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
            renames = renamed_columns(align).columns
            former = next((rename.observed.key for rename in align.of_type(RenameTable)), align.table.key)
            names = {old.lower(): new.lower() for old, new in renames.items()}
            gone = {drop.observed.key for drop in align.of_type(ColumnDrop)}
            kept = (names.get(key, key) for key in self.before.get(former, ()) if key not in gone)
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

    @cached_property
    def widest(self) -> Relations:
        """The columns of tables when all new ones have come and none has gone, and of evolving views over them."""
        columns = dict(self.after)
        for key, change in self.moved.items():
            if change.before and change.after and not change.is_view:
                columns[key] = tuple(dict.fromkeys((*self.names_after(key), *self.after[key])))
        evolving = {key: query for key, query in self.queries_after.items() if self.evolves(key)}
        return with_views(columns, evolving)

    def _keeps_columns(self, key: str, query: str) -> bool:
        is_set = key in self.set_again or not is_same_query(self.queries.get(key), query)
        return not is_set and not self.evolves(key)

    @cached_property
    def set_again(self) -> Set[str]:
        """The views that get a query, perhaps the same one again."""
        aligns: Iterable[Align[Any]] = self.plan.of_kind(Align, "view")
        return {align.name.key for align in aligns if align.of_type(AlterViewQuery)}

    def evolves(self, key: str) -> bool:
        """Whether a view evolves before the plan, or after it."""
        observed, view = self.state.views.get(key), self.views.get(key)
        modes = (observed and observed.schema_mode, view and view.schema_mode)
        return SchemaMode.EVOLUTION in modes

    @cached_property
    def moved(self) -> Mapping[str, Moved]:
        """The tables and views that have other columns after the plan, by key."""
        renames = {
            align.table.key: {old.lower(): new.lower() for old, new in renamed_columns(align).columns.items()}
            for align in self.plan.align_tables
        }
        views = {*self.views, *self.state.views}
        unknown = self.queries_after.keys() - self.after.keys()
        after = {**self.after, **{key: self.before.get(key, ()) for key in unknown}}
        return {
            key: Moved(
                before=frozenset(self.before[key]) if key in self.before else None,
                after=frozenset(after[key]) if key in after else None,
                renamed=renames.get(key, {}),
                is_view=key in views,
                is_known=key not in unknown,
            )
            for key in sorted({*self.before, *after} - self.new_names.keys())
            if self.before.get(key) != after.get(key) or renames.get(key) or key in unknown
        }

    @cached_property
    def new_names(self) -> Mapping[str, QualifiedName | ViewName]:
        """The new names of tables and views, by the keys of their former ones."""
        return {rename.observed.key: rename.desired for rename in _renames(self.plan)}

    def side_after(self, view: View) -> Side | None:
        """Return a view as the plan leaves it; None if sqlglot does not read its query."""
        if (reads := read_columns(view.query, self.after)) is None:
            return None
        bound, swapped = (
            columns.get(view.key, NO_COLUMNS) for columns in (self.bound_after, self.swapped_after)
        )
        return Side(reads, view.schema_mode, bound, swapped)

    def sides_before(self, key: str) -> Iterator[Side]:
        """Yield a view before the plan, with each query that it may have."""
        for query in self.possible.get(key, ()):
            if (reads := read_columns(query, self.before)) is not None:
                yield Side(
                    reads,
                    self.state.views[key].schema_mode,
                    self.bound_before.get(key, NO_COLUMNS),
                    self.swapped_before.get(key, NO_COLUMNS),
                )

    def keeps_query(self, view: View) -> bool:
        """Whether a view exists and surely keeps its query."""
        queries = self.possible.get(view.key, ())
        is_declared = view.key in self.views
        return bool(queries) and not (
            is_declared and any(not is_same_query(query, view.query) for query in queries)
        )

    def names_after(self, key: str) -> Sequence[str]:
        """Return the columns that a table has before a plan, under the names that they get."""
        return [self.moved[key].renamed.get(name, name) for name in self.before[key]]

    @cached_property
    def bound_before(self) -> Mapping[str, frozenset[Column]]:
        """The columns of tables whose other types each view does not survive as it is."""
        bound = partial(self._bound, modes=self._modes_before, relations=self.before, retyped=self.retyped)
        return _united(map(bound, self._together()))

    @cached_property
    def bound_after(self) -> Mapping[str, frozenset[Column]]:
        """The columns of tables whose other types each view does not survive as the plan leaves it."""
        retyped = {column: column for column in self.retyped}
        return self._bound(self.queries_after, self.modes_after, self.after, retyped)

    @cached_property
    def swapped_before(self) -> Mapping[str, frozenset[Column]]:
        """The converted columns without which each view fails as it is."""
        kept = {
            key: frozenset(column.key for column in self.state.views[key].columns) for key in self.queries
        }
        return _united(
            _readers_of_swaps(queries, self._modes_before, self.before, self.swapped, kept)
            for queries in self._together()
        )

    def _together(self) -> Iterator[Mapping[str, str]]:
        """Yield queries that all views may have together, until each possible one was among them."""
        for place in range(max(map(len, self.possible.values()), default=0)):
            yield {key: queries[min(place, len(queries) - 1)] for key, queries in self.possible.items()}

    @cached_property
    def swapped_after(self) -> Mapping[str, frozenset[Column]]:
        """The converted columns without which each view fails as the plan leaves it."""
        swapped = {column: column for column in self.swapped}
        return _readers_of_swaps(self.queries_after, self.modes_after, self.after, swapped, {})

    @cached_property
    def _passing_types(self) -> Set[str]:
        """The views whose columns get the types of what they read, before the plan or after it."""
        return {
            key
            for modes in (self._modes_before, self.modes_after)
            for key, mode in modes.items()
            if mode in (SchemaMode.TYPE_EVOLUTION, SchemaMode.EVOLUTION)
        }

    @property
    def _modes_before(self) -> Mapping[str, SchemaMode | None]:
        return {key: self.state.views[key].schema_mode for key in self.queries}

    @property
    def modes_after(self) -> Mapping[str, SchemaMode | None]:
        """The schema modes by key as the plan leaves them."""
        modes = {key: self.state.views.get(key, ABSENT_VIEW).schema_mode for key in self.queries_after}
        return modes | {
            key: view.schema_mode for key, view in self.views.items() if view.schema_mode is not None
        }

    @cached_property
    def queries_after(self) -> Mapping[str, str]:
        """The queries by key as the plan leaves them."""
        return {**self.staying, **{key: view.query for key, view in self.views.items()}}

    @cached_property
    def retyped(self) -> Mapping[Column, Column]:
        """The columns that get other types, by the names of table and column that they get, and have."""
        return self._columns(
            lambda align: (
                change.name
                for change in align.of_type(ColumnTypeChange)
                if change.widening is not Widening.NOTHING
            )
        )

    @cached_property
    def swapped(self) -> Mapping[Column, Column]:
        """The columns of conversions that give their names to other columns, by the names that they get, and have."""
        return self._columns(
            lambda align: (swap.desired.name for swap in align.of_type(SwapColumn) if not swap.is_begun)
        )

    def _columns(self, names: Callable[[AlignTable], Iterable[str]]) -> Mapping[Column, Column]:
        columns: dict[Column, Column] = {}
        for align in self.plan.align_tables:
            table = next((rename.observed.key for rename in align.of_type(RenameTable)), align.table.key)
            former = {new.lower(): old.lower() for old, new in renamed_columns(align).columns.items()}
            for name in map(str.lower, names(align)):
                columns[align.table.key, name] = table, former.get(name, name)
        return columns

    def _bound(
        self,
        queries: Mapping[str, str],
        modes: Mapping[str, SchemaMode | None],
        relations: Relations,
        retyped: Mapping[Column, Column],
    ) -> Mapping[str, frozenset[Column]]:
        bound: dict[str, frozenset[Column]] = defaultdict(frozenset)
        keys = [*readers_last(queries)] if retyped and SchemaMode.BINDING in modes.values() else []
        for column, (table, name) in retyped.items():
            reached = {table: frozenset({name})}
            for key in keys:
                outputs = retyped_columns(queries[key], relations, reached)
                if outputs and modes[key] is SchemaMode.BINDING:
                    bound[key] |= {column}
                if outputs and key in self._passing_types:
                    reached[key] = outputs
        return bound


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


def _united(
    columns: Iterable[Mapping[str, frozenset[Column]]],
) -> Mapping[str, frozenset[Column]]:
    united: dict[str, frozenset[Column]] = defaultdict(frozenset)
    for by_key in columns:
        for key, more in by_key.items():
            united[key] |= more
    return united


def _key_before(key: str, state: TableState | ViewState) -> str:
    """Return the key that a table or view has before a plan."""
    return state.former_name.key if state.former_name is not None else key


def _keys(state: TableState | ViewState) -> Sequence[str]:
    return [column.key for column in state.columns]


def _readers_of_swaps(
    queries: Mapping[str, str],
    modes: Mapping[str, SchemaMode | None],
    relations: Relations,
    swapped: Mapping[Column, Column],
    kept: Mapping[str, frozenset[str]],
) -> Mapping[str, frozenset[Column]]:
    readers: dict[str, frozenset[Column]] = defaultdict(frozenset)
    reads = {key: read_columns(queries[key], relations) for key in (readers_last(queries) if swapped else ())}
    for column, (table, name) in swapped.items():
        reached = {table: frozenset({name})}
        for key, read in reads.items():
            if read is None:
                continue
            side = Side(read, modes[key], kept=kept.get(key, frozenset()))
            if any(side.names(other, there) or side.counts(other, there) for other, there in reached.items()):
                readers[key] |= {column}
            elif not read.spread.isdisjoint(reached):  # it evolves
                reached[key] = frozenset({name})
    return readers


def _renames(plan: TablePlan) -> Iterator[RenameTable | RenameView]:
    for align in plan.alignments:
        yield from align.of_type(RenameTable)
        yield from align.of_type(RenameView)
