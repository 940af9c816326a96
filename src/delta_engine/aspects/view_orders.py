"""What the changes of a plan mean for its views: their places among the changes of what they read, and what breaks.

The planner asks this module, which knows both sides. The compiler and the rules read the answer from the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain

from delta_engine.actions import (
    Align,
    BrokenView,
    Create,
    Drop,
    Keep,
    Order,
    SecurableChange,
    TablePlan,
    Turn,
)
from delta_engine.aspects.view_definition import (
    AlterViewQuery,
    SetSchemaMode,
    SetViewColumnComments,
)
from delta_engine.aspects.view_reach import (
    ABSENT,
    EXISTS,
    Column,
    Needs,
    Reach,
    State,
    counts_columns,
    is_about_types,
    of_types,
    reach_of,
    typed_columns,
)
from delta_engine.aspects.view_sides import Sides, readers_of
from delta_engine.models import QualifiedName, SchemaMode, View
from delta_engine.sql.view_queries import (
    Reads,
    read_relations,
    with_columns,
    without_names,
)
from delta_engine.state.states import CatalogState


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
    orders, broken = _Orders(sides), tuple(_Losses(sides).broken())
    lost = {view.name.key for view in broken}
    return replace(
        plan,
        changes=tuple(
            _marked(
                change
                if change.name.key in lost
                else orders.ordered(change),  # no order helps a view that breaks
                sides.after.get(change.name.key, ()),
                replaces,
            )
            if change.name.kind == "view"
            else change
            for change in plan.changes
        ),
        broken_views=broken,
    )


def _marked(change: SecurableChange, columns: Iterable[str], replaces: bool) -> SecurableChange:
    """Return a change of a view whose actions say which columns it has then, and whether they replace it."""
    if not isinstance(change, Align):
        return change
    returned = frozenset(column.lower() for column in columns)
    actions = (
        replace(action, returned=returned, replaces=replaces and action.desired.has_column_comments)
        if isinstance(action, AlterViewQuery)
        else replace(action, replaces=replaces)
        if isinstance(action, SetViewColumnComments)
        else action
        for action in change.actions
    )
    return replace(change, actions=tuple(actions))


@dataclass(frozen=True)
class _Orders:
    """The places of views among the changes of what they read."""

    sides: Sides

    def ordered(self, change: SecurableChange) -> SecurableChange:
        """Return a change of a view with its place."""
        key = change.name.key
        match change:
            case Create(View() as view):
                return replace(change, order=self._order(view))
            case Align() if any(
                isinstance(action, AlterViewQuery | SetSchemaMode) for action in change.actions
            ):
                return replace(change, order=self._order(self.sides.views[key]))
            case Drop():
                reads = [read_relations(query) or () for query in self.sides.possible.get(key, ())]
                return replace(change, references=tuple(sorted({*chain(*reads)}, key=str)))
        return change

    def _order(self, view: View) -> Order:
        desired = self.sides.needs_after(view)
        if desired is None:
            return self._opaque(view)
        observed = [needs for _, needs in self.sides.needs_before(view.key)]
        if self.sides.keeps_query(view):
            if view.schema_mode is SchemaMode.EVOLUTION:  # then it follows what changes
                desired = of_types(desired)
            else:
                observed = [*map(of_types, observed)]
        reach = reach_of(observed, desired, self.sides.moved)
        queries = [*self._queries_between(view, reach)]
        if None in queries:  # then the view and its tables may wait for each other
            reach, queries = reach_of(observed, desired, self.sides.moved, bridged_turns=frozenset()), []
        return Order(settings=tuple(reach.settings([query for query in queries if query is not None])))

    def _queries_between(self, view: View, reach: Reach) -> Iterator[str | None]:
        """Yield the queries that stand while tables change: by position, then of former columns; None if none does."""
        query: str | None = self.sides.queries[view.key] if reach.narrowed else view.query
        for key in sorted(reach.bridged):
            former, new = self.sides.renamed(key).keys(), self.sides.renamed(key).values()
            names = former if reach.narrowed else new
            query = query and without_names(query, QualifiedName.of_key(key), [*names])
        if reach.bridged:
            yield query
        for key in sorted(reach.narrowed):
            if key in self.sides.swapping:  # no list of columns works during a swap
                query = None
            names_after = [*self.sides.renamed(key).values()]
            query = query and with_columns(query, QualifiedName.of_key(key), names_after)
        if reach.narrowed:
            yield query

    def _opaque(self, view: View) -> Order:
        """Return the place of a view whose query sqlglot does not read: after what comes, before what goes.

        Which of its columns it reads of a view that only gets another query is not known, so it has no place there.
        """
        above = {view.key, *(reader.key for reader in readers_of({view.key}, self.sides.views.values()))}
        moved = {
            key: change
            for key, change in self.sides.moved.items()
            if key not in above | self._unread and Turn.QUERY not in change.turns
        }
        needed = {
            (key, True): change.states[-1] & (change.states[-2] or change.states[-1])
            for key, change in moved.items()
        }
        former = {(key, True): change.states[0] & change.states[-2] for key, change in moved.items()}
        observed = [former] if view.key in self.sides.possible else []
        return Order(settings=tuple(reach_of(observed, needed, moved).settings(())))

    @cached_property
    def _unread(self) -> Set[str]:
        return {key for key, view in self.sides.views.items() if read_relations(view.query) is None}


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
        if not self.sides.moved and not self.sides.new_names:
            return
        for key, view in sorted({**left, **self.sides.views}.items()):
            if key not in undeclared:
                broken = partial(
                    BrokenView,
                    view.qualified_name,
                    declared_at=view.declared_at,
                    is_selected=key in self.sides.views,
                )
                if self.sides.retyped or self.sides.swapped:
                    yield from self._never_resolving(view, broken)
                if self.sides.keeps_query(view):
                    sides = self.sides.needs_before(key, stays=True)
                    lost = (self._lost_by(reads, needs, broken) for reads, needs in sides)
                    yield from dict.fromkeys(chain.from_iterable(lost))
                else:
                    yield from self._gone_from(view, broken)

    def _never_resolving(self, view: View, broken: partial[BrokenView]) -> Iterator[BrokenView]:
        """Yield the columns whose other types or conversions a view survives neither before nor after it changes.

        A view that only becomes bound keeps the types that it has.
        """
        keeps_query = self.sides.keeps_query(view)
        before = [needs for _, needs in self.sides.needs_before(view.key, stays=keeps_query)]
        after = self.sides.needs_after(view) or {}
        types, bound = set[Column]().union(*map(typed_columns, before)), typed_columns(after)
        missed = set[Column]().union(*map(self._converted, before))
        if not keeps_query:
            types &= bound
            missed &= self._converted(after)
        elif self.sides.new.mode(view.key) is self.sides.old.mode(view.key):
            types |= bound
        else:
            types = {*bound}
        for table, column in sorted(types):
            yield broken(table, (column,), is_retyped=True)
        for table, column in sorted(missed):
            yield broken(table, (column,), is_converted=True)

    def _lost_by(self, reads: Reads, needs: Needs, broken: partial[BrokenView]) -> Iterator[BrokenView]:
        """Yield what a query that stays reads and loses."""
        converted = {table for table, _ in self._converted(needs)}
        lost = {
            read: {fact for fact in self._lost_of(read[0], facts) if not is_about_types(fact)}
            for read, facts in needs.items()
            if read[0] not in converted
        }
        lost = {read: facts for read, facts in lost.items() if facts}
        direct = {(key, is_below) for key, is_below in lost if not is_below}
        for relation, is_below in sorted(direct or lost):
            facts = lost[relation, is_below]
            columns = {name for name, _ in facts if name}
            is_by_star = bool(columns) and columns.isdisjoint(reads.columns.get(relation, ()))
            is_gone = EXISTS in facts
            yield broken(
                relation,
                () if is_gone else tuple(sorted(columns)),
                is_by_star=is_by_star,
                is_counted=not is_gone and not columns,
            )
        yield from self._renamed_in(reads.columns, broken)

    def _lost_of(self, key: str, facts: State) -> State:
        """Return what a table or view loses, but no number of columns that is back when a conversion ends."""
        lost = self.sides.moved[key].lost(facts)
        if not self.sides.ends_conversions(key):
            return lost
        return frozenset(fact for fact in lost if not counts_columns(frozenset({fact})))

    def _gone_from(self, view: View, broken: partial[BrokenView]) -> Iterator[BrokenView]:
        """Yield the tables and views that a new query reads and that the plan drops or renames."""
        read = {name.key for name in read_relations(view.query) or ()}
        for relation in sorted(read & self.sides.moved.keys()):
            if not self.sides.moved[relation].states[-1]:
                yield broken(relation, ())
        yield from self._renamed_in(read - self.sides.after.keys(), broken)

    def _renamed_in(self, read: Iterable[str], broken: partial[BrokenView]) -> Iterator[BrokenView]:
        for relation in sorted({*read} & self.sides.new_names.keys()):
            yield broken(relation, (), renamed_to=str(self.sides.new_names[relation]))

    def _converted(self, needs: Needs) -> Set[Column]:
        converted = set[Column]()
        for table, name in self.sides.swapped:
            _, former = self.sides.former((table, name))
            facts = needs.get((table, False), ABSENT) | needs.get((table, True), ABSENT)
            if counts_columns(facts) or not facts.isdisjoint({(former, former), (name, "")}):
                converted.add((table, name))
        return converted
