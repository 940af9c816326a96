"""Plans of views next to functions and renamed tables, which the law of their orders leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Allowance, DestructiveKind, Policy, Removed
from delta_engine.aspects.restores import RestoreTable
from delta_engine.compile.compiled_plan import Step
from delta_engine.compile.planner import TablePlanner
from delta_engine.compile.restoring import with_restores
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
from delta_engine.models.parts import QualifiedName
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.function_states import function_state_of
from delta_engine.state.states import CatalogState, state_of
from delta_engine.state.view_states import ABSENT_VIEW, view_state_of, with_set_queries
from delta_engine.validation import view_rules
from delta_engine.validation.validator import PlanValidator
from tests.fakes.planning import compiled, statements_of

ORDERS = Table("dev", "silver", "orders", [Column("id", "bigint"), Column("mail", "string")])
SHORT = Function("dev", "silver", "short", "string", "left(v, 3)", [Parameter("v", "string")])
MAILS = View("dev", "silver", "mails", "SELECT dev.silver.short(mail) AS mail FROM dev.silver.orders")


def refusals(plan: TablePlan, **policy: Any) -> list[str]:
    return [refusal.reason for refusal in PlanValidator(Policy(**policy)).plan_violations(plan)]


def observed(*views: View) -> CatalogState:
    return CatalogState(
        tables={ORDERS.key: state_of(ORDERS)},
        functions={SHORT.key: function_state_of(SHORT)},
        views={view.key: view_state_of(view) for view in views},
    )


def test_another_body_of_a_function_that_a_view_calls_needs_consent() -> None:
    models: list[Securable] = [ORDERS, replace(SHORT, body="left(v, 4)"), MAILS]
    (refusal,) = refusals(TablePlanner().plan(models, observed(MAILS)))
    assert refusal == "its new body would change what readers see of view dev.silver.mails"


def test_a_function_that_a_view_calls_is_not_dropped() -> None:
    policy = Policy(removed_functions=Removed.DROP)
    records = {f"function.{SHORT.key}": Recorded.of(SHORT)}
    plan = TablePlanner(policy).plan([ORDERS, MAILS], observed(MAILS), records)
    assert "it would be dropped, and it is used by view dev.silver.mails" in refusals(plan)


def test_a_view_follows_the_function_that_it_calls() -> None:
    state = replace(
        observed(),
        functions={SHORT.key: replace(function_state_of(SHORT), exists=False)},
        views={MAILS.key: ABSENT_VIEW},
    )
    first, last = statements_of(TablePlanner().plan([MAILS, SHORT, ORDERS], state))
    assert (first.split("`")[0], last.split("`")[0]) == ("CREATE FUNCTION ", "CREATE VIEW ")


def test_a_view_changes_right_behind_the_new_name_of_its_table() -> None:
    former = QualifiedName("dev", "silver", "orders")
    sales = Table("dev", "silver", "sales", [*ORDERS.columns, Column("day", "date")], renamed_from="orders")
    desired = replace(MAILS, query=MAILS.query.replace("orders", "sales"))
    state = replace(observed(MAILS), tables={sales.key: replace(state_of(ORDERS), former_name=former)})
    statements = statements_of(TablePlanner().plan([sales, SHORT, desired], state))
    assert [sql.split("`")[0].strip() for sql in statements] == ["ALTER TABLE", "ALTER VIEW", "ALTER TABLE"]


def test_a_view_waits_for_a_new_column_of_a_table_that_gets_another_name() -> None:
    former = QualifiedName("dev", "silver", "orders")
    sales = Table("dev", "silver", "sales", [*ORDERS.columns, Column("day", "date")], renamed_from="orders")
    desired = replace(MAILS, query="SELECT mail, day FROM dev.silver.sales")
    state = replace(observed(MAILS), tables={sales.key: replace(state_of(ORDERS), former_name=former)})
    statements = statements_of(TablePlanner().plan([sales, SHORT, desired], state))
    assert [sql.split("`")[0].strip() for sql in statements] == ["ALTER TABLE", "ALTER TABLE", "ALTER VIEW"]


def test_a_view_reads_no_renamed_column_by_position_that_it_also_reads_through_a_view_that_evolves() -> None:
    spreads = View("dev", "silver", "z", "SELECT * FROM dev.silver.orders", schema_mode=SchemaMode.EVOLUTION)
    query = "SELECT id, (SELECT max(z.{0}) FROM dev.silver.z AS z) AS m FROM dev.silver.orders WHERE {0} > ''"
    former = replace(MAILS, query=query.format("mail"))
    state = replace(
        CatalogState(tables={ORDERS.key: state_of(ORDERS)}),
        views={view.key: view_state_of(view) for view in (spreads, former)},
    )
    renamed = replace(SOLD, columns=SOLD.columns[:2], declared_at=None)
    plan = TablePlanner().plan([renamed, spreads, replace(MAILS, query=query.format("address"))], state)
    assert refusals_of_views(plan) == ["its change and those of dev.silver.orders wait for each other"]


UNREAD = "SELECT id FROM dev.silver.orders QUALIFY WEIRD SYNTAX HERE"
LEGACY = "SELECT * FROM dev.legacy.rates"


@pytest.mark.parametrize("query", [UNREAD, LEGACY])
@pytest.mark.parametrize("before", [None, "SELECT id, mail FROM dev.silver.orders"])
@pytest.mark.parametrize("reads", [None, "SELECT id FROM dev.silver.z"])
def test_a_view_whose_columns_are_unknown_changes_before_its_readers(
    query: str, before: str | None, reads: str | None
) -> None:
    below, above = (
        View("dev", "silver", "z", query),
        View("dev", "silver", "a", "SELECT mail FROM dev.silver.z"),
    )
    former = [replace(below, query=before, columns=(ViewColumn("id"), ViewColumn("mail")))] if before else []
    if before and reads:
        former.append(replace(above, query=reads, columns=(ViewColumn("id"),)))
    state = observed(*former)
    absent = {view.key: ABSENT_VIEW for view in (below, above)}
    state = replace(state, views={**absent, **state.views})
    plan = TablePlanner().plan([ORDERS, SHORT, above, below], state)
    assert refusals(plan) == []
    assert ["`z`" in sql.partition(" AS")[0] for sql in statements_of(plan)] == [True, False]


def test_a_view_stays_over_one_whose_new_columns_are_unknown() -> None:
    below = View("dev", "silver", "z", "SELECT id, mail FROM dev.silver.orders", columns=[ViewColumn("id")])
    above = View("dev", "silver", "a", "SELECT id FROM dev.silver.z")
    plan = TablePlanner().plan([ORDERS, SHORT, above, replace(below, query=LEGACY)], observed(below, above))
    assert refusals(plan) == []


def test_a_view_that_evolves_with_unknown_columns_is_not_dropped_below_another() -> None:
    below = View("dev", "silver", "z", LEGACY, schema_mode="evolution", columns=[ViewColumn("id")])
    above = View("dev", "silver", "a", "SELECT id FROM dev.silver.z")
    policy = Policy(removed_views=Removed.DROP)
    records = {f"view.{view.key}": Recorded.of(view) for view in (below, above)}
    plan = TablePlanner(policy).plan([ORDERS, SHORT, above], observed(below, above), records)
    assert "it reads dev.silver.z, which the plan drops" in refusals(plan)


def test_a_view_that_keeps_the_former_name_of_its_table_is_refused() -> None:
    former = QualifiedName("dev", "silver", "orders")
    sales = Table("dev", "silver", "sales", ORDERS.columns, renamed_from="orders")
    state = replace(observed(MAILS), tables={sales.key: replace(state_of(ORDERS), former_name=former)})
    plan = TablePlanner().plan([sales, SHORT, MAILS], state)
    assert refusals(plan) == ["it reads dev.silver.orders, which the plan renames to dev.silver.sales"]


SOLD = Table(
    "dev",
    "silver",
    "orders",
    [Column("id", "bigint"), Column("address", "string", renamed_from="mail"), Column("day", "date")],
    table_properties={"delta.columnMapping.mode": "name"},
)
FORMER = replace(MAILS, query="SELECT o.mail AS m FROM dev.silver.orders AS o")
BRIDGE = FORMER.query.replace("AS o", "AS o(`id`, `mail`)")
BETWEEN = "SELECT o.mail AS m FROM (SELECT `id`, `address` FROM dev.silver.orders) AS o(`id`, `mail`)"
RENAME = "ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `mail` TO `address`"
ADD = "ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`day` date)"


def of_sold(query: str, stored: str, *columns: Column) -> list[str]:
    """Return the statements that lead from a stored query, and from columns of a table, to another query over SOLD."""
    table = replace(SOLD, columns=columns or ORDERS.columns, declared_at=None)
    state = CatalogState(
        tables={SOLD.key: state_of(table)}, views={MAILS.key: view_state_of(replace(MAILS, query=stored))}
    )
    plan = TablePlanner().plan([SOLD, replace(MAILS, query=query)], state)
    assert refusals(plan) == []
    return [sql.removeprefix("ALTER VIEW `dev`.`silver`.`mails` AS\n") for sql in statements_of(plan)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT o.address AS m, day FROM dev.silver.orders AS o",
        "SELECT day FROM dev.silver.orders",
        "SELECT * FROM dev.silver.orders",
    ],
)
def test_a_view_reads_a_renamed_and_a_new_column_of_one_table(query: str) -> None:
    renamed = (Column("id", "bigint"), Column("address", "string"))
    assert of_sold(query, FORMER.query) == [BRIDGE, RENAME, BETWEEN, ADD, query]
    assert of_sold(query, BRIDGE) == [RENAME, BETWEEN, ADD, query], "a run ended behind the first statement"
    assert of_sold(query, BRIDGE, *renamed) == [BETWEEN, ADD, query]
    assert of_sold(query, BETWEEN, *renamed) == [ADD, query]
    assert of_sold(query, BETWEEN, *SOLD.columns) == [query]


@pytest.mark.parametrize(
    "query", ["SELECT o.address AS m, day FROM dev.silver.orders AS o", "SELECT day FROM dev.silver.orders"]
)
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (ORDERS.columns, [BRIDGE, RENAME, BETWEEN, ADD]),
        ((Column("id", "bigint"), Column("address", "string")), [BETWEEN, ADD]),
        (SOLD.columns, []),
    ],
)
def test_a_killed_run_over_a_hidden_query_is_continued_from_each_query_that_it_may_have_set(
    query: str, columns: tuple[Column, ...], expected: Sequence[str]
) -> None:
    models = [replace(MAILS, query=text) for text in (FORMER.query, BRIDGE, BETWEEN, query)]
    table = replace(SOLD, columns=columns, declared_at=None)
    hidden = replace(view_state_of(FORMER), query=None)
    state = CatalogState(tables={SOLD.key: state_of(table)}, views={MAILS.key: hidden})
    record = Recorded.of(models[0], attempted=models[1:])
    plan = TablePlanner().plan([SOLD, models[-1]], state, {record.key: record})
    assert refusals_of_views(plan) == []
    statements = [sql.removeprefix("ALTER VIEW `dev`.`silver`.`mails` AS\n") for sql in statements_of(plan)]
    assert statements == [*expected, query]


def test_a_view_whose_query_is_hidden_returns_the_columns_that_the_platform_shows_of_it() -> None:
    """The applied query would return others, but a killed run has replaced it."""
    star = View("dev", "gold", "star", "SELECT * FROM dev.silver.orders", schema_mode=SchemaMode.EVOLUTION)
    named = replace(star, query="SELECT mail AS address FROM dev.silver.orders")
    query = "SELECT mail AS a, (SELECT max(s.address) FROM dev.gold.star AS s) AS b FROM dev.silver.orders"
    above = View("dev", "gold", "above", query)
    shown = replace(view_state_of(star), query=None, columns=(ViewColumn("address"),))
    state = CatalogState(
        tables={ORDERS.key: state_of(ORDERS)}, views={star.key: shown, above.key: view_state_of(above)}
    )
    record = Recorded.of(star, attempted=[named])
    plan = TablePlanner().plan([ORDERS, named, above], state, {record.key: record})
    assert refusals_of_views(plan) == []
    assert statements_of(plan) == [f"ALTER VIEW `dev`.`gold`.`star` AS\n{named.query}"]


def test_a_star_whose_query_is_hidden_is_not_the_applied_one_if_a_column_that_it_shows_has_another_name() -> (
    None
):
    star = replace(MAILS, query="SELECT * FROM dev.silver.orders")
    bridge = replace(star, query="SELECT * FROM dev.silver.orders AS `orders`(`id`, `mail`)")
    desired = replace(star, query="SELECT address AS mail, day FROM dev.silver.orders")
    table = replace(SOLD, columns=(Column("id", "bigint"), Column("address", "string")), declared_at=None)
    shown = replace(view_state_of(star), query=None, columns=(ViewColumn("id"), ViewColumn("mail")))
    state = CatalogState(tables={SOLD.key: state_of(table)}, views={MAILS.key: shown})
    record = Recorded.of(star, attempted=[bridge, desired])
    first = statements_of(TablePlanner().plan([SOLD, desired], state, {record.key: record}))[0]
    assert first.endswith("FROM (SELECT `id`, `address` FROM dev.silver.orders) AS `orders`(`id`, `mail`)")


def test_a_hidden_query_is_rather_one_whose_names_are_clear_than_one_that_may_have_lost_a_column() -> None:
    query = "SELECT z.m FROM {} LATERAL VIEW explode(array(mail)) z AS m"
    view = replace(MAILS, query=query.format("dev.silver.orders"))
    bridge = replace(view, query=query.format("dev.silver.orders AS `orders`(`id`, `mail`)"))
    desired = replace(view, query="SELECT address AS m, day FROM dev.silver.orders")
    table = replace(SOLD, columns=(Column("id", "bigint"), Column("address", "string")), declared_at=None)
    shown = replace(view_state_of(view), query=None)
    state = CatalogState(tables={SOLD.key: state_of(table)}, views={MAILS.key: shown})
    record = Recorded.of(view, attempted=[bridge, desired])
    first = statements_of(TablePlanner().plan([SOLD, desired], state, {record.key: record}))[0]
    between = "(SELECT `id`, `address` FROM dev.silver.orders) AS `orders`(`id`, `mail`)"
    assert first.endswith(query.format(between))


def test_a_left_out_view_keeps_what_each_query_needs_that_a_killed_run_may_have_set() -> None:
    hidden = with_set_queries(
        replace(view_state_of(FORMER), query=None), [FORMER, replace(MAILS, query=BRIDGE)]
    )
    longer = replace(ORDERS, columns=(*ORDERS.columns, Column("day", "date")), declared_at=None)
    state = CatalogState(tables={ORDERS.key: state_of(ORDERS)}, views={MAILS.key: hidden})
    plan = TablePlanner().plan([longer], state)
    assert [(view.name.key, view.columns) for view in plan.broken_views] == [(MAILS.key, ())]
    (reason,) = refusals_of_views(plan)
    assert reason == "it needs a certain number of columns of dev.silver.orders, which the plan changes"


def test_a_view_that_reads_a_renamed_column_alone_changes_twice() -> None:
    query = "SELECT o.address AS m FROM dev.silver.orders AS o"
    bridge = query.replace("AS o", "AS o(`id`, `address`)")
    assert of_sold(query, FORMER.query) == [bridge, RENAME, query, ADD]


def test_a_view_that_counts_columns_keeps_their_number_until_one_has_come() -> None:
    former, query = (f"SELECT a FROM dev.silver.orders AS o({names})" for names in ("a, b", "a, b, c"))
    renamed = (Column("id", "bigint"), Column("address", "string"))
    between = former.replace("dev.silver.orders", "(SELECT `id`, `address` FROM dev.silver.orders)")
    assert of_sold(query, former, *renamed) == [between, ADD, query]


@pytest.mark.parametrize(
    ("former", "query"),
    [
        ("SELECT mail FROM {}", "SELECT {}.address AS mail FROM {}"),
        ("SELECT mail FROM {}", "SELECT address AS mail FROM {} TABLESAMPLE (10 ROWS)"),
        (
            "SELECT * FROM {} TABLESAMPLE (10 ROWS) UNION ALL SELECT 1, ''",
            "SELECT * FROM {} TABLESAMPLE (10 ROWS) UNION ALL SELECT 1, '', current_date()",
        ),
    ],
)
def test_a_view_waits_for_its_table_and_that_for_it_if_no_other_query_stands_in_between(
    former: str, query: str
) -> None:
    before, after = (
        replace(MAILS, query=text.replace("{}", ORDERS.key), declared_at=None) for text in (former, query)
    )
    state = CatalogState(tables={ORDERS.key: state_of(ORDERS)}, views={before.key: view_state_of(before)})
    plan = TablePlanner().plan([SOLD, after], state)
    assert refusals_of_views(plan) == ["its change and those of dev.silver.orders wait for each other"]
    assert statements_of(plan)


@pytest.mark.parametrize("query", ["SELECT o.a FROM {} AS o(a, b)", "SELECT * FROM {} UNION ALL SELECT 1, 2"])
@pytest.mark.parametrize(
    ("left", "using"),
    [
        (("mail", "delta_engine_new_mail"), None),
        (("delta_engine_old_mail", "delta_engine_new_mail"), None),
        (("delta_engine_old_mail", "delta_engine_new_mail"), "CAST(mail AS INT)"),
        (("mail", "delta_engine_old_mail"), "CAST(mail AS INT)"),
    ],
)
def test_the_end_of_a_conversion_is_not_refused_for_a_view_that_counts_columns(
    left: Sequence[str], using: str | None, query: str
) -> None:
    types = {"mail": "int" if using else "string", "delta_engine_old_mail": "string"}
    columns = [Column(name, types.get(name, "int")) for name in left]
    observed_table = replace(SOLD, columns=(ORDERS.columns[0], *columns), declared_at=None)
    mail = Column("mail", "int", using=using) if using else Column("mail", "string")
    table = replace(SOLD, columns=(ORDERS.columns[0], mail), declared_at=None)
    shown = (ViewColumn("a"),) if "o.a" in query else (ViewColumn("id"), ViewColumn("mail"))
    view = replace(MAILS, query=query.replace("{}", ORDERS.key), columns=shown, declared_at=None)
    state = CatalogState(tables={table.key: state_of(observed_table)}, views={view.key: view_state_of(view)})
    assert refusals_of_views(TablePlanner().plan([table, view], state)) == []
    if using:
        more = replace(table, columns=(*table.columns, SOLD.columns[2]), declared_at=None)
        reason = "it needs a certain number of columns of dev.silver.orders, which the plan changes"
        assert refusals_of_views(TablePlanner().plan([more, view], state)) == [reason]


def test_each_view_that_waits_for_its_table_is_refused_and_no_other_view_of_that_table() -> None:
    sampled = "SELECT mail FROM dev.silver.orders TABLESAMPLE (10 ROWS)"
    former = [
        View("dev", "silver", "a", FORMER.query),
        *(View("dev", "silver", key, sampled) for key in "bc"),
    ]
    query = sampled.replace("mail", "address AS mail, day")
    bridged = replace(former[0], query="SELECT o.address AS m FROM dev.silver.orders AS o", declared_at=None)
    models: list[Securable] = [
        SOLD,
        bridged,
        *(replace(view, query=query, declared_at=None) for view in former[1:]),
    ]
    state = CatalogState(
        tables={ORDERS.key: state_of(ORDERS)}, views={view.key: view_state_of(view) for view in former}
    )
    violations = view_rules.ViewsFindAnOrder().check(TablePlanner().plan(models, state), Policy())
    reason = "its change and those of dev.silver.orders wait for each other"
    assert [(refusal.securable, refusal.reason) for refusal in violations] == [
        ("view dev.silver.b", reason),
        ("view dev.silver.c", reason),
    ]


@pytest.mark.parametrize(
    ("is_between", "sample"), [(False, ""), (True, ""), (True, " TABLESAMPLE (10 ROWS)")]
)
def test_a_view_follows_a_restored_table_and_is_still_bridged_over_another_one(
    sample: str, *, is_between: bool
) -> None:
    days = Table("dev", "silver", "days", [Column("id", "bigint"), Column("day", "date")])
    query = (
        f"SELECT o.{{}} AS a, d.{{}} AS b FROM dev.silver.orders{sample} AS o "
        "JOIN dev.silver.days AS d ON o.id = d.id"
    )
    renamed = replace(SOLD, columns=SOLD.columns[:2], declared_at=None)
    view = replace(MAILS, query=query.format("mail", "day"))
    state = CatalogState(
        tables={ORDERS.key: state_of(ORDERS), days.key: state_of(days)}, views={view.key: view_state_of(view)}
    )
    desired = replace(view, query=query.format("address", "id"), declared_at=None)
    plan = TablePlanner().plan([renamed, replace(days, columns=days.columns[:1]), desired], state)
    restored = ORDERS if is_between else days
    plan = with_restores(plan, {restored.qualified_name: RestoreTable(version=1)})
    assert refusals_of_views(plan) == []
    statements = [sql.split(" `")[0] for sql in statements_of(plan) if "columnMapping" not in sql]
    once, bridged = ["ALTER VIEW", "ALTER TABLE"], ["ALTER VIEW", "ALTER TABLE", "ALTER VIEW"]
    assert statements == ["RESTORE TABLE", *(once if is_between else bridged)]


NARROW, WIDE = (
    Table("dev", "silver", "sales", [Column("id", data_type), Column("day", "date")])
    for data_type in ("int", "bigint")
)
WIDEN = "ALTER TABLE `dev`.`silver`.`sales` ALTER COLUMN `id` TYPE bigint"


def bound(query: str, mode: SchemaMode = SchemaMode.BINDING, name: str = "ids") -> View:
    return View("dev", "silver", name, query, schema_mode=mode)


READS_ID, READS_DAY = (bound(f"SELECT {column} FROM dev.silver.sales") for column in ("id", "day"))
FOLLOWS = replace(READS_ID, schema_mode=SchemaMode.TYPE_EVOLUTION)
CASTS = bound("SELECT CAST(id AS INT) AS id FROM dev.silver.sales WHERE id > 1")
TOTALS = bound("SELECT id FROM dev.silver.ids", name="totals")


def test_a_view_that_no_longer_reads_a_dropped_bound_one_changes_before_the_type_below_it() -> None:
    above = View("dev", "silver", "above", "SELECT id FROM dev.silver.ids")
    new = replace(above, query="SELECT day FROM dev.silver.sales", declared_at=None)
    state = CatalogState(
        tables={WIDE.key: state_of(NARROW)},
        views={view.key: view_state_of(view) for view in (READS_ID, above)},
    )
    record = Recorded.of(READS_ID)
    plan = TablePlanner(Policy(removed_views=Removed.DROP)).plan([WIDE, new], state, {record.key: record})
    statements = [statement.sql for step in compiled(plan).steps for statement in step.statements]
    (widening_step,) = [
        step for step in compiled(plan).steps if WIDEN in {each.sql for each in step.statements}
    ]
    assert statements.index(WIDEN) > 0
    assert widening_step.after


def test_an_unreadable_query_waits_for_no_other_view_that_gets_a_query() -> None:
    """It may read the columns that the view has before, or those that it gets."""
    below = View("dev", "gold", "w", "SELECT id, mail FROM dev.silver.orders")
    unreadable = View("dev", "gold", "x", "SELECT w.id, SELECT FROM")
    table = replace(
        SOLD,
        columns=(SOLD.columns[0], Column("address", "string", renamed_from="mail"), Column("day", "date")),
    )
    state = CatalogState(
        tables={ORDERS.key: state_of(ORDERS)},
        views={view.key: view_state_of(view) for view in (below, unreadable)},
    )
    models: list[Table | View] = [
        replace(table, declared_at=None),
        replace(below, query="SELECT id FROM dev.silver.orders", declared_at=None),
        replace(unreadable, query="SELECT w.id, w.mail SELECT FROM", declared_at=None),
    ]
    assert refusals_of_views(TablePlanner().plan(models, state)) == []


def widening(former: Sequence[View], views: Sequence[View]) -> TablePlan:
    """Return the plan that widens a column below views that exist, or that it makes."""
    absent = {view.key: ABSENT_VIEW for view in views}
    state = CatalogState(
        tables={WIDE.key: state_of(NARROW)},
        views={**absent, **{view.key: view_state_of(view) for view in former}},
    )
    return TablePlanner().plan([WIDE, *views], state)


@pytest.mark.parametrize(
    ("former", "view", "is_first"),
    [
        (READS_ID, READS_DAY, True),
        (READS_ID, FOLLOWS, True),
        (READS_ID, CASTS, True),
        (READS_ID, replace(FOLLOWS, query="SELECT id, day FROM dev.silver.sales"), True),
        (READS_DAY, READS_ID, False),
        (FOLLOWS, bound("SELECT id, day FROM dev.silver.sales"), False),
        (None, READS_ID, False),
    ],
)
def test_a_bound_view_changes_before_a_type_that_it_leaves_and_after_one_that_it_takes(
    former: View | None, view: View, is_first: bool
) -> None:
    plan = widening([former] if former else [], [view])
    assert refusals(plan) == []
    statements = statements_of(plan)
    place = statements.index(WIDEN)
    of_view = [at for at, sql in enumerate(statements) if "VIEW" in sql]
    assert of_view
    assert all((at < place) is is_first for at in of_view), statements


@pytest.mark.parametrize("former", [[], [READS_DAY]])
def test_a_view_that_counts_columns_follows_a_conversion_and_the_drop_of_another_column(
    former: Sequence[View],
) -> None:
    """During the conversion, the table has one column more, and its number may be the final one for a moment."""
    longer = replace(WIDE, columns=(*WIDE.columns, Column("note", "string")), declared_at=None)
    plan = converting(former, [PAIRS], longer)
    assert refusals_of_views(plan) == []
    steps = compiled(plan).steps
    (setting,) = (step for step in steps if step.name == PAIRS.qualified_name)
    before = [statement.sql for step in all_before(setting, steps) for statement in step.statements]
    assert sum("DROP COLUMNS" in sql for sql in before) == 2, before


@pytest.mark.parametrize(
    ("former", "views"),
    [
        ([READS_ID], [READS_ID]),
        ([FOLLOWS], [READS_ID]),
        ([READS_ID], [bound("SELECT id, day FROM dev.silver.sales")]),
        ([READS_ID], [bound("SELECT * FROM dev.silver.sales")]),
        ([FOLLOWS, TOTALS], [FOLLOWS, TOTALS]),
        ([FOLLOWS, TOTALS], [FOLLOWS]),
    ],
)
def test_a_bound_view_that_another_type_would_break_is_refused(
    former: Sequence[View], views: Sequence[View]
) -> None:
    (reason,) = refusals(widening(former, views))
    assert reason == "its schema_mode is binding, so it fails after dev.silver.sales.id changes its type"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT CAST(id AS INT) AS id FROM dev.silver.sales",
        "SELECT day FROM dev.silver.sales WHERE id > 1",
        "WITH s AS (SELECT id, day FROM dev.silver.sales) SELECT day FROM s",
    ],
)
def test_a_bound_view_whose_types_stay_is_not_refused(query: str) -> None:
    assert refusals(widening([bound(query)], [bound(query)])) == []


@pytest.mark.parametrize(("kept", "is_refused"), [("id", False), ("mail", True)])
def test_a_star_loses_only_columns_that_the_view_returns(kept: str, is_refused: bool) -> None:
    star = View("dev", "silver", "mails", "SELECT * FROM dev.silver.orders", [ViewColumn(kept)])
    plan = TablePlanner().plan([replace(ORDERS, columns=ORDERS.columns[:1]), star], observed(star))
    broken = refusals(plan, allow=(Allowance(DestructiveKind.DROP_COLUMN),))
    assert bool(broken) is is_refused, broken


def test_a_star_that_evolves_still_needs_the_columns_that_its_query_names() -> None:
    query = "SELECT * FROM dev.silver.orders WHERE mail > ''"
    star = View("dev", "silver", "mails", query, [ViewColumn("id")], schema_mode=SchemaMode.EVOLUTION)
    plan = TablePlanner().plan([replace(ORDERS, columns=ORDERS.columns[:1]), star], observed(star))
    (reason,) = refusals_of_views(plan)
    assert reason.startswith("it reads dev.silver.orders.mail, which the plan drops or renames")


TEXT = replace(WIDE, columns=(Column("id", "string", using="CAST(id AS STRING)"), *WIDE.columns[1:]))
"""The table with a column that it gets by a conversion."""

SPREADS = View("dev", "silver", "ids", "SELECT * FROM dev.silver.sales", schema_mode=SchemaMode.EVOLUTION)
PAIRS = bound("SELECT a FROM dev.silver.sales AS s(a, b)")


def converting(
    former: Sequence[View], views: Sequence[View], table: Table = WIDE, desired: Table = TEXT
) -> TablePlan:
    """Return the plan that converts a column below views that exist, or that it makes."""
    absent = {view.key: ABSENT_VIEW for view in views}
    state = CatalogState(
        tables={WIDE.key: state_of(table)},
        views={**absent, **{view.key: view_state_of(view) for view in former}},
    )
    return TablePlanner().plan([desired, *views], state)


@pytest.mark.parametrize(
    ("former", "view", "is_first"),
    [
        (READS_ID, READS_DAY, True),
        (PAIRS, READS_DAY, True),
        (READS_DAY, READS_ID, False),
        (READS_DAY, FOLLOWS, False),
        (READS_DAY, PAIRS, False),
        (None, READS_ID, False),
        (None, replace(SPREADS, schema_mode=None), False),
    ],
)
def test_a_view_changes_before_a_conversion_that_it_leaves_and_after_one_that_it_takes(
    former: View | None, view: View, is_first: bool
) -> None:
    plan = converting([former] if former else [], [view])
    assert refusals_of_views(plan) == []
    statements = statements_of(plan)
    of_table = [
        at for at, sql in enumerate(statements) if sql.startswith("ALTER TABLE `dev`.`silver`.`sales`")
    ]
    of_view = [at for at, sql in enumerate(statements) if " VIEW " in sql]
    assert of_view
    assert max(of_view) < min(of_table) if is_first else min(of_view) > max(of_table), statements


@pytest.mark.parametrize(
    ("former", "views"),
    [
        ([READS_ID], [READS_ID]),
        ([READS_ID], []),
        ([READS_ID], [CASTS]),
        ([replace(SPREADS, schema_mode=None)], [replace(SPREADS, schema_mode=None)]),
        ([PAIRS], [PAIRS]),
        ([SPREADS, TOTALS], [SPREADS, TOTALS]),
    ],
)
def test_a_view_that_reads_a_converted_column_is_refused(
    former: Sequence[View], views: Sequence[View]
) -> None:
    (reason,) = refusals_of_views(converting(former, views))
    assert reason == (
        "it reads dev.silver.sales.id, which the plan converts: between two statements, no column has this name"
    )


def test_views_do_not_keep_a_conversion_from_its_end() -> None:
    parts = (("old", "bigint"), ("new", "string"))
    swapping = [Column(f"delta_engine_{part}_id", data_type) for part, data_type in parts]
    half = replace(WIDE, columns=(*swapping, *WIDE.columns[1:]))
    assert refusals_of_views(converting([READS_ID], [READS_ID], half)) == []


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_star_follows_the_drop_of_the_former_column_of_a_conversion_that_a_run_left(is_begun: bool) -> None:
    """Else, the view would keep that column, and fail as soon as it is gone."""
    swapped = Column("delta_engine_new_id" if is_begun else "id", "string")
    left = (Column("delta_engine_old_id", "bigint"), swapped, *WIDE.columns[1:])
    star = replace(SPREADS, schema_mode=None)
    plan = converting([], [star], replace(WIDE, columns=left))
    assert refusals_of_views(plan) == []
    steps = compiled(plan).steps
    (creation,) = (step for step in steps if step.name == star.qualified_name)
    before = [statement.sql for step in all_before(creation, steps) for statement in step.statements]
    assert any("DROP COLUMNS (`delta_engine_old_id`)" in sql for sql in before), before


FORMER_COLUMNS = {"filling": Column("id", "bigint"), "swapping": Column("delta_engine_old_id", "bigint")}
"""The former column of a conversion that a run left before its new column got the name."""


@pytest.mark.parametrize("stage", FORMER_COLUMNS)
@pytest.mark.parametrize("former", [[], [READS_DAY]])
@pytest.mark.parametrize("view", [replace(SPREADS, schema_mode=None), PAIRS])
def test_a_view_is_set_when_the_new_column_of_an_abandoned_conversion_is_gone(
    view: View, former: Sequence[View], stage: str
) -> None:
    """Else, the view would keep that column, and fail as soon as it is gone."""
    left = (FORMER_COLUMNS[stage], Column("delta_engine_new_id", "string"), *WIDE.columns[1:])
    view = replace(view, view_name=READS_DAY.view_name, schema_mode=None, declared_at=None)
    plan = converting(former, [view], replace(WIDE, columns=left), WIDE)
    assert refusals_of_views(plan) == []
    steps = compiled(plan).steps
    (setting,) = (step for step in steps if step.name == view.qualified_name)
    before = [statement.sql for step in all_before(setting, steps) for statement in step.statements]
    assert any("DROP COLUMNS (`delta_engine_new_id`)" in sql for sql in before), before


CONVERTED = [Column("id", "string", using="CAST(id AS STRING)")]
BEGUN = [Column("delta_engine_old_id", "bigint"), Column("delta_engine_new_id", "string")]


@pytest.mark.parametrize(
    ("read", "observed", "desired"),
    [
        ("mail", ORDERS.columns[:1], CONVERTED),
        ("id", ORDERS.columns[:1], CONVERTED),
        ("mail", BEGUN, CONVERTED),
        ("mail", BEGUN, ORDERS.columns[:1]),
        ("mail", [ORDERS.columns[0], BEGUN[1]], ORDERS.columns[:1]),
    ],
)
def test_no_view_lists_the_columns_of_a_table_with_a_conversion_until_a_new_column_has_come(
    read: str, observed: Sequence[Column], desired: Sequence[Column]
) -> None:
    """Between two statements of a conversion, or after its new column is dropped, a listed name would be missing."""
    former = replace(MAILS, query=f"SELECT {read} AS m FROM dev.silver.orders")
    before = replace(SOLD, columns=(*observed, ORDERS.columns[1]), declared_at=None)
    after = replace(SOLD, columns=(*desired, *SOLD.columns[1:]), declared_at=None)
    state = CatalogState(tables={SOLD.key: state_of(before)}, views={MAILS.key: view_state_of(former)})
    view = replace(MAILS, query="SELECT address AS m, day FROM dev.silver.orders")
    plan = TablePlanner().plan([after, view], state)
    assert refusals_of_views(plan) == ["its change and those of dev.silver.orders wait for each other"]


@pytest.mark.parametrize("views", [[SPREADS], [READS_DAY], []])
def test_views_that_a_conversion_leaves_alone_are_not_refused(views: Sequence[View]) -> None:
    assert refusals_of_views(converting(views, views)) == []


def refusals_of_views(plan: TablePlan) -> list[str]:
    rules = (view_rules.ViewsKeepWhatTheyRead(), view_rules.ViewsFindAnOrder())
    return [refusal.reason for rule in rules for refusal in rule.check(plan, Policy())]


def test_a_view_is_bridged_where_protection_renames_a_column() -> None:
    def masked(name: str, body: str, **options: Any) -> list[Securable]:
        mail = Column("mail", "string", mask=ColumnMask("dev.silver.short"))
        table = replace(SOLD, columns=(Column(name, "bigint", **options), mail), declared_at=None)
        view = replace(MAILS, query=f"SELECT {name} AS number FROM dev.silver.orders")
        return [table, replace(SHORT, body=body), view]

    table, function, view = masked("id", "left(v, 3)")
    assert isinstance(table, Table)
    assert isinstance(function, Function)
    assert isinstance(view, View)
    state = CatalogState(
        tables={table.key: state_of(table)},
        functions={function.key: function_state_of(function)},
        views={view.key: view_state_of(view)},
    )
    plan = TablePlanner().plan(masked("number", "left(v, 4)", renamed_from="id"), state)
    assert refusals_of_views(plan) == []
    assert [" ".join(sql.split()[:2]) for sql in statements_of(plan)] == [
        "ALTER VIEW",
        "ALTER TABLE",
        "CREATE OR",
        "ALTER VIEW",
    ]


def test_a_view_leaves_a_dropped_view_before_that_gets_another_number_of_columns() -> None:
    pairs = replace(
        PAIRS, view_name="zipped", query="SELECT a FROM dev.silver.ids AS i(a, b)", declared_at=None
    )
    desired = replace(pairs, query="SELECT id AS a FROM dev.silver.sales", declared_at=None)
    longer = replace(WIDE, columns=(*WIDE.columns, Column("note", "string")), declared_at=None)
    state = CatalogState(
        tables={WIDE.key: state_of(WIDE)}, views={view.key: view_state_of(view) for view in (SPREADS, pairs)}
    )
    records = {f"view.{view.key}": Recorded.of(view) for view in (SPREADS, pairs)}
    plan = TablePlanner(Policy(removed_views=Removed.DROP)).plan([longer, desired], state, records)
    statements = [" ".join(sql.split()[:2]) for sql in statements_of(plan)]
    assert statements == ["ALTER VIEW", "ALTER TABLE", "DROP VIEW"]


def test_a_view_that_begins_to_evolve_does_before_a_bridge_spreads_columns_that_go() -> None:
    query = "SELECT w.* FROM dev.silver.wide AS w WHERE EXISTS (SELECT 1 FROM dev.silver.ids AS i WHERE i.number = w.a)"
    view = View("dev", "gold", "v", "SELECT id FROM dev.silver.ids", schema_mode=SchemaMode.BINDING)
    evolving = replace(view, query=query, schema_mode=SchemaMode.EVOLUTION)
    ids, wide = (table(name, *columns) for name, columns in (("ids", ["id"]), ("wide", ["a", "b"])))
    renamed = replace(ids, columns=(Column("number", "bigint", renamed_from="id"),))
    state = CatalogState(
        tables={each.key: state_of(each) for each in (ids, wide)}, views={view.key: view_state_of(view)}
    )
    plan = TablePlanner().plan([renamed, table("wide", "a"), evolving], state)
    statements = statements_of(plan)
    assert refusals_of_views(plan) == []
    assert statements[0] == "ALTER VIEW `dev`.`gold`.`v` WITH SCHEMA EVOLUTION"
    assert "AS i(`number`)" in statements[1]


@pytest.mark.parametrize("query", ["SELECT o.c FROM dev.gold.v AS o(c)", "SELECT * FROM dev.gold.v"])
def test_a_view_that_is_bound_to_the_columns_of_a_new_one_follows_their_drop(query: str) -> None:
    spreads = View("dev", "gold", "v", "SELECT * FROM dev.silver.wide", schema_mode=SchemaMode.EVOLUTION)
    bound = View("dev", "gold", "w", query)
    state = CatalogState(
        tables={table("wide").key: state_of(table("wide", "a", "b"))},
        views={view.key: ABSENT_VIEW for view in (spreads, bound)},
    )
    plan = TablePlanner().plan([table("wide", "a"), spreads, bound], state)
    assert refusals_of_views(plan) == []
    steps = compiled(plan).steps
    (creation,) = (step for step in steps if step.name == bound.qualified_name)
    before = [each.sql for step in all_before(creation, steps) for each in step.statements]
    assert any("DROP COLUMNS" in sql for sql in before)


def test_a_new_view_counts_no_columns_of_one_that_evolves_until_its_own_change() -> None:
    spreads = View("dev", "gold", "v", "SELECT * FROM dev.silver.wide", schema_mode=SchemaMode.EVOLUTION)
    counts = View("dev", "gold", "w", "SELECT o.c FROM dev.gold.v AS o(a, c)")
    state = CatalogState(
        tables={table("wide").key: state_of(table("wide", "a", "b"))},
        views={
            spreads.key: replace(view_state_of(spreads), columns=(ViewColumn("a"), ViewColumn("b"))),
            counts.key: ABSENT_VIEW,
        },
    )
    kept = replace(spreads, schema_mode=SchemaMode.COMPENSATION, declared_at=None)
    plan = TablePlanner().plan([table("wide", "a", "c"), kept, counts], state)
    assert refusals_of_views(plan) == []
    steps = compiled(plan).steps
    (creation,) = (step for step in steps if step.name == counts.qualified_name)
    before = [each.sql for step in all_before(creation, steps) for each in step.statements]
    assert any("DROP COLUMNS" in sql for sql in before)


def all_before(step: Step, steps: Sequence[Step]) -> list[Step]:
    direct = [steps[number] for number in step.after]
    return [*direct, *(earlier for each in direct for earlier in all_before(each, steps))]


def table(name: str, *columns: str) -> Table:
    return Table("dev", "silver", name, [Column(column, "bigint") for column in columns])


@pytest.mark.parametrize("mode", [SchemaMode.COMPENSATION, SchemaMode.EVOLUTION])
@pytest.mark.parametrize("reads_new", [False, True])
def test_a_view_leaves_a_binding_mode_before_a_type_changes(mode: SchemaMode, reads_new: bool) -> None:
    """With its bridge if that is its new query; else, with its new query, for which the change of the type waits."""
    follows = View("dev", "gold", "a", "SELECT b AS d FROM dev.silver.wide", schema_mode=SchemaMode.EVOLUTION)
    query = "SELECT i.{0} AS c, a.d AS d FROM dev.silver.ids AS i JOIN dev.gold.a AS a ON i.{1} = a.d"
    view = View("dev", "gold", "v", query.format("id", "id"), schema_mode=SchemaMode.BINDING)
    names = ("number", "day" if reads_new else "number")
    loose = replace(view, query=query.format(*names), schema_mode=mode)
    ids, wide = table("ids", "id"), replace(table("wide", "b"), columns=(Column("b", "int"),))
    added = (Column("day", "bigint"),) if reads_new else ()
    renamed = replace(ids, columns=(Column("number", "bigint", renamed_from="id"), *added))
    wider = replace(
        wide, columns=(Column("b", "bigint"),), table_properties={"delta.enableTypeWidening": "true"}
    )
    state = CatalogState(
        tables={each.key: state_of(each) for each in (ids, wide)},
        views={each.key: view_state_of(each) for each in (view, follows)},
    )
    plan = TablePlanner().plan([renamed, wider, loose, follows], state)
    assert refusals_of_views(plan) == []
    steps = compiled(plan).steps
    (widening,) = (step for step in steps if any(" TYPE bigint" in each.sql for each in step.statements))
    before = [each.sql for step in all_before(widening, steps) for each in step.statements]
    assert f"ALTER VIEW `dev`.`gold`.`v` WITH SCHEMA {mode.value.upper()}" in before


@pytest.mark.parametrize("is_new", [True, False])
def test_a_bound_view_meets_no_other_type_of_a_view_that_passes_types_on_before_or_after(
    is_new: bool,
) -> None:
    """A new one waits for the other type, and one that leaves goes before it, whatever the mode below does."""
    narrow = replace(table("wide", "b"), columns=(Column("b", "int"),))
    wider = replace(
        narrow, columns=(Column("b", "bigint"),), table_properties={"delta.enableTypeWidening": "true"}
    )
    modes = [SchemaMode.TYPE_EVOLUTION, SchemaMode.COMPENSATION]
    before, after = (
        View("dev", "gold", "v", "SELECT b FROM dev.silver.wide", schema_mode=mode)
        for mode in (modes if is_new else modes[::-1])
    )
    bound = View("dev", "gold", "x", "SELECT b AS c FROM dev.gold.v", schema_mode=SchemaMode.BINDING)
    state = CatalogState(
        tables={narrow.key: state_of(narrow)},
        views={
            before.key: view_state_of(before),
            bound.key: ABSENT_VIEW if is_new else view_state_of(bound),
        },
    )
    left = bound if is_new else replace(bound, query="SELECT 1 AS c")
    plan = TablePlanner().plan([wider, after, left], state)
    assert refusals_of_views(plan) == []
    steps = compiled(plan).steps
    (widening,) = (step for step in steps if any(" TYPE bigint" in each.sql for each in step.statements))
    (change,) = (step for step in steps if any("`x`" in each.sql for each in step.statements))
    first, last = (widening, change) if is_new else (change, widening)
    assert first in all_before(last, steps)


@pytest.mark.parametrize("above", ["dev.gold.v", "dev.gold.follows"])
@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize("read", ["ids AS i", "wide AS i WHERE b > 0"])
def test_a_star_is_not_set_while_a_view_that_evolves_has_columns_for_a_moment(
    above: str, is_new: bool, read: str
) -> None:
    """Below the star, a column goes after the view has begun to return it, unless that view can wait."""
    star = View("dev", "gold", "w", f"SELECT * FROM {above}", columns=[ViewColumn("a")])
    plan = briefly_wide(read, replace(star, query=f"{star.query} WHERE a > 0"), None if is_new else star)
    assert refusals_of_views(plan) == []
    steps = compiled(plan).steps
    (drop,) = (step for step in steps if any("DROP COLUMNS" in each.sql for each in step.statements))
    (below,), (above_it,) = (
        [step for step in steps if step.name == view.qualified_name] for view in (BRIEF, star)
    )
    is_brief_apart = drop in all_before(below, steps) or drop in all_before(above_it, steps)
    assert is_brief_apart or above_it in all_before(below, steps)


@pytest.mark.parametrize(
    "query", ["SELECT o.c AS a FROM dev.gold.v AS o(c)", "SELECT * FROM dev.gold.v UNION SELECT 1"]
)
def test_a_view_that_evolves_waits_for_drops_where_another_one_counts_its_columns(query: str) -> None:
    counts = View("dev", "gold", "w", query, columns=[ViewColumn("a")])
    plan = briefly_wide("ids AS i", counts, counts)
    assert refusals_of_views(plan) == []
    assert "DROP COLUMNS" in statements_of(plan)[1]
    (refusal,) = refusals_of_views(briefly_wide("wide AS i WHERE b > 0", counts, counts))
    assert refusal == "its change and those of dev.silver.wide wait for each other"


@pytest.mark.parametrize("through", ["dev.gold.v", "dev.gold.follows"])
@pytest.mark.parametrize("stays", [False, True])
def test_a_view_that_evolves_gets_no_new_column_while_another_one_counts_its_columns(
    through: str, stays: bool
) -> None:
    """The evolving view reads the former columns until its own query is set."""
    ids = table("ids", "a", "b")
    former = View("dev", "gold", "v", "SELECT * FROM dev.silver.ids", schema_mode=SchemaMode.EVOLUTION)
    follows = View("dev", "gold", "follows", "SELECT * FROM dev.gold.v", schema_mode=SchemaMode.EVOLUTION)
    counts = View("dev", "gold", "x", f"SELECT o.a AS a FROM {through} AS o(a, b)")
    desired = replace(former, query="SELECT a, b FROM dev.silver.ids WHERE c > 1")
    after = counts if stays else replace(counts, query="SELECT c FROM dev.silver.ids")
    state = CatalogState(
        tables={ids.key: state_of(ids)},
        views={
            view.key: replace(view_state_of(view), columns=tuple(map(ViewColumn, columns)))
            for view, columns in ((former, "ab"), (follows, "ab"), (counts, "a"))
        },
    )
    plan = TablePlanner().plan([table("ids", "a", "b", "c"), desired, follows, after], state)
    assert refusals_of_views(plan) == []
    between, added, *last = [sql for sql in statements_of(plan) if not sql.startswith("COMMENT")]
    assert "FROM (SELECT `a`, `b` FROM dev.silver.ids)" in between
    assert "ADD COLUMNS" in added
    assert any("c > 1" in sql for sql in last)


BRIEF = View("dev", "gold", "v", "SELECT * FROM dev.silver.wide", schema_mode=SchemaMode.EVOLUTION)


def briefly_wide(read: str, desired: View, observed: View | None) -> TablePlan:
    """Return the plan in which BRIEF begins to spread a table that loses a column, with a view above it."""
    ids, wide = table("ids", "a"), table("wide", "a", "b")
    follows = View("dev", "gold", "follows", "SELECT * FROM dev.gold.v", schema_mode=SchemaMode.EVOLUTION)
    former = View("dev", "gold", "v", f"SELECT i.a FROM dev.silver.{read}")
    state = CatalogState(
        tables={each.key: state_of(each) for each in (ids, wide)},
        views={
            each.key: view_state_of(replace(each, columns=(ViewColumn("a"),))) for each in (former, follows)
        }
        | {desired.key: view_state_of(observed) if observed else ABSENT_VIEW},
    )
    return TablePlanner().plan([ids, table("wide", "a"), BRIEF, follows, desired], state)
