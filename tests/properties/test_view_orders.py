"""The order of statements across tables and views: after every statement every view resolves.

Two worlds of tables and views are drawn. The statements between them run on the fake catalog, in any order that the
edges of `view_reach` allow. After each, a query of every view works. At the end, no comment, tag or grant is missing.
Changes that no order makes safe are refused: a view that stays as it is and loses what it reads, and circles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random

from hypothesis import event, given, settings
from hypothesis import strategies as st

from delta_engine.aspects.view_reach import Moved, Order, Place, Side, Turn, broken_by, order_of
from delta_engine.models.parts import QualifiedName
from delta_engine.models.views import SchemaMode, View, ViewColumn, ViewName
from delta_engine.sql.governance import sql_grant, sql_set_tags
from delta_engine.sql.text import quote_ident
from delta_engine.sql.view_queries import (
    is_same_query,
    read_columns,
    read_relations,
    returned_columns,
    without_names,
)
from delta_engine.sql.views import (
    sql_alter_view_query,
    sql_create_view,
    sql_drop_view,
    sql_set_schema_mode,
    sql_set_view_column_comment,
    sql_set_view_comment,
    takes_comments,
    view_as_table,
    view_securable,
)
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.refusals import Refusal
from tests.proofs import examples

NAMES = ("a", "b", "c", "d", "e", "f")
TABLES = ("dev.silver.t", "dev.silver.u")
VIEWS = ("dev.gold.v", "dev.gold.w", "dev.gold.x")
Columns = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class World:
    """Tables with their columns, and views.

    Args:
        views: in an order in which each reads those before it.
        renamed: the new names of columns since the world before, by table.
        shown: the columns of views as a catalog shows them; None for those that their queries return.
    """

    tables: Columns
    views: Mapping[str, View]
    renamed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    shown: Columns | None = None

    def relations(self, former: World | None = None, observed: Columns | None = None) -> Columns:
        """Return the columns of all tables and views; a view whose query stays keeps those that it had."""
        columns = dict(self.tables)
        if self.shown is not None:
            return {**columns, **self.shown}
        for key, view in self.views.items():
            kept = former.views.get(key) if former else None
            if observed is not None and kept is not None and _keeps_columns(kept, view):
                columns[key] = observed[key]
            else:
                returned = returned_columns(view.query, columns)
                assert returned is not None, view.query
                columns[key] = returned
        return columns

    def side(self, key: str, columns: Columns) -> Side:
        view = self.views[key]
        reads = read_columns(view.query, columns)
        assert reads is not None, view.query
        return Side(reads, view.schema_mode)


def _keeps_columns(former: View, view: View) -> bool:
    evolves = SchemaMode.EVOLUTION in (former.schema_mode, view.schema_mode)
    return not evolves and is_same_query(former.query, view.query)


def query_over(random: Random, relations: Columns) -> str:
    """Draw a query over some tables and views."""
    first, second = (random.choice(sorted(relations)) for _ in range(2))
    a, b = (random.choice(relations[first]) for _ in range(2))
    c, d = (random.choice(relations[second]) for _ in range(2))
    out, other = random.sample(NAMES, 2)
    listed = ", ".join(relations[first])
    return random.choice(
        (
            f"SELECT {a} AS {out}, {b} AS {other} FROM {first}",
            f"SELECT {a} AS {out} FROM {first} WHERE {b} > 1 -- some",
            f"SELECT r.{a} AS {out}, s.{c} AS {other} FROM {first} AS r JOIN {second} s ON r.{b} = s.{d}",
            f"SELECT * FROM {first}",
            f"SELECT r.* FROM {first} AS r WHERE EXISTS (SELECT 1 FROM {second} AS s WHERE s.{c} = r.{a})",
            f"WITH y AS (SELECT * FROM {first}) SELECT {a} AS {out} FROM y ORDER BY {b}",
            f"SELECT {a} AS {out} FROM {first} UNION ALL SELECT {c} FROM {second}",
            f"SELECT {a} AS {out}, (SELECT max(s.{c}) FROM {second} AS s) AS {other} FROM {first}",
            f"SELECT o.{a} AS {out} FROM {first} AS o({listed})",
            f"SELECT * FROM {first} UNION ALL SELECT {', '.join('1' for _ in relations[first])}",
            f"SELECT *, 1 AS g_{first[-1]} FROM {first} AS r",
            f"SELECT z.{out} FROM {first} LATERAL VIEW explode(array({a}, {b})) z AS {out}",
        )
    )


def view_over(random: Random, key: str, relations: Columns) -> View:
    query = query_over(random, relations)
    mode = random.choice((None, *SchemaMode, SchemaMode.EVOLUTION))
    catalog, schema, name = key.split(".")
    view = View(catalog, schema, name, query, schema_mode=mode, grants={"bob": ["SELECT"]})
    returned = returned_columns(query, relations)
    assert returned is not None, query
    commented = () if mode is SchemaMode.EVOLUTION else returned
    columns = [
        ViewColumn(name, f"about {name}", tags={"pii": "no"} if random.random() < 0.3 else {})
        for name in commented
        if random.random() < 0.5
    ]
    return replace(view, columns=tuple(columns), comment="a view", tags={"domain": "sales"}, declared_at=None)


def drawn(random: Random) -> World:
    tables = {key: _columns(random) for key in TABLES[: random.choice((1, 2, 2))]}
    world = World(tables=tables, views={})
    for key in VIEWS[: random.randint(1, 3)]:
        view = view_over(random, key, world.relations())
        world = replace(world, views={**world.views, key: view})
    return world


def changed(random: Random, before: World) -> World:
    """Draw the world that the models want next: other columns and tables, and views that mostly go along."""
    tables, renamed = {}, {}
    for key in TABLES:
        if key in before.tables:
            tables[key], renamed[key] = _other_columns(random, before.tables[key])
        elif random.random() < 0.5:
            tables[key] = _columns(random)
    after = World(tables=tables, views={}, renamed=renamed)
    observed = before.relations()
    for key in VIEWS:
        view = before.views.get(key)
        relations = after.relations(before, observed)
        if view is None or random.random() < 0.15:
            wants = random.random() < (0.3 if view is None else 0.7)
            view = view_over(random, key, relations) if wants else None
        else:
            view = _other_view(random, key, view, after, relations)
        if view is not None and _resolves(view, relations):
            after = replace(after, views={**after.views, key: view})
    unread = {key for key in tables if not any(key in _read(view) for view in after.views.values())}
    for key in unread:
        if random.random() < 0.6 and len(after.tables) > 1:
            after = replace(after, tables={name: after.tables[name] for name in after.tables if name != key})
    return after


def _columns(random: Random) -> tuple[str, ...]:
    return tuple(random.sample(NAMES, random.randint(2, 4)))


def _other_columns(random: Random, columns: Sequence[str]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    free = [name for name in NAMES if name not in columns]
    renamed: dict[str, str] = {}
    if random.random() < 0.35 and free:
        renamed[random.choice(columns)] = free.pop()
    kept = [renamed.get(name, name) for name in columns]
    if random.random() < 0.3 and len(kept) > 1:
        dropped = random.choice(kept)
        if dropped not in renamed.values():
            kept.remove(dropped)
    if random.random() < 0.35 and free:
        kept.append(free.pop())
    return tuple(kept), renamed


def _other_view(random: Random, key: str, view: View, after: World, relations: Columns) -> View:
    """Return a view as it is, or as a user adapts it to renamed columns, or another one."""
    if random.random() < 0.15:
        view = replace(view, schema_mode=random.choice((None, *SchemaMode)), declared_at=None)
        if view.schema_mode is SchemaMode.EVOLUTION:
            view = replace(view, columns=(), declared_at=None)
    if _resolves(view, relations) and random.random() < 0.85:
        return view
    query = view.query
    for names in after.renamed.values():
        for former, name in names.items():
            query = re.sub(rf"(?<!AS )\b{former}\b", name, query)
    adapted = replace(view, query=query, declared_at=None)
    return adapted if _resolves(adapted, relations) else view_over(random, key, relations)


def _read(view: View) -> frozenset[str]:
    relations = read_relations(view.query)
    assert relations is not None
    return frozenset(name.key for name in relations)


def _resolves(view: View, relations: Columns) -> bool:
    """Whether a view can be created over tables and views, and has the columns that it documents."""
    if not _read(view) <= {*relations}:
        return False
    catalog = FakeUnityCatalog(["dev.silver", "dev.gold"])
    for key, columns in relations.items():
        catalog.run(_create_table(key, columns))
    try:
        outputs = catalog.returned(view.query)
    except Refusal:
        return False
    return {column.key for column in view.columns} <= {name.lower() for name in outputs}


def _create_table(key: str, columns: Iterable[str]) -> str:
    listed = ", ".join(f"{quote_ident(name)} INT" for name in columns)
    mapping = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    return f"CREATE TABLE {key} ({listed}) USING delta {mapping}"


@dataclass(frozen=True, kw_only=True)
class Step:
    """Statements that run one after the other, and the steps that they wait for."""

    name: str
    statements: tuple[str, ...]
    needs: frozenset[str] = frozenset()


def moved_between(before: World, after: World) -> Mapping[str, Moved]:
    observed = before.relations()
    desired = after.relations(before, observed)
    return {
        key: Moved(
            before=frozenset(observed[key]) if key in observed else None,
            after=frozenset(desired[key]) if key in desired else None,
            renamed=after.renamed.get(key, {}),
            is_view=key in VIEWS,
        )
        for key in {*observed, *desired}
        if observed.get(key) != desired.get(key) or after.renamed.get(key)
    }


def broken(before: World, after: World) -> bool:
    """Whether the plan takes from a view what it reads, without giving it another query."""
    moved, columns = moved_between(before, after), before.relations()
    for key, former in before.views.items():
        view = after.views.get(key)
        if view is None or not is_same_query(former.query, view.query):
            continue
        evolves = SchemaMode.EVOLUTION in (former.schema_mode, view.schema_mode)
        mode = SchemaMode.EVOLUTION if evolves else former.schema_mode
        if next(broken_by(before.side(key, columns)._replace(mode=mode), moved), None):
            return True
    return False


class Steps:
    """The steps between two worlds, by name."""

    def __init__(self, before: World, after: World) -> None:
        self.before, self.after = before, after
        self.observed = before.relations()
        self.desired = after.relations(before, self.observed)
        self.moved = moved_between(before, after)
        self.nodes: dict[str, tuple[str, ...]] = {}
        self.edges: set[tuple[str, str]] = set()
        self.orders: dict[str, Order] = {}
        self.is_bridged = True  # whether every view can read by position what it has to

    def made(self) -> list[Step]:
        for key in sorted({*self.before.tables, *self.after.tables}):
            self._table(key)
        for key in VIEWS:
            self._view(key)
        for key, order in self.orders.items():
            self._connect(key, order)
        return [
            Step(
                name=name,
                statements=statements,
                needs=frozenset(
                    first for first, later in self.edges if later == name and first in self.nodes
                ),
            )
            for name, statements in self.nodes.items()
        ]

    def _table(self, key: str) -> None:
        former, columns = self.before.tables.get(key), self.after.tables.get(key)
        if columns is None:
            self.nodes[_node(key, Turn.DROP)] = (f"DROP TABLE {key}",)
            return
        if former is None:
            self.nodes[_node(key, Turn.CREATE)] = (_create_table(key, columns),)
            return
        moved = self.moved.get(key)
        if moved is None:
            return
        renames = tuple(f"ALTER TABLE {key} RENAME COLUMN {a} TO {b}" for a, b in moved.renamed.items())
        added = ", ".join(f"{name} INT" for name in sorted(moved.gained))
        turns = {
            Turn.RENAME_COLUMNS: renames,
            Turn.ADD_COLUMNS: (f"ALTER TABLE {key} ADD COLUMNS ({added})",) if added else (),
            Turn.DROP_COLUMNS: tuple(f"ALTER TABLE {key} DROP COLUMN {name}" for name in sorted(moved.lost)),
        }
        for turn, statements in turns.items():
            self.nodes[_node(key, turn)] = statements
        self._chain(*(_node(key, turn) for turn in turns))

    def _view(self, key: str) -> None:
        former, view = self.before.views.get(key), self.after.views.get(key)
        if former == view:
            return
        observed = self.before.side(key, self.observed) if former else None
        desired = self.after.side(key, self.desired) if view else None
        order = self.orders[key] = order_of(observed, desired, self.moved)
        if view is None:
            assert former is not None
            self.nodes[_node(key, Turn.DROP)] = (sql_drop_view(former.qualified_name),)
        elif former is None:
            created = (sql_create_view(view), *_dressing(view, is_new=True))
            self.nodes[_node(key, Turn.CREATE)] = created
        else:
            query = view.query
            for table in sorted(order.bridged):
                renamed = self.after.renamed[table]
                names = [renamed.get(name, name) for name in self.before.tables[table]]
                bridged = without_names(query, QualifiedName(*table.split(".")), names)
                self.is_bridged = self.is_bridged and bridged is not None
                query = bridged or query
            first = _node(key, Turn.QUERY)
            if order.bridged:
                self.nodes[first] = (sql_alter_view_query(view.qualified_name, query),)
                self.nodes[f"{first} at last"] = _altered(former, view, again=True)
                self._chain(first, f"{first} at last")
                for table in order.bridged:
                    rename = _node(table, Turn.RENAME_COLUMNS)
                    self._chain(first, rename, f"{first} at last", _node(table, Turn.ADD_COLUMNS))
                    self._chain(f"{first} at last", _node(table, Turn.DROP_COLUMNS))
            else:
                self.nodes[first] = _altered(former, view)

    def _connect(self, key: str, order: Order) -> None:
        (first,) = (
            node
            for node in (_node(key, Turn.CREATE), _node(key, Turn.QUERY), _node(key, Turn.DROP))
            if node in self.nodes
        )
        counted = self.before.side(key, self.observed).reads.counted if key in self.before.views else ()
        for place in order.precedes:
            gains = (Turn.ADD_COLUMNS,) if place[0] in counted else ()
            for node in self._causes(place, (Turn.RENAME_COLUMNS, *gains, Turn.DROP_COLUMNS)):
                self._chain(first, node)
        for place in order.follows:
            turns = (Turn.RENAME_COLUMNS, Turn.ADD_COLUMNS, Turn.DROP_COLUMNS)
            for node in self._causes(place, turns):
                self._chain(node, first)

    def _causes(self, place: Place, turns: Sequence[Turn]) -> Iterator[str]:
        """Yield the steps that make a change; a view that evolves also changes at some turns of what it reads."""
        key, turn = place
        yield _node(key, turn)
        if turn is Turn.CREATE:
            return
        for world, columns in ((self.before, self.observed), (self.after, self.desired)):
            view = world.views.get(key)
            if view is None or view.schema_mode is not SchemaMode.EVOLUTION:
                continue
            for inner in world.side(key, columns).reads.spread:
                if inner in VIEWS:
                    yield from self._causes((inner, Turn.QUERY), turns)
                else:
                    yield from (_node(inner, other) for other in turns)

    def _chain(self, *nodes: str) -> None:
        self.edges |= {*pairwise(nodes)}


def _node(key: str, turn: Turn) -> str:
    return f"{turn.value} {key}"


def _altered(former: View, view: View, *, again: bool = False) -> tuple[str, ...]:
    """Return the statements that change a view, the query also again; they bring back all that it loses."""
    name = view.qualified_name
    mode = view.schema_mode or SchemaMode.COMPENSATION
    has_query = not again and is_same_query(former.query, view.query)
    query = () if has_query else (sql_alter_view_query(name, view.query),)
    modes = () if former.schema_mode is view.schema_mode else (sql_set_schema_mode(name, mode),)
    changes = (*modes, *query) if mode is SchemaMode.EVOLUTION else (*query, *modes)
    grants = () if former.grants == view.grants else (sql_grant(view_securable(name), ["SELECT"], "bob"),)
    return (*changes, *_dressing(view, is_new=False), *grants)


def _dressing(view: View, *, is_new: bool) -> Iterator[str]:
    name: ViewName = view.qualified_name
    if not is_new:
        yield sql_set_view_comment(name, view.comment)
    yield sql_set_tags(view_securable(name), view.tags)
    for column in view.columns:
        if column.comment and not (is_new and takes_comments(view)):
            yield sql_set_view_column_comment(name, column.name, column.comment)
        if column.tags:
            yield sql_set_tags(view_as_table(name), column.tags, column.name)
    if is_new:
        yield sql_grant(view_securable(name), ["SELECT"], "bob")


def any_order(random: Random, before: World, after: World) -> list[Step] | None:
    """Return the steps in a random order that their needs allow; None if no order is safe."""
    steps = Steps(before, after)
    waiting, order = {step.name: step for step in steps.made()}, list[Step]()
    while waiting:
        ready = [step for step in waiting.values() if step.needs.isdisjoint(waiting)]
        if not ready:
            return None
        order.append(waiting.pop(random.choice(ready).name))
    return order if steps.is_bridged else None


def catalog_of(world: World) -> FakeUnityCatalog:
    catalog = FakeUnityCatalog(["dev.silver", "dev.gold"])
    for key, columns in world.tables.items():
        catalog.run(_create_table(key, columns))
    for view in world.views.values():
        for sql in (sql_create_view(view), *_dressing(view, is_new=True)):
            catalog.run(sql)
    return catalog


def failures(catalog: FakeUnityCatalog) -> Mapping[str, str]:
    failed = {}
    for key in catalog.user_views:
        try:
            catalog.query_view(key)
        except Refusal as refusal:
            failed[key] = str(refusal)
    return failed


def left_in(catalog: FakeUnityCatalog, after: World) -> World:
    """Return the world that a run left when it stopped."""
    tables = {
        key: tuple(column.name for column in catalog.tables[key].state.columns)
        for key in TABLES
        if key in catalog.tables
    }
    views, shown = {}, {}
    for key in VIEWS:
        if key in catalog.user_views:
            stored, model = catalog.query_view(key), after.views.get(key)
            shown[key] = tuple(column.name.lower() for column in stored.columns)
            documented = {column.key for column in model.columns} if model else {*shown[key]}
            mode = None if model is None or model.schema_mode is None else stored.mode
            catalog_name, schema, name = key.split(".")
            views[key] = View(
                catalog_name,
                schema,
                name,
                stored.query,
                [
                    ViewColumn(column.name, column.comment, tags=column.tags)
                    for column in stored.columns
                    if column.name.lower() in documented
                ],
                schema_mode=mode if stored.mode is SchemaMode.COMPENSATION else stored.mode,
                comment=stored.comment,
                tags=stored.tags,
                grants=stored.grants,
            )
    return World(tables=tables, views=views, shown=shown)


def wanted_from(left: World, after: World) -> World:
    """Return the wanted world with the renames that a stopped run has not made."""
    renamed = {
        key: {former: name for former, name in names.items() if former in left.tables.get(key, ())}
        for key, names in after.renamed.items()
    }
    return replace(after, renamed=renamed)


def require_dressed(catalog: FakeUnityCatalog, after: World) -> None:
    """Require that every view is as it is declared."""
    assert {*catalog.user_views} == {*after.views}
    for key, view in after.views.items():
        stored = catalog.query_view(key)
        assert is_same_query(stored.query, view.query)
        assert stored.mode is (view.schema_mode or SchemaMode.COMPENSATION)
        assert (stored.comment, stored.tags, stored.grants) == (view.comment, view.tags, view.grants)
        for column in view.columns:
            shown = stored.column(column.name)
            assert (shown.comment, shown.tags) == (column.comment, column.tags), column


def run(catalog: FakeUnityCatalog, statements: Iterable[str]) -> None:
    """Run statements; every view has to resolve after each."""
    for sql in statements:
        catalog.run(sql)
        assert not failures(catalog), f"{failures(catalog)} after {sql}"


@settings(max_examples=examples(300, 30_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_every_view_resolves_after_every_statement(seed: int) -> None:
    random = Random(seed)
    before = drawn(random)
    after = changed(random, before)
    if broken(before, after):
        event("refused: a view that stays loses what it reads")
        return
    order = any_order(random, before, after)
    if order is None:
        event("refused: no order is safe")
        return
    event(f"{sum(bool(step.statements) for step in order)} steps")
    catalog = catalog_of(before)
    run(catalog, (sql for step in order for sql in step.statements))
    require_dressed(catalog, after)


@settings(max_examples=examples(150, 15_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_run_that_stops_after_any_statement_can_be_continued(seed: int) -> None:
    random = Random(seed)
    before = drawn(random)
    after = changed(random, before)
    order = None if broken(before, after) else any_order(random, before, after)
    if order is None:
        return
    catalog = catalog_of(before)
    statements = [sql for step in order for sql in step.statements]
    run(catalog, statements[: random.randint(0, len(statements))])
    left = left_in(catalog, after)
    wanted = wanted_from(left, after)
    assert not broken(left, wanted)
    rest = any_order(random, left, wanted)
    assert rest is not None, "no order is safe any more"
    run(catalog, (sql for step in rest for sql in step.statements))
    require_dressed(catalog, after)
