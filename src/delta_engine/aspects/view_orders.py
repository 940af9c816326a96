"""What the changes of a plan mean for its views: their places among the changes of what they read, and what breaks.

The planner asks this module, which knows both sides. The compiler and the rules read the answer from the plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final

from delta_engine.actions import (
    Align,
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
from delta_engine.aspects.view_definition import (
    AlterViewQuery,
    SetSchemaMode,
    SetViewColumnComments,
)
from delta_engine.aspects.view_needs import changed_tables
from delta_engine.aspects.view_reach import Side, broken_by, order_of
from delta_engine.aspects.view_sides import NO_COLUMNS, Column, Sides, readers_last, readers_of
from delta_engine.models import QualifiedName, SchemaMode, View
from delta_engine.sql.view_queries import (
    Reads,
    read_columns,
    read_functions,
    read_relations,
    with_columns,
    without_names,
)
from delta_engine.state.states import CatalogState

_TURNS: Final = (Turn.RENAME_COLUMNS, Turn.ADD_COLUMNS, Turn.DROP_COLUMNS)


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
    sides = Sides(plan, views, observed)
    orders, losses = _Orders(sides), _Losses(sides)
    return replace(
        plan,
        changes=tuple(
            _marked(orders.ordered(change), sides.after.get(change.name.key, ()), replaces)
            if change.name.kind == "view"
            else change
            for change in plan.changes
        ),
        broken_views=tuple(losses.broken()),
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
class _Orders:
    """The places of views among the changes of what they read."""

    sides: Sides

    def ordered(self, change: SecurableChange) -> SecurableChange:
        """Return a change of a view with its place."""
        key = change.name.key
        match change:
            case Create(View() as view):
                return replace(change, order=self._order(None, view))
            case Align() if any(
                isinstance(action, AlterViewQuery | SetSchemaMode) for action in change.actions
            ):
                return replace(change, order=self._order(key, self.sides.views[key]))
            case Drop():
                reads = [read_relations(query) or () for query in self.sides.possible.get(key, ())]
                return replace(change, references=tuple(sorted({*chain(*reads)}, key=str)))
        return change

    def _order(self, former: str | None, view: View) -> Order:
        desired = self.sides.side_after(view)
        if desired is None:
            return self._opaque(view)
        observed = [*self.sides.sides_before(former)] if former is not None else []
        changes_query = former is not None and not self.sides.keeps_query(view)
        if former is None or changes_query:
            order = order_of(observed, desired, self.sides.moved)
        elif view.schema_mode is SchemaMode.EVOLUTION:  # then it follows what changes
            order = order_of(observed, desired.of_types(), self.sides.moved)
        else:
            order = order_of([side.of_types() for side in observed], desired, self.sides.moved)
        counted = frozenset[str]().union(*(side.reads.counted for side in observed))
        precedes, follows = set[Place](), set[Place]()
        for place in order.precedes:
            turns = [turn for turn in _TURNS if turn is not Turn.ADD_COLUMNS or place[0] in counted]
            precedes |= {*self._causes(place, turns)}
        stars = frozenset[str]() if view.schema_mode is SchemaMode.EVOLUTION else desired.reads.spread
        for place in order.follows:
            is_settled = place[1] is not Turn.CREATE or place[0] in desired.reads.counted | stars
            follows |= {*self._causes(place, _TURNS)} if is_settled else {place}
        divided = {(key, Turn.DROP_COLUMNS) for key in order.bridged | order.narrowed}
        follows |= {*self._settled_first(view, precedes | divided)}
        order = replace(order, precedes=frozenset(precedes), follows=frozenset(follows))
        if not changes_query or former is None:
            return order
        if not order.narrowed:
            return replace(order, bridge=self._bridge(view.query, order.bridged, self.sides.names_after))
        bridge = self._bridge(self.sides.queries[former], order.bridged, self.sides.before.__getitem__)
        return replace(
            order, bridge=bridge, between=self._between(bridge or self.sides.queries[former], order)
        )

    def _settled_first(self, view: View, precedes: Set[Place]) -> Iterator[Place]:
        """Yield the changes that a view follows if it evolves and would have some columns for a moment alone.

        It follows the drops of these columns, unless it has to precede them: then stars above it are set before. If it
        has other columns in the end, views above it follow all of its changes (`_causes`).
        """
        columns = {*self.sides.after.get(view.key, ())}
        is_brief = not columns >= {*self.sides.widest.get(view.key, ())}
        if not (
            is_brief and self.sides.evolves(view.key) and columns == {*self.sides.before.get(view.key, ())}
        ):
            return
        stars, is_counted = self._bound_readers(view.key)
        causes = self._causes((view.key, Turn.QUERY), (Turn.DROP_COLUMNS,))
        drops = {
            (key, turn) for key, turn in causes if key in self.sides.moved and self.sides.moved[key].lost
        }
        if is_counted or (stars and precedes.isdisjoint(drops)):
            yield from drops
        else:
            yield from ((key, Turn.QUERY) for key in stars)

    def _bound_readers(self, view: str) -> tuple[Sequence[str], bool]:
        """Return the changed views whose stars return columns of a view, and whether any view counts these columns."""
        reached, stars, is_counted = {view}, list[str](), False
        for key in readers_last(self.sides.queries_after):
            is_counted = is_counted or any(
                not reached.isdisjoint(reads.counted) for reads in self._reads(key)
            )
            after = read_columns(self.sides.queries_after[key], self.sides.after)
            if after is None or reached.isdisjoint(after.spread):
                continue
            if self.sides.modes_after[key] is SchemaMode.EVOLUTION:
                reached.add(key)
            elif key in self.sides.set_again or key not in self.sides.queries:
                stars.append(key)
        return stars, is_counted

    def _reads(self, key: str) -> Iterator[Reads]:
        """Yield what a view reads before and after the plan."""
        queries = [(query, self.sides.before) for query in self.sides.possible.get(key, ())]
        queries += [(self.sides.views[key].query, self.sides.after)] if key in self.sides.views else []
        for query, relations in queries:
            if (reads := read_columns(query, relations)) is not None:
                yield reads

    def _causes(self, place: Place, turns: Sequence[Turn]) -> Iterator[Place]:
        """Yield the changes behind a change.

        A view that evolves also changes at turns of what it spreads, and one that is dropped may break before.
        """
        key, turn = place
        yield place
        if turn is Turn.DROP:
            for inner_place in order_of([*self.sides.sides_before(key)], None, self.sides.moved).precedes:
                yield from self._causes(inner_place, turns)
        if not self.sides.evolves(key):
            return
        for reads in self._reads(key):
            for inner in reads.spread:
                if inner in self.sides.views or inner in self.sides.state.views:
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
            text = text and with_columns(text, QualifiedName.of_key(key), self.sides.names_after(key))
        return text or ""

    def _opaque(self, view: View) -> Order:
        """Return the place of a view whose query sqlglot does not read: after what comes, before what goes."""
        keys = [change.name.key for change in changed_tables(self.sides.plan)]
        others = [change.name.key for change in self.sides.plan.changes if change.name.kind == "view"]
        comes = (Turn.CREATE, Turn.RENAME_COLUMNS, Turn.ADD_COLUMNS)
        readers = {reader.key for reader in readers_of({view.key}, self.sides.views.values())}
        created = self.sides.views.keys() - self.sides.queries.keys() - readers
        return Order(
            precedes=frozenset((key, Turn.DROP_COLUMNS) for key in keys),
            follows=frozenset(
                [*((key, turn) for key in keys for turn in comes)]
                + [(key, Turn.CREATE) for key in others if key in created and self._is_read(key)]
            ),
        )

    def _is_read(self, key: str) -> bool:
        return read_columns(self.sides.views[key].query, self.sides.after) is not None


@dataclass(frozen=True)
class _Losses:
    """What views lose by a plan."""

    sides: Sides

    def broken(self) -> Iterator[BrokenView]:
        """Yield the views that lose what they read, but not those that no model declares."""
        undeclared = {keep.name.key for keep in self.sides.plan.of_kind(Keep, "view")}
        left = {
            key: View(*QualifiedName.of_key(key).parts, query) for key, query in self.sides.staying.items()
        }
        for key, view in sorted({**left, **self.sides.views}.items()):
            if key not in undeclared:
                broken = partial(
                    BrokenView,
                    view.qualified_name,
                    declared_at=view.declared_at,
                    is_selected=key in self.sides.views,
                )
                for table, column in sorted(self._unbearable(view)):
                    yield broken(table, (column,), is_retyped=True)
                for table, column in sorted(self._missed(view)):
                    yield broken(table, (column,), is_converted=True)
                if self.sides.keeps_query(view):
                    lost = (self._lost_by(view, query, broken) for query in self.sides.possible[key])
                    yield from dict.fromkeys(chain.from_iterable(lost))
                else:
                    yield from self._gone_from(view, broken)

    def _lost_by(self, view: View, query: str, broken: partial[BrokenView]) -> Iterator[BrokenView]:
        """Yield what a query that stays reads and loses."""
        key, reads = view.key, read_columns(query, self.sides.before)
        if reads is None:
            return
        mode = SchemaMode.EVOLUTION if self.sides.evolves(key) else view.schema_mode
        kept = frozenset(column.key for column in self.sides.state.views[key].columns)
        for relation, columns in broken_by(Side(reads, mode, kept=kept), self.sides.moved):
            named = reads.columns[relation] & (columns or frozenset())
            yield broken(relation, tuple(sorted(columns or ())), is_by_star=bool(columns) and not named)
        yield from self._renamed_in(reads.columns, broken)

    def _gone_from(self, view: View, broken: partial[BrokenView]) -> Iterator[BrokenView]:
        """Yield the tables and views that a new query reads and that the plan drops or renames."""
        read = {name.key for name in read_relations(view.query) or ()}
        for relation in sorted(read & self.sides.moved.keys()):
            if self.sides.moved[relation].after is None:
                yield broken(relation, ())
        yield from self._renamed_in(read - self.sides.after.keys(), broken)

    def _renamed_in(self, read: Iterable[str], broken: partial[BrokenView]) -> Iterator[BrokenView]:
        for relation in sorted({*read} & self.sides.new_names.keys()):
            yield broken(relation, (), renamed_to=str(self.sides.new_names[relation]))

    def _unbearable(self, view: View) -> Set[Column]:
        """Return the columns whose other types an existing view survives neither before nor after it changes.

        A view that only becomes bound keeps the types that it has.
        """
        former = self.sides.bound_before.get(view.key, NO_COLUMNS)
        bound = self.sides.bound_after.get(view.key, NO_COLUMNS)
        if view.key not in self.sides.queries:
            return NO_COLUMNS
        if not self.sides.keeps_query(view):
            return former & bound
        is_same_mode = view.schema_mode in (None, self.sides.state.views[view.key].schema_mode)
        return former | bound if is_same_mode else bound

    def _missed(self, view: View) -> Set[Column]:
        """Return the converted columns that an existing view needs all the time."""
        former = self.sides.swapped_before.get(view.key, NO_COLUMNS)
        if view.key not in self.sides.queries or self.sides.keeps_query(view):
            return former
        return former & self.sides.swapped_after.get(view.key, NO_COLUMNS)


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
