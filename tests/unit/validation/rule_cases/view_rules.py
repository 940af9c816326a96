"""What the rules for views refuse, with the whole message."""

from __future__ import annotations

from typing import Any

from delta_engine.actions import Align, BrokenView, Order, Setting, TablePlan, Turn
from delta_engine.aspects.view_definition import AlterViewQuery
from delta_engine.models import View, ViewColumn
from delta_engine.state.view_states import view_state_of
from delta_engine.validation import view_rules
from tests.unit.validation.rule_cases.subjects import HERE, ID, ModelCase, PlanCase, model

QUERY = "SELECT id FROM dev.silver.orders"


def view(name: str = "revenue", query: str = QUERY, **declared: Any) -> View:
    return View("dev", "silver", name, query, declared_at=HERE, **declared)


def altered(desired: View, order: Order, *, replaces: bool = False) -> Align[Any]:
    action = AlterViewQuery(desired, view_state_of(view(query="SELECT 1 AS id")), ("query",), replaces)
    return Align(desired.qualified_name, (action,), HERE, order=order)


MODEL_CASES: list[ModelCase] = [
    (view_rules.ViewsFit(), [view(query="")]),
    (view_rules.ViewsFit(), [view(query="DELETE FROM dev.silver.orders")]),
    (view_rules.ViewsFit(), [view(query="SELECT id FROM orders")]),
    (view_rules.ViewsFit(), [view(columns=[ViewColumn("id"), ViewColumn("ID")])]),
    (view_rules.ViewsFit(), [view(columns=[ViewColumn("id", "ours")], schema_mode="evolution")]),
    (view_rules.ViewsFit(), [view(grants={"bob": ["MODIFY"]})]),
    (view_rules.DocumentedColumnsExist(), [model(ID), view(columns=[ViewColumn("name")])]),
    (
        view_rules.DocumentedColumnsExist(),
        [model(ID), view(query="SELECT * FROM dev.silver.orders", columns=[ViewColumn("name")])],
    ),
    (
        view_rules.QueriesFindTheirColumns(),
        [model(ID), view(query="SELECT id,\n  nmae\nFROM dev.silver.orders", query_file="views/revenue.sql")],
    ),
    (view_rules.QueriesFindTheirColumns(), [model(ID), view(query="SELECT *, id FROM dev.silver.orders")]),
    (view_rules.NoCircularViews(), [view(query="SELECT id FROM dev.silver.revenue")]),
    (view_rules.ViewNamesAreFree(), [model(ID), view("Orders", query="SELECT 1 AS id")]),
    (view_rules.ViewNamesAreFree(), [model(ID), view(renamed_from="orders")]),
]

NAME = view().qualified_name
READS = altered(view(), Order())
TOTALS = frozenset({("dev.silver.totals", Turn.QUERY)})
FIRST = Order(settings=(Setting(precedes=TOTALS, follows=TOTALS),))
CIRCLE = TablePlan((altered(view(), FIRST), altered(view("totals"), Order())))
DOCUMENTED = view(columns=[ViewColumn("id", "The order")])

PLAN_CASES: list[PlanCase] = [
    (
        view_rules.ViewsKeepWhatTheyRead(),
        TablePlan((), (BrokenView(NAME, "dev.silver.orders", ("id", "name"), HERE),)),
        TablePlan((READS,)),
    ),
    (
        view_rules.ViewsKeepWhatTheyRead(),
        TablePlan((), (BrokenView(NAME, "dev.silver.orders", (), HERE),)),
        TablePlan((READS,)),
    ),
    (
        view_rules.ViewsKeepWhatTheyRead(),
        TablePlan((), (BrokenView(NAME, "dev.silver.orders", (), HERE, "dev.silver.sales"),)),
        TablePlan((READS,)),
    ),
    (
        view_rules.ViewsKeepWhatTheyRead(),
        TablePlan((), (BrokenView(NAME, "dev.silver.orders", ("id",), is_by_star=True),)),
        TablePlan((READS,)),
    ),
    (
        view_rules.ViewsKeepWhatTheyRead(),
        TablePlan((), (BrokenView(NAME, "dev.silver.orders", (), is_selected=False),)),
        TablePlan((READS,)),
    ),
    (
        view_rules.ViewsKeepWhatTheyRead(),
        TablePlan((), (BrokenView(NAME, "dev.silver.orders", ("id",), HERE, is_retyped=True),)),
        TablePlan((READS,)),
    ),
    (
        view_rules.ViewsKeepWhatTheyRead(),
        TablePlan((), (BrokenView(NAME, "dev.silver.orders", ("id",), is_retyped=True, is_selected=False),)),
        TablePlan((READS,)),
    ),
    (
        view_rules.ViewsKeepWhatTheyRead(),
        TablePlan((), (BrokenView(NAME, "dev.silver.orders", ("id",), HERE, is_converted=True),)),
        TablePlan((READS,)),
    ),
    (
        view_rules.ViewsKeepWhatTheyRead(),
        TablePlan((), (BrokenView(NAME, "dev.silver.orders", (), HERE, is_counted=True),)),
        TablePlan((READS,)),
    ),
    (
        view_rules.ViewsFindAnOrder(),
        CIRCLE,
        TablePlan((altered(view(), Order(settings=(Setting(query=QUERY), Setting()))),)),
    ),
    (
        view_rules.NoUnallowedViewReplacements(),
        TablePlan((altered(DOCUMENTED, Order(), replaces=True),)),
        TablePlan((READS,)),
    ),
]
