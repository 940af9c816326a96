"""The order of statements across tables and views: after every statement every view resolves.

Two worlds of tables and views are drawn. The statements between them run on the fake catalog, in any order that the
edges of `view_reach` allow. After each, a query of every view works. At the end, no comment, tag or grant is missing.
Changes that no order makes safe are refused: a view that stays as it is and loses what it reads, and circles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from random import Random

from hypothesis import event, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Allowance, DestructiveKind, Policy, Removed
from delta_engine.aspects.view_sides import readers_of
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.resources import unfinished
from delta_engine.drift.synchronizing import attempted_by
from delta_engine.models import (
    Column,
    ColumnMask,
    Function,
    Parameter,
    SchemaMode,
    Securable,
    Table,
    View,
    ViewColumn,
)
from delta_engine.sql.text import quote_ident
from delta_engine.sql.view_queries import is_same_query, parsed_query, read_relations, returned_columns
from delta_engine.validation import backfill_rules, view_rules
from tests.builders.deployment import records_of
from tests.fakes.planning import compiled
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.refusals import Refusal
from tests.proofs import examples

POLICY = Policy(
    allow=tuple(map(Allowance, DestructiveKind)), removed_views=Removed.DROP, removed_tables=Removed.DROP
)
NAMES = ("a", "b", "c", "d", "e", "f")
TABLES = ("dev.silver.t", "dev.silver.u")
HIDE = "dev.silver.hide"
VIEWS = ("dev.gold.v", "dev.gold.w", "dev.gold.x")
Columns = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class World:
    """Tables with their columns, and views.

    Args:
        views: in an order in which each reads those before it.
        renamed: the new names of columns since the world before, by table.
        wide: the columns of type BIGINT, by table; the others are INT.
        converting: the tables whose wide columns are of type STRING, with values from `using`.
        masked: the columns with a mask, by table.
        body: that of the function of all masks; empty for no function.
        shown: the columns of views as a catalog shows them; None for those that their queries return.
    """

    tables: Columns
    views: Mapping[str, View]
    renamed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    wide: Mapping[str, frozenset[str]] = field(default_factory=dict)
    converting: Set[str] = frozenset()
    masked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    body: str = ""
    shown: Columns | None = None

    def relations(self, former: World | None = None, observed: Columns | None = None) -> Columns:
        """Return the columns of all tables and views; a view whose query stays keeps those that it had."""
        columns = dict(self.tables)
        if self.shown is not None:
            return {**columns, **self.shown}
        for key, view in self.views.items():
            kept = former.views.get(key) if former else None
            if observed is not None and kept is not None and _keeps_columns(kept, view, observed[key]):
                columns[key] = observed[key]
            else:
                returned = returned_columns(view.query, columns)
                assert returned is not None, view.query
                columns[key] = returned
        return columns


def _keeps_columns(former: View, view: View, returned: Iterable[str]) -> bool:
    evolves = SchemaMode.EVOLUTION in (former.schema_mode, view.schema_mode)
    return not evolves and not _is_set(former, view, returned)


def _is_set(former: View, view: View, returned: Iterable[str]) -> bool:
    """Whether a view gets its query: another one, or the same again for columns that came later."""
    is_documented = {column.key for column in view.columns} <= {name.lower() for name in returned}
    return not is_documented or not is_same_query(former.query, view.query)


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
    world = World(tables=tables, views={}, wide=_wide(random, tables))
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
    widened = _wide(random, tables)
    kept = {key: {renamed[key].get(name, name) for name in wide} for key, wide in before.wide.items()}
    wide = {key: columns | frozenset(kept.get(key, ())) for key, columns in widened.items()}
    after = World(tables=tables, views={}, renamed=renamed, wide=wide)
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
    for key in sorted(unread):
        if random.random() < 0.6 and len(after.tables) > 1:
            after = replace(after, tables={name: after.tables[name] for name in after.tables if name != key})
    return replace(after, converting={key for key in TABLES if random.random() < 0.5})


def _columns(random: Random) -> tuple[str, ...]:
    return tuple(random.sample(NAMES, random.randint(2, 4)))


def _wide(random: Random, tables: Columns) -> Mapping[str, frozenset[str]]:
    """Draw the columns that have, or get, the wider type: often none, as bound views do not survive it."""
    share = random.choice((0.0, 0.1, 0.3))
    return {
        key: frozenset(name for name in names if random.random() < share) for key, names in tables.items()
    }


def governed(random: Random, world: World) -> World:
    """Draw masks over the columns of a world, and what they show."""
    masked = {
        key: frozenset(name for name in names if random.random() < 0.3) for key, names in world.tables.items()
    }
    return replace(world, wide={}, masked=masked, body=random.choice(("v", "-v", "NULL")))


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
    if random.random() < 0.15 and not view.evolves:  # a star may have to return more than before
        returned = returned_columns(view.query, relations) or ()
        view = replace(view, columns=tuple(ViewColumn(name, "other") for name in returned), declared_at=None)
    if _resolves(view, relations) and random.random() < 0.85:
        return view
    query = view.query
    for names in after.renamed.values():
        for former, name in names.items():
            query = re.sub(rf"(?<!AS )\b{former}\b", name, query)
    adapted = replace(view, query=query, declared_at=None)
    return adapted if _resolves(adapted, relations) else view_over(random, key, relations)


def _read(view: View) -> frozenset[str]:
    return _read_by(view.query)


def _read_by(query: str) -> frozenset[str]:
    relations = read_relations(query)
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
    if _reads_its_own_alias(view.query, relations):
        return False
    return {column.key for column in view.columns} <= {name.lower() for name in outputs}


def _reads_its_own_alias(query: str, relations: Columns) -> bool:
    """Whether a name in the SELECT list is another column's alias: while a table has such a column, it is that one.

    If that column goes, the view resolves all the same, with other values. The engine refuses to take the column.
    """
    tree = parsed_query(query)
    assert tree is not None
    names = {column.name for output in tree.selects for column in output.find_all(exp.Column)}
    aliases = {output.alias for output in tree.selects}
    return not names & aliases <= {name for key in _read_by(query) for name in relations[key]}


def _create_table(key: str, columns: Iterable[str]) -> str:
    listed = ", ".join(f"{quote_ident(name)} INT" for name in columns)
    mapping = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    return f"CREATE TABLE {key} ({listed}) USING delta {mapping}"


def models_of(world: World) -> tuple[list[Table], list[View]]:
    """Return the models of a world. Modes are written out, because a model without one does not manage it."""
    views = [
        replace(view, schema_mode=view.schema_mode or SchemaMode.COMPENSATION, declared_at=None)
        for view in world.views.values()
    ]
    return [_model(key, world) for key in world.tables], views


def functions_of(world: World) -> list[Function]:
    return (
        [Function("dev", "silver", "hide", "int", world.body, [Parameter("v", "int")])] if world.body else []
    )


def _model(key: str, world: World) -> Table:
    former = {name: old for old, name in world.renamed.get(key, {}).items()}
    wide = world.wide.get(key, frozenset())
    wide_type = "string" if key in world.converting else "bigint"
    catalog, schema, table = key.split(".")
    return Table(
        catalog,
        schema,
        table,
        [
            Column(
                name,
                wide_type if name in wide else "int",
                using=f"CAST({name} AS STRING)" if name in wide and key in world.converting else None,
                renamed_from=former.get(name),
                mask=ColumnMask(HIDE) if name in world.masked.get(key, ()) else None,
            )
            for name in world.tables[key]
        ],
        table_properties={"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"},
    )


def plan_of(
    catalog: FakeUnityCatalog, before: World, after: World, stopped: TablePlan | None = None
) -> TablePlan:
    """Return the plan of the engine that leads from a catalog to a world.

    Args:
        stopped: the plan of a run that was killed.
    """
    tables, views = models_of(after)
    former_tables, former_views = models_of(before)
    functions = functions_of(after)
    declared = {table.key for table in tables}
    gone = {
        table.qualified_name: 0
        for table in former_tables
        if table.key not in declared and table.key in catalog.tables
    }
    state = catalog.snapshot(
        [*tables, *(t for t in former_tables if t.key not in declared), *functions, *views, *former_views]
    )
    kept = (table for table in former_tables if table.key in declared)
    records = records_of([*former_views, *functions_of(before), *kept])
    models: list[Securable] = [*functions, *tables, *views]
    attempted = attempted_by(stopped, models, records) if stopped else {}
    for key, attempts in attempted.items():
        name = attempts[0].model.qualified_name
        records[key] = unfinished(name, None, attempted=attempts, earlier=records.get(key))
    return TablePlanner(POLICY).plan(models, state, records, gone)


def refused(plan: TablePlan) -> str:
    """Return why the rules of views and of conversions refuse a plan; empty if they do not."""
    rules = (
        backfill_rules.NoBlockedFills(),
        view_rules.ViewsKeepWhatTheyRead(),
        view_rules.ViewsFindAnOrder(),
    )
    return next((type(rule).__name__ for rule in rules for _ in rule.check(plan, POLICY)), "")


def any_order(random: Random, plan: TablePlan) -> list[str]:
    """Return the statements of a plan, their steps in a random order that the compiled plan allows."""
    steps = compiled(plan).steps
    left, done, statements = dict(enumerate(steps)), set[int](), list[str]()
    while left:
        current = min(step.round for step in left.values())
        ready = [
            place for place, step in left.items() if step.round == current and done.issuperset(step.after)
        ]
        place = random.choice(ready)
        done.add(place)
        statements += (statement.sql for statement in left.pop(place).statements)
    return statements


def catalog_of(world: World) -> FakeUnityCatalog:
    """Return a catalog in which the engine has made a world."""
    catalog = FakeUnityCatalog(["dev.silver", "dev.gold"])
    nothing = World(tables={}, views={})
    run(catalog, compiled(plan_of(catalog, nothing, world)).sql(), {*world.views})
    return catalog


def hide_queries(random: Random, catalog: FakeUnityCatalog) -> None:
    """Let another principal run the engine in some catalogs, which hide the queries of their views from it."""
    if random.random() < 0.3:
        catalog.hides_queries, catalog.user = True, "eve"
    event(f"hidden queries: {catalog.hides_queries}")


def failures(catalog: FakeUnityCatalog) -> Mapping[str, str]:
    failed = {}
    for key in catalog.user_views:
        try:
            catalog.query_view(key)
        except Refusal as refusal:
            failed[key] = str(refusal)
    return failed


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


def run(catalog: FakeUnityCatalog, statements: Iterable[str], declared: Set[str]) -> None:
    """Run statements; every view that the models declare has to resolve after each."""
    for sql in statements:
        catalog.run(sql)
        failed = {key: why for key, why in failures(catalog).items() if key in declared}
        assert not failed, f"{failed} after {sql}"


def has_unknown_types(before: World, after: World) -> bool:
    """Whether a bound view is above a view that gets another query: the engine computes no types of expressions."""
    returned = before.relations()
    changed = {
        key
        for key, view in after.views.items()
        if key in before.views and _is_set(before.views[key], view, returned[key])
    }
    above = readers_of(changed, after.views.values())
    modes = {
        world.views[view.key].schema_mode
        for view in above
        for world in (before, after)
        if view.key in world.views
    }
    return SchemaMode.BINDING in modes


@settings(max_examples=examples(300, 30_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_every_view_resolves_after_every_statement(seed: int) -> None:
    random = Random(seed)
    before = drawn(random)
    after = changed(random, before)
    if has_unknown_types(before, after):
        event("unknown types")
        return
    catalog = catalog_of(before)
    hide_queries(random, catalog)
    plan = plan_of(catalog, before, after)
    if why := refused(plan):
        event(f"refused: {why}")
        return
    statements = any_order(random, plan)
    event(f"{len(plan.changes)} changes")
    run(catalog, statements, {*after.views})
    require_dressed(catalog, after)
    assert not plan_of(catalog, after, replace(after, renamed={}))


@settings(max_examples=examples(150, 15_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_run_that_stops_after_any_statement_can_be_continued(seed: int) -> None:
    random = Random(seed)
    before = drawn(random)
    after = changed(random, before)
    if has_unknown_types(before, after):
        event("unknown types")
        return
    catalog = catalog_of(before)
    hide_queries(random, catalog)
    plan = plan_of(catalog, before, after)
    if refused(plan):
        return
    statements = any_order(random, plan)
    run(catalog, statements[: random.randint(0, len(statements))], {*after.views})
    rest = plan_of(catalog, before, after, stopped=plan)
    assert not refused(rest), "no order is safe any more"
    run(catalog, any_order(random, rest), {*after.views})
    require_dressed(catalog, after)


@settings(max_examples=examples(100, 10_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_views_of_tables_with_masks_resolve_after_every_statement(seed: int) -> None:
    random = Random(seed)
    before = governed(random, drawn(random))
    after = governed(random, changed(random, before))
    catalog = catalog_of(before)
    plan = plan_of(catalog, before, after)
    if why := refused(plan):
        event(f"refused: {why}")
        return
    event(f"is governed: {any(change.name.kind == 'function' for change in plan.changes)}")
    run(catalog, any_order(random, plan), {*after.views})
    require_dressed(catalog, after)
    assert not plan_of(catalog, after, replace(after, renamed={}))
