"""What the changes of a plan mean for its views: their places among the changes of what they read, and what breaks.

The planner asks this module, which knows both sides. The compiler and the rules read the answer from the plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, Final, TypeAlias

from delta_engine.actions import (
    Align,
    AlignTable,
    BrokenView,
    Create,
    Drop,
    Keep,
    Order,
    Place,
    SecurableChange,
    TablePlan,
    Turn,
)
from delta_engine.aspects.backfill_actions import SwapColumn
from delta_engine.aspects.column_renames import renamed_columns
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop
from delta_engine.aspects.table_names import RenameTable
from delta_engine.aspects.view_definition import (
    AlterViewQuery,
    RenameView,
    SetSchemaMode,
    SetViewColumnComments,
)
from delta_engine.aspects.view_needs import changed_tables
from delta_engine.aspects.view_reach import Moved, Side, broken_by, order_of
from delta_engine.models import Part, QualifiedName, SchemaMode, Table, View, ViewName
from delta_engine.models.nested_types import Widening
from delta_engine.sql.missing_columns import is_failing
from delta_engine.sql.view_queries import (
    is_same_query,
    named_columns,
    read_columns,
    read_functions,
    read_relations,
    returned_columns,
    retyped_columns,
    with_columns,
    without_names,
)
from delta_engine.state.states import CatalogState, TableState
from delta_engine.state.view_states import ABSENT_VIEW, ViewState

Relations = Mapping[str, Sequence[str]]
"""The columns of tables and views in lower case, by key."""

_Column: TypeAlias = tuple[str, str]
"""A column of a table: the key of the table, and its name in lower case."""

_NO_COLUMNS: Final[frozenset[_Column]] = frozenset()
_TURNS: Final = (Turn.RENAME_COLUMNS, Turn.ADD_COLUMNS, Turn.DROP_COLUMNS)


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
    for key in _readers_last(queries):
        if (returned := returned_columns(queries[key], settled)) is not None:
            settled[key] = returned
    return settled


def _readers_last(queries: Mapping[str, str]) -> Iterator[str]:
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


def with_view_orders(
    plan: TablePlan, models: Iterable[View], observed: CatalogState, *, replaces: bool = False
) -> TablePlan:
    """Return a plan whose views know their places, with the views that it would break.

    Args:
        replaces: whether the platform sets comments of columns only where it replaces a view.
    """
    views = {model.key: model for model in models}
    changes = [change for change in plan.changes if change.name.kind == "view"]
    if not views and not changes and not observed.views:
        return plan
    sides = _Sides(plan, views, observed)
    return replace(
        plan,
        changes=tuple(
            _marked(sides.ordered(change), sides.after.get(change.name.key, ()), replaces)
            if change.name.kind == "view"
            else change
            for change in plan.changes
        ),
        broken_views=tuple(sides.broken()),
    )


def _marked(change: SecurableChange, columns: Iterable[str], replaces: bool) -> SecurableChange:
    """Return a change of a view whose actions say which columns it has then, and whether they replace it."""
    if not isinstance(change, Align):
        return change
    returned = frozenset(column.lower() for column in columns)
    actions = (
        replace(action, returned=returned) if isinstance(action, AlterViewQuery) else action
        for action in change.actions
    )
    marked = (
        replace(action, replaces=True)
        if isinstance(action, SetViewColumnComments)
        or (isinstance(action, AlterViewQuery) and action.desired.has_column_comments)
        else action
        for action in actions
    )
    return replace(change, actions=tuple(marked if replaces else actions))


@dataclass(frozen=True)
class _Sides:
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
        """The observed queries by key: of several possible ones, the oldest."""
        return {key: queries[0] for key, queries in self.possible.items()}

    @cached_property
    def staying(self) -> Mapping[str, str]:
        """The observed queries of the views that no model of the plan declares, and that it does not drop."""
        gone = {*self.views, *(drop.name.key for drop in self.plan.of_kind(Drop, "view"))}
        return {key: query for key, query in self.queries.items() if key not in gone}

    @cached_property
    def before(self) -> Relations:
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
                columns[key] = tuple(dict.fromkeys((*self._new_names(key), *self.after[key])))
        evolving = {key: query for key, query in self.queries_after.items() if self._evolves(key)}
        return with_views(columns, evolving)

    def _keeps_columns(self, key: str, query: str) -> bool:
        is_set = key in self.set_again or not is_same_query(self.queries.get(key), query)
        return not is_set and not self._evolves(key)

    @cached_property
    def set_again(self) -> Set[str]:
        """The views that get a query, perhaps the same one again."""
        aligns: Iterable[Align[Any]] = self.plan.of_kind(Align, "view")
        return {align.name.key for align in aligns if align.of_type(AlterViewQuery)}

    def _evolves(self, key: str) -> bool:
        observed, view = self.state.views.get(key), self.views.get(key)
        modes = (observed and observed.schema_mode, view and view.schema_mode)
        return SchemaMode.EVOLUTION in modes

    @cached_property
    def moved(self) -> Mapping[str, Moved]:
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

    def ordered(self, change: SecurableChange) -> SecurableChange:
        """Return a change of a view with its place."""
        key = change.name.key
        match change:
            case Create(View() as view):
                return replace(change, order=self._order(None, view))
            case Align() if any(
                isinstance(action, AlterViewQuery | SetSchemaMode) for action in change.actions
            ):
                return replace(change, order=self._order(key, self.views[key]))
            case Drop():
                reads = [read_relations(query) or () for query in self.possible.get(key, ())]
                return replace(change, references=tuple(sorted({*chain(*reads)}, key=str)))
        return change

    def _order(self, former: str | None, view: View) -> Order:
        reads = read_columns(view.query, self.after)
        if reads is None:
            return self._opaque(view)
        desired = Side(
            reads,
            view.schema_mode,
            self.bound_after.get(view.key, _NO_COLUMNS),
            self.swapped_after.get(view.key, _NO_COLUMNS),
        )
        observed = [*self._sides_before(former)] if former is not None else []
        changes_query = former is not None and not self._keeps_query(view)
        if former is None or changes_query:
            order = order_of(observed, desired, self.moved)
        elif view.schema_mode is SchemaMode.EVOLUTION:  # then it follows what changes
            order = order_of(observed, desired.of_types(), self.moved)
        else:
            order = order_of([side.of_types() for side in observed], desired, self.moved)
        counted = frozenset[str]().union(*(side.reads.counted for side in observed))
        precedes, follows = set[Place](), set[Place]()
        for place in order.precedes:
            turns = [turn for turn in _TURNS if turn is not Turn.ADD_COLUMNS or place[0] in counted]
            precedes |= {*self._causes(place, turns)}
        stars = frozenset[str]() if view.schema_mode is SchemaMode.EVOLUTION else reads.spread
        for place in order.follows:
            is_settled = place[1] is not Turn.CREATE or place[0] in reads.counted | stars
            follows |= {*self._causes(place, _TURNS)} if is_settled else {place}
        follows |= {(key, Turn.QUERY) for key in self._stars_before(view)}
        order = replace(order, precedes=frozenset(precedes), follows=frozenset(follows))
        if not changes_query or former is None:
            return order
        if not order.narrowed:
            return replace(order, bridge=self._bridge(view.query, order.bridged, self._new_names))
        bridge = self._bridge(self.queries[former], order.bridged, self.before.__getitem__)
        return replace(order, bridge=bridge, between=self._between(bridge or self.queries[former], order))

    def _stars_before(self, view: View) -> Iterator[str]:
        """Yield the changed views above one that evolves whose stars may not return what it has for a moment alone.

        If it has other columns in the end, such views follow all of its changes (`_causes`).
        """
        columns = {*self.after.get(view.key, ())}
        is_brief = {*self.widest.get(view.key, ())} - columns and columns == {*self.before.get(view.key, ())}
        reached = {view.key} if is_brief and self._evolves(view.key) else set[str]()
        for key in _readers_last(self.queries_after) if reached else ():
            reads = read_columns(self.queries_after[key], self.after)
            if reads is None or reached.isdisjoint(reads.spread):
                continue
            if self.modes_after[key] is SchemaMode.EVOLUTION:
                reached.add(key)
            elif key in self.set_again or key not in self.queries:
                yield key

    def _sides_before(self, key: str) -> Iterator[Side]:
        """Yield a view before the plan, with each query that it may have."""
        for query in self.possible.get(key, ()):
            if (reads := read_columns(query, self.before)) is not None:
                yield Side(
                    reads,
                    self.state.views[key].schema_mode,
                    self.bound_before.get(key, _NO_COLUMNS),
                    self.swapped_before.get(key, _NO_COLUMNS),
                )

    def _keeps_query(self, view: View) -> bool:
        """Whether a view exists and surely keeps its query."""
        queries = self.possible.get(view.key, ())
        is_declared = view.key in self.views
        return bool(queries) and not (
            is_declared and any(not is_same_query(query, view.query) for query in queries)
        )

    def _causes(self, place: Place, turns: Sequence[Turn]) -> Iterator[Place]:
        """Yield the changes behind a change.

        A view that evolves also changes at turns of what it spreads, and one that is dropped may break before.
        """
        key, turn = place
        yield place
        if turn is Turn.DROP:
            for inner_place in order_of([*self._sides_before(key)], None, self.moved).precedes:
                yield from self._causes(inner_place, turns)
        if not self._evolves(key):
            return
        queries = [(query, self.before) for query in self.possible.get(key, ())]
        queries += [(self.views[key].query, self.after)] if key in self.views else []
        for query, relations in queries:
            reads = read_columns(query, relations)
            for inner in reads.spread if reads else ():
                if inner in self.views or inner in self.state.views:
                    yield from self._causes((inner, Turn.QUERY), turns)
                else:
                    yield from ((inner, other) for other in turns)

    def _bridge(self, query: str, bridged: Set[str], names: Callable[[str], Sequence[str]]) -> str:
        """Return the query that reads renamed columns by their position; empty if none is needed, or none does."""
        text: str | None = query if bridged else ""
        for key in sorted(bridged):
            text = text and without_names(text, QualifiedName.of_key(key), names(key))
        return text or ""

    def _between(self, query: str, order: Order) -> str:
        """Return the query that reads the columns that tables have between two changes; empty if none does."""
        text: str | None = query
        for key in sorted(order.narrowed):
            text = text and with_columns(text, QualifiedName.of_key(key), self._new_names(key))
        return text or ""

    def _new_names(self, key: str) -> Sequence[str]:
        """Return the columns that a table has before a plan, under the names that they get."""
        return [self.moved[key].renamed.get(name, name) for name in self.before[key]]

    def _opaque(self, view: View) -> Order:
        """Return the place of a view whose query sqlglot does not read: after what comes, before what goes."""
        keys = [change.name.key for change in changed_tables(self.plan)]
        others = [change.name.key for change in self.plan.changes if change.name.kind == "view"]
        comes = (Turn.CREATE, Turn.RENAME_COLUMNS, Turn.ADD_COLUMNS)
        readers = {reader.key for reader in readers_of({view.key}, self.views.values())}
        created = self.views.keys() - self.queries.keys() - readers
        return Order(
            precedes=frozenset((key, Turn.DROP_COLUMNS) for key in keys),
            follows=frozenset(
                [*((key, turn) for key in keys for turn in comes)]
                + [(key, Turn.CREATE) for key in others if key in created and self._is_read(key)]
            ),
        )

    def _is_read(self, key: str) -> bool:
        return read_columns(self.views[key].query, self.after) is not None

    def broken(self) -> Iterator[BrokenView]:
        """Yield the views that lose what they read, but not those that no model declares."""
        undeclared = {keep.name.key for keep in self.plan.of_kind(Keep, "view")}
        left = {key: View(*QualifiedName.of_key(key).parts, query) for key, query in self.staying.items()}
        for key, view in sorted({**left, **self.views}.items()):
            if key not in undeclared:
                broken = partial(
                    BrokenView,
                    view.qualified_name,
                    declared_at=view.declared_at,
                    is_selected=key in self.views,
                )
                for table, column in sorted(self._unbearable(view)):
                    yield broken(table, (column,), is_retyped=True)
                for table, column in sorted(self._missed(view)):
                    yield broken(table, (column,), is_converted=True)
                if self._keeps_query(view):
                    lost = (self._lost_by(view, query, broken) for query in self.possible[key])
                    yield from dict.fromkeys(chain.from_iterable(lost))
                else:
                    yield from self._gone_from(view, broken)

    def _lost_by(self, view: View, query: str, broken: partial[BrokenView]) -> Iterator[BrokenView]:
        """Yield what a query that stays reads and loses."""
        key, reads = view.key, read_columns(query, self.before)
        if reads is None:
            return
        mode = SchemaMode.EVOLUTION if self._evolves(key) else view.schema_mode
        kept = frozenset(column.key for column in self.state.views[key].columns)
        for relation, columns in broken_by(Side(reads, mode, kept=kept), self.moved):
            named = reads.columns[relation] & (columns or frozenset())
            yield broken(relation, tuple(sorted(columns or ())), is_by_star=bool(columns) and not named)
        yield from self._renamed_in(reads.columns, broken)

    def _gone_from(self, view: View, broken: partial[BrokenView]) -> Iterator[BrokenView]:
        """Yield the tables and views that a new query reads and that the plan drops or renames."""
        read = {name.key for name in read_relations(view.query) or ()}
        for relation in sorted(read & self.moved.keys()):
            if self.moved[relation].after is None:
                yield broken(relation, ())
        yield from self._renamed_in(read - self.after.keys(), broken)

    def _renamed_in(self, read: Iterable[str], broken: partial[BrokenView]) -> Iterator[BrokenView]:
        for relation in sorted({*read} & self.new_names.keys()):
            yield broken(relation, (), renamed_to=str(self.new_names[relation]))

    def _unbearable(self, view: View) -> Set[_Column]:
        """Return the columns whose other types an existing view survives neither before nor after it changes.

        A view that only becomes bound keeps the types that it has.
        """
        former = self.bound_before.get(view.key, _NO_COLUMNS)
        bound = self.bound_after.get(view.key, _NO_COLUMNS)
        if view.key not in self.queries:
            return _NO_COLUMNS
        if not self._keeps_query(view):
            return former & bound
        is_same_mode = view.schema_mode in (None, self.state.views[view.key].schema_mode)
        return former | bound if is_same_mode else bound

    def _missed(self, view: View) -> Set[_Column]:
        """Return the converted columns that an existing view needs all the time."""
        former = self.swapped_before.get(view.key, _NO_COLUMNS)
        if view.key not in self.queries or self._keeps_query(view):
            return former
        return former & self.swapped_after.get(view.key, _NO_COLUMNS)

    @cached_property
    def bound_before(self) -> Mapping[str, frozenset[_Column]]:
        """The columns of tables whose other types each view does not survive as it is."""
        bound = partial(self._bound, modes=self.modes_before, relations=self.before, retyped=self.retyped)
        return _united(map(bound, self._together()))

    @cached_property
    def bound_after(self) -> Mapping[str, frozenset[_Column]]:
        """The columns of tables whose other types each view does not survive as the plan leaves it."""
        retyped = {column: column for column in self.retyped}
        return self._bound(self.queries_after, self.modes_after, self.after, retyped)

    @cached_property
    def swapped_before(self) -> Mapping[str, frozenset[_Column]]:
        """The converted columns without which each view fails as it is."""
        kept = {
            key: frozenset(column.key for column in self.state.views[key].columns) for key in self.queries
        }
        return _united(
            _readers_of_swaps(queries, self.modes_before, self.before, self.swapped, kept)
            for queries in self._together()
        )

    def _together(self) -> Iterator[Mapping[str, str]]:
        """Yield queries that all views may have together, until each possible one was among them."""
        for place in range(max(map(len, self.possible.values()), default=0)):
            yield {key: queries[min(place, len(queries) - 1)] for key, queries in self.possible.items()}

    @cached_property
    def swapped_after(self) -> Mapping[str, frozenset[_Column]]:
        """The converted columns without which each view fails as the plan leaves it."""
        swapped = {column: column for column in self.swapped}
        return _readers_of_swaps(self.queries_after, self.modes_after, self.after, swapped, {})

    @property
    def modes_before(self) -> Mapping[str, SchemaMode | None]:
        return {key: self.state.views[key].schema_mode for key in self.queries}

    @property
    def modes_after(self) -> Mapping[str, SchemaMode | None]:
        modes = {key: self.state.views.get(key, ABSENT_VIEW).schema_mode for key in self.queries_after}
        return modes | {
            key: view.schema_mode for key, view in self.views.items() if view.schema_mode is not None
        }

    @cached_property
    def queries_after(self) -> Mapping[str, str]:
        """The queries by key as the plan leaves them."""
        return {**self.staying, **{key: view.query for key, view in self.views.items()}}

    @cached_property
    def retyped(self) -> Mapping[_Column, _Column]:
        """The columns that get other types, by the names of table and column that they get, and have."""
        return self._columns(
            lambda align: (
                change.name
                for change in align.of_type(ColumnTypeChange)
                if change.widening is not Widening.NOTHING
            )
        )

    @cached_property
    def swapped(self) -> Mapping[_Column, _Column]:
        """The columns of conversions that give their names to other columns, by the names that they get, and have."""
        return self._columns(
            lambda align: (swap.desired.name for swap in align.of_type(SwapColumn) if not swap.is_begun)
        )

    def _columns(self, names: Callable[[AlignTable], Iterable[str]]) -> Mapping[_Column, _Column]:
        columns: dict[_Column, _Column] = {}
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
        retyped: Mapping[_Column, _Column],
    ) -> Mapping[str, frozenset[_Column]]:
        bound: dict[str, frozenset[_Column]] = defaultdict(frozenset)
        keys = [*_readers_last(queries)] if retyped and SchemaMode.BINDING in modes.values() else []
        for column, (table, name) in retyped.items():
            reached = {table: frozenset({name})}
            for key in keys:
                outputs = retyped_columns(queries[key], relations, reached)
                if outputs and modes[key] is SchemaMode.BINDING:
                    bound[key] |= {column}
                elif outputs and modes[key] in (SchemaMode.TYPE_EVOLUTION, SchemaMode.EVOLUTION):
                    reached[key] = outputs
        return bound


def _standing(
    state: ViewState, queries: Sequence[str], view: View | None, columns: Relations
) -> Sequence[str]:
    """Return the queries that a view may have and that matter to a plan: it works, and has not its new one yet.

    A run that did not end has set the new one behind all changes that it does not survive.
    """
    if len(queries) == 1:
        return queries
    shown = _keys(state)
    named = {query: [*map(str.lower, named_columns(query) or shown)] for query in queries if shown}
    working = [
        query for query in queries if named.get(query, shown) == shown and not is_failing(query, columns)
    ]
    former = [query for query in working if view is None or not is_same_query(query, view.query)]
    return former or working or queries


def _united(
    columns: Iterable[Mapping[str, frozenset[_Column]]],
) -> Mapping[str, frozenset[_Column]]:
    united: dict[str, frozenset[_Column]] = defaultdict(frozenset)
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
    swapped: Mapping[_Column, _Column],
    kept: Mapping[str, frozenset[str]],
) -> Mapping[str, frozenset[_Column]]:
    readers: dict[str, frozenset[_Column]] = defaultdict(frozenset)
    reads = {
        key: read_columns(queries[key], relations) for key in (_readers_last(queries) if swapped else ())
    }
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


def with_read_functions(plan: TablePlan, observed: CatalogState, views: Iterable[View]) -> TablePlan:
    """Return a plan whose changed and dropped functions name the views that call them after the plan."""
    if not any(change.name.kind == "function" for change in plan.changes):
        return plan
    readers: dict[str, list[str]] = defaultdict(list)
    dropped = {drop.name.key for drop in plan.of_kind(Drop, "view")}
    declared = {view.key: view.query for view in views}
    shown = {key: state.query or "" for key, state in observed.views.items() if state.exists}
    for key, query in sorted({**shown, **declared}.items()):
        for name in read_functions(query) if key not in dropped else ():
            readers[name.key].append(f"view {key}")
    return replace(plan, changes=tuple(_with_readers(change, readers) for change in plan.changes))


def _with_readers(change: SecurableChange, readers: Mapping[str, Sequence[str]]) -> SecurableChange:
    from delta_engine.aspects.function_definition import ReplaceFunction

    read_by = tuple(readers.get(change.name.key, ()))
    if change.name.kind != "function" or not read_by:
        return change
    match change:
        case Drop():
            return replace(change, used_by=(*change.used_by, *read_by))
        case Align():
            actions = (
                replace(action, read_by=read_by) if isinstance(action, ReplaceFunction) else action
                for action in change.actions
            )
            return replace(change, actions=tuple(actions))
    return change
