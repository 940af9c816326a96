"""What is wrong with declared views: names, queries, documented columns, circles, and meetings with tables."""

from __future__ import annotations

from typing import Any

import pytest

from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.aspects.view_sides import relation_columns
from delta_engine.backends.capabilities import OPEN_SOURCE_CATALOG
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import Column, Table
from delta_engine.models.views import View, ViewColumn
from delta_engine.state.states import CatalogState
from delta_engine.state.view_states import ViewState
from delta_engine.validation.rules import needed_by
from delta_engine.validation.view_rules import (
    NoCircularViews,
    NoUnallowedViewReplacements,
    ViewsFit,
    column_problems,
    name_problems,
    query_column_problems,
    view_doubts,
)

ORDERS = Table("dev", "silver", "orders", [Column("id", "int"), Column("amount", "int")])
QUERY = "SELECT id, amount AS total FROM dev.silver.orders"


def view(name: str = "revenue", query: str = QUERY, **changes: Any) -> View:
    return View("dev", "gold", name, query, **changes)


def test_a_whole_view_has_no_problem() -> None:
    model = view(
        columns=[ViewColumn("ID", "the id", tags={"pii": "no"}), ViewColumn("total")],
        schema_mode="type evolution",
        comment="Revenue",
        tags={"domain": "sales"},
        owner="team",
        grants={"analysts": ["SELECT"], "ops": ["MANAGE"]},
        renamed_from="income",
    )
    assert list(ViewsFit().check([model])) == []
    assert list(view_doubts(model)) == []
    assert list(column_problems(model, {})) == []


@pytest.mark.parametrize(
    ("changes", "reason", "column"),
    [
        ({"name": "a b"}, "its name 'a b' has a character", None),
        ({"renamed_from": "a.b"}, "its name 'a.b' has a character", None),
        ({"renamed_from": ["income", "Revenue"]}, "renamed from its own name", None),
        ({"query": "DELETE FROM dev.silver.orders"}, "its query is not a SELECT", None),
        ({"columns": [ViewColumn("id"), ViewColumn("ID")]}, "documents column 'id' twice", "id"),
        ({"tags": {"a": "x" * 1001}}, "the value of tag 'a' is longer", None),
        ({"columns": [ViewColumn("id", tags={" a": "b"})]}, "tag key ' a' begins or ends", "id"),
        ({"grants": {"bob": ["MODIFY"]}}, "it grants MODIFY to 'bob', which does not apply there", None),
        ({"owner": " "}, "its owner has no name", None),
        (
            {"schema_mode": "evolution", "columns": [ViewColumn("id"), ViewColumn("total", "x")]},
            "replaces the comments of its columns",
            "total",
        ),
    ],
)
def test_problems_of_one_view(changes: Any, reason: str, column: str | None) -> None:
    from delta_engine.errors import SourceLocation

    (problem,) = ViewsFit().check([view(**changes, declared_at=SourceLocation("views.yml", 1))])
    assert reason in problem.reason
    assert problem.way_out
    assert problem.column == column


def test_a_view_that_evolves_may_tag_its_columns() -> None:
    assert (
        list(ViewsFit().check([view(schema_mode="evolution", columns=[ViewColumn("id", tags={"a": "b"})])]))
        == []
    )


@pytest.mark.parametrize(
    ("query", "mode", "doubt"),
    [
        ("SELECT * FROM dev.silver.orders", None, "keeps the current columns of dev.silver.orders"),
        (
            "SELECT o.* FROM dev.silver.orders o",
            "compensation",
            "Write the columns, or schema_mode: evolution",
        ),
        ("SELECT * FROM dev.silver.orders", "evolution", None),
        ("SELECT count(*) AS n FROM dev.silver.orders", None, None),
        ("SELECT id + 1 FROM dev.silver.orders", None, "lacks a name"),
        ("SELECT SELECT FROM", None, "sqlglot does not read its query"),
        ("DELETE FROM a.b.c", None, None),
    ],
)
def test_doubts_of_one_view(query: str, mode: str | None, doubt: str | None) -> None:
    doubts = list(view_doubts(view(query=query, schema_mode=mode)))
    assert len(doubts) == (doubt is not None)
    assert doubt is None or doubt in doubts[0]


@pytest.mark.parametrize(
    ("query", "columns", "missing"),
    [
        (QUERY, ["id", "TOTAL"], []),
        (QUERY, ["amount"], ["amount"]),
        ("SELECT * FROM dev.silver.orders", ["amount", "nope"], ["nope"]),
        ("SELECT * FROM dev.gold.other", ["total", "amount"], ["amount"]),
        ("SELECT * FROM dev.silver.unknown", ["nope"], []),
        ("DELETE FROM a.b.c", ["nope"], []),
    ],
)
def test_documented_columns_have_to_be_returned(query: str, columns: list[str], missing: list[str]) -> None:
    model = view(query=query, columns=[ViewColumn(name) for name in columns])
    relations = relation_columns([ORDERS], [view("other"), model])
    problems = list(column_problems(model, relations))
    assert [problem.column for problem in problems] == missing
    assert all("does not return" in problem.reason for problem in problems)


def test_columns_of_a_table_whose_model_leaves_them_out_are_unknown() -> None:
    orders = Table("dev", "silver", "orders", [Column("id", "int")], manages=["comments"])
    star = view(query="SELECT * FROM dev.silver.orders", columns=[ViewColumn("amount")])
    relations = relation_columns([orders], [star])
    assert list(column_problems(star, relations)) == []
    assert list(query_column_problems(view(query="SELECT amount FROM dev.silver.orders"), relations)) == []


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT *, id FROM dev.silver.orders", "its query returns column 'id' twice"),
        ("SELECT * FROM dev.silver.orders o JOIN dev.gold.other p ON o.id = p.id", "column 'id' twice"),
        ("SELECT * FROM dev.silver.orders JOIN dev.gold.other USING (id)", None),
        ("SELECT * EXCEPT (id), id FROM dev.silver.orders", None),
        (
            "SELECT o.total FROM dev.silver.orders o",
            "names column 'total', which dev.silver.orders does not have",
        ),
        ("SELECT amount FROM dev.gold.other", "names column 'amount', which dev.gold.other does not have"),
        (
            "SELECT x FROM dev.silver.orders, dev.gold.other",
            "names column 'x', which dev.silver.orders and dev.gold.other do not have",
        ),
        ("SELECT x FROM dev.silver.orders, dev.silver.unknown", None),
    ],
)
def test_queries_find_their_columns(query: str, reason: str | None) -> None:
    problems = list(query_column_problems(view(query=query), relation_columns([ORDERS], [view("other")])))
    assert len(problems) == (reason is not None)
    assert reason is None or reason in problems[0].reason


def test_columns_of_views_follow_from_those_that_they_read() -> None:
    views = [
        view("c", "SELECT * FROM dev.gold.b"),
        view("b", "SELECT *, 1 AS one FROM dev.gold.a"),
        view("a", "SELECT * FROM dev.silver.orders"),
        view("d", "SELECT * FROM dev.gold.e"),
        view("e", "SELECT * FROM dev.gold.d"),
    ]
    columns = relation_columns([ORDERS], views)
    assert tuple(columns["dev.gold.c"]) == ("id", "amount", "one")
    assert {*columns} == {"dev.silver.orders", "dev.gold.a", "dev.gold.b", "dev.gold.c"}


def test_views_that_read_each_other_are_named_once_for_each_circle() -> None:
    views = [
        view("a", "SELECT 1 AS x FROM dev.gold.a"),
        view("b", "SELECT 1 AS x FROM dev.gold.c"),
        view("c", "SELECT 1 AS x FROM (SELECT * FROM DEV.gold.B)"),
        view("d", "SELECT 1 AS x FROM dev.gold.a"),
        view("e", "SELECT FROM dev.gold.e WHERE"),
    ]
    refusals = [(refusal.securable, refusal.reason) for refusal in NoCircularViews().check(views)]
    assert refusals == [
        ("view dev.gold.a", "it reads itself"),
        ("view dev.gold.b", "dev.gold.b and dev.gold.c read each other"),
    ]


def test_names_meet_those_of_tables_and_other_views() -> None:
    table = Table("dev", "gold", "Revenue", [Column("id", "int")])
    problems = name_problems(
        [view(), view("w", renamed_from=["revenue", "x"]), view("y", renamed_from="w")], [table]
    )
    assert [(model.view_name, problem.reason) for model, problem in problems] == [
        ("revenue", "a table has this name, and tables and views share a namespace"),
        ("w", "it was renamed from dev.gold.revenue, which is declared"),
        ("y", "it was renamed from dev.gold.w, which is declared"),
    ]


def test_a_view_of_the_session_catalog_is_replaced_only_with_consent() -> None:
    model = View("spark_catalog", "g", "v", QUERY, [ViewColumn("id", "new")])
    present = ViewState(query=QUERY, columns=(ViewColumn("id", "old"),))
    observed = CatalogState(tables={}, views={model.key: present})
    plan = TablePlanner(Policy(), OPEN_SOURCE_CATALOG).plan([model], observed)
    rule = NoUnallowedViewReplacements()
    (refusal,) = rule.check(plan, Policy())
    assert refusal.securable == "view spark_catalog.g.v"
    assert "the view would be replaced" in str(refusal)
    assert [str(needed) for needed in needed_by([refusal])] == ["replace_view spark_catalog.g.v"]
    assert not [*rule.check(plan, Policy(allow=(Allowance(DestructiveKind.REPLACE_VIEW),)))]
    assert not [*rule.check(TablePlanner().plan([model], observed), Policy())]
