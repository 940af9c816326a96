"""Views: their statements as exact text, and what is read of their queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_engine.config.variables import substitute
from delta_engine.models.functions import FunctionName
from delta_engine.models.parts import QualifiedName
from delta_engine.models.views import SchemaMode, View, ViewColumn, ViewName
from delta_engine.sql import views
from delta_engine.sql.function_bodies import MAX_BODY_BYTES
from delta_engine.sql.governance import sql_grant, sql_set_owner, sql_set_tags, sql_unset_tags
from delta_engine.sql.view_queries import (
    is_same_query,
    named_columns,
    query_doubt,
    query_problem,
    read_columns,
    read_functions,
    read_relations,
    returned_columns,
    retyped_columns,
    submitted_query,
    with_columns,
    with_names,
    without_names,
)
from tests.cases.golden_texts import assert_golden_lines

NAME = ViewName("Dev", "gold", "revenue `it`")
ORDERS = QualifiedName("dev", "silver", "orders")
RELATIONS = {"dev.silver.orders": ("id", "customer_id", "amount"), "dev.silver.customers": ("id", "name")}


def view(
    query: str = "SELECT id, sum(amount) AS total\nFROM dev.silver.orders GROUP BY id", **changes: Any
) -> View:
    return View("Dev", "gold", "Revenue", query, **changes)


COMMENTED = [ViewColumn("ID", "it's ${x}"), ViewColumn("total", tags={"a": "b"})]

STATEMENTS = [
    views.sql_create_view(view()),
    views.sql_create_view(view(comment="Revenue\nper `customer`", schema_mode="type evolution")),
    views.sql_create_view(view(columns=COMMENTED, schema_mode="binding"), replaces=True),
    views.sql_create_view(view(columns=COMMENTED, schema_mode="evolution")),
    views.sql_create_view(view("SELECT * FROM dev.silver.orders", columns=COMMENTED)),
    views.sql_create_view(view("SELECT 1 AS a", columns=[ViewColumn("a", tags={"a": "b"})])),
    views.sql_alter_view_query(NAME, "\ufeff-- all\r\nSELECT\t'it''s\t${x}' AS a -- last\r\n;\n"),
    *(views.sql_set_schema_mode(NAME, mode) for mode in SchemaMode),
    views.sql_set_view_comment(NAME, ""),
    views.sql_set_session_view_comment(NAME, "it's"),
    views.sql_set_view_column_comment(NAME, "a `b`", "what's it"),
    views.sql_rename_view(NAME, ("dev", "gold", "income")),
    views.sql_drop_view(NAME),
    views.sql_drop_view_if_exists(NAME),
    sql_set_tags(views.view_securable(NAME), {"domain": "sales"}),
    sql_unset_tags(views.view_as_table(NAME), ["pii"], "a `b`"),
    sql_set_owner(views.view_securable(NAME), "team"),
    sql_grant(views.view_securable(NAME), ["SELECT"], "analysts"),
]


def test_statements(request: pytest.FixtureRequest) -> None:
    lines = [statement.replace("\n", "⏎") for statement in STATEMENTS]
    assert_golden_lines(lines, Path(__file__).parent / "golden" / "views.sql", request)


@pytest.mark.parametrize(
    ("query", "submitted"),
    [
        ("SELECT 1 AS a", "SELECT 1 AS a"),
        ("  \n SELECT 1 AS a ;\n ; ", "SELECT 1 AS a"),
        ("\ufeffSELECT 1 AS a\r\n  , 2 AS b\r\n", "SELECT 1 AS a\n  , 2 AS b"),
        ("-- lead\n/* two */ SELECT 1 AS a /* tail */ -- more", "SELECT 1 AS a"),
        ("SELECT /*+ BROADCAST(o) */ 1 AS a -- x;\n;", "SELECT /*+ BROADCAST(o) */ 1 AS a"),
        ("SELECT '-- a\t;' AS a", r"SELECT '-- a\t;' AS a"),
        ("SELECT `a;` FROM t", "SELECT `a;` FROM t"),
        ("-- nothing", ""),
        ("", ""),
    ],
)
def test_a_query_is_submitted_from_its_first_word_to_its_last(query: str, submitted: str) -> None:
    assert submitted_query(query) == submitted
    assert submitted_query(submitted) == submitted


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("SELECT  1 AS a,\n\n\n\t2 AS b", "SELECT 1 AS a,\n    2 AS b"),
        ("SELECT 1 AS a -- one\n\n  , 2 AS b", "SELECT 1 AS a  -- one\n, 2 AS b"),
        ("SELECT 1 AS a /* one\n\t two */", "SELECT 1 AS a"),
        ("SELECT 1 /* one\n\t two */ AS a", "SELECT 1 /* one two */ AS a"),
        ("SELECT 'it''s' AS a", "SELECT 'it\\'s' AS a"),
        ("SELECT 'a\tb\n\nc' AS a;", "SELECT 'a\\tb\\n\\nc' AS a"),
    ],
)
def test_white_space_and_ends_do_not_make_queries_differ(query: str, other: str) -> None:
    assert is_same_query(query, other)
    assert is_same_query(other, query)


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("SELECT 'a  b' AS a", "SELECT 'a b' AS a"),
        ("SELECT `a  b` FROM t", "SELECT `a b` FROM t"),
        ("SELECT 1 AS a -- one\n, 2 AS b", "SELECT 1 AS a -- one , 2 AS b"),
        ("SELECT 1 AS a /* one */, 2 AS b", "SELECT 1 AS a, 2 AS b"),
        ("SELECT 1 - -1 AS a", "SELECT 1 --1 AS a"),
        ("SELECT A FROM t", "SELECT a FROM t"),
        ("SELECT 1 AS a", None),
        (None, None),
    ],
)
def test_all_else_makes_queries_differ(query: str | None, other: str | None) -> None:
    assert not is_same_query(query, other)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (" \n", "is empty"),
        ("-- nothing", "is empty"),
        (f"SELECT '{'a' * MAX_BODY_BYTES}' AS a", "larger than 1 MiB"),
        ("SELECT 1 AS \0a", "NUL"),
        ("SELECT id FROM ${catalog}.silver.orders", "contains ${"),
        ("SELECT 'a AS b", "does not end"),
        ("CREATE VIEW a.b.c AS SELECT 1 AS a", "begins with CREATE"),
        ("DELETE FROM a.b.c", "not a SELECT: it begins with DELETE"),
        ("version: 1.1\nsource: a.b.c", "not a SELECT: it begins with version"),
        ("WITH RECURSIVE r(n) AS (SELECT 1) SELECT n FROM r", "recursive"),
        ("SELECT 1 AS a; SELECT 2 AS a", "two statements"),
        ("SELECT (1 AS a", "parenthesis"),
        ("SELECT 1) AS a", "parenthesis"),
        ("SELECT id FROM orders", "reads orders without catalog and schema"),
        ("SELECT id FROM silver.orders", "reads silver.orders without a catalog"),
        (
            "SELECT id FROM dev.silver.orders WHERE id IN (SELECT id FROM customers)",
            "reads customers without",
        ),
        ("WITH o AS (SELECT * FROM dev.silver.orders) SELECT * FROM o JOIN p USING (id)", "reads p without"),
        ("SELECT silver.f(id) AS a FROM dev.silver.orders", "calls silver.f without a catalog"),
        ("SELECT id, 1 AS ID FROM dev.silver.orders", "returns column 'id' twice"),
    ],
)
def test_queries_that_no_platform_takes(query: str, problem: str) -> None:
    refusal = query_problem(query)
    assert refusal is not None
    assert problem in refusal[0]
    assert refusal[1]


GOOD = [
    "SELECT id FROM dev.silver.orders;",
    "\ufeffSELECT id\r\nFROM dev.silver.orders\t-- all",
    "WITH o AS (SELECT * FROM dev.silver.orders), p AS (SELECT * FROM o) SELECT p.id FROM p, o",
    "(SELECT id FROM dev.silver.orders) UNION ALL SELECT id FROM dev.silver.customers",
    "SELECT id, '${x} ;' AS a FROM dev.silver.orders",
    "FROM dev.silver.orders SELECT id",
    "FROM dev.silver.orders |> SELECT id",
    "SELECT /*+ BROADCAST(o), MERGE(a, b) */ id FROM dev.silver.orders AS o",
    "VALUES (1, 'a')",
    "TABLE dev.silver.orders",
    "SELECT o.id, e FROM dev.silver.orders AS o LATERAL VIEW explode(array(1)) t AS e",
    "SELECT dev.gov.mask(id) AS id, count(*) OVER (PARTITION BY id) AS n FROM dev.silver.orders WHERE id IN (1, 2)",
    f"SELECT '{'a' * 1_000_000}' AS a",
]


@pytest.mark.parametrize("query", GOOD, ids=lambda query: query[:30])
def test_queries_without_a_problem(query: str) -> None:
    assert query_problem(query) is None


@pytest.mark.parametrize(
    ("query", "doubt"),
    [
        ("SELECT id FROM dev.silver.orders", None),
        ("SELECT o.id, * FROM dev.silver.orders AS o", None),
        ("SELECT id + 1 FROM dev.silver.orders", "column id + 1 lacks a name"),
        ("SELECT SELECT FROM", "sqlglot does not read its query"),
    ],
)
def test_doubts(query: str, doubt: str | None) -> None:
    assert (query_doubt(query) is None) == (doubt is None)
    assert doubt is None or doubt in str(query_doubt(query))


@pytest.mark.parametrize(
    ("query", "relations"),
    [
        ("SELECT 1 AS a", []),
        (
            "SELECT id FROM Dev.silver.Orders AS o JOIN `a b`.`x.y`.c ON TRUE",
            ["a b.x.y.c", "dev.silver.orders"],
        ),
        ("WITH orders AS (SELECT * FROM dev.silver.orders) SELECT * FROM orders", ["dev.silver.orders"]),
        (
            "SELECT (SELECT max(id) FROM a.b.c) AS m FROM a.b.d WHERE EXISTS (SELECT 1 FROM a.b.e)",
            ["a.b.c", "a.b.d", "a.b.e"],
        ),
        (
            "SELECT id FROM a.b.c UNION SELECT id FROM a.b.d INTERSECT SELECT id FROM a.b.e",
            ["a.b.c", "a.b.d", "a.b.e"],
        ),
        ("SELECT x FROM a.b.c, LATERAL (SELECT y AS x FROM a.b.d)", ["a.b.c", "a.b.d"]),
        ("SELECT * FROM a.b.table_function(1)", []),
        ("FROM a.b.c |> WHERE id > 1 |> SELECT id", ["a.b.c"]),
    ],
)
def test_relations_of_queries(query: str, relations: list[str]) -> None:
    read = read_relations(query)
    assert read is not None
    assert sorted(name.key for name in read) == relations


def test_an_unreadable_query_has_unknown_relations() -> None:
    assert read_relations("SELECT FROM WHERE") is None
    assert read_columns("SELECT FROM WHERE", RELATIONS) is None
    assert returned_columns("SELECT FROM WHERE", RELATIONS) is None


def test_functions_of_queries() -> None:
    query = "SELECT dev.gov.mask(id) AS a, upper(b) AS c FROM dev.gov.rows(1) WHERE 'dev.gov.no(1)' = b"
    assert read_functions(query) == {FunctionName("dev", "gov", "mask"), FunctionName("dev", "gov", "rows")}


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT id, o.amount, 1 AS One FROM dev.silver.orders AS o", ("id", "amount", "One")),
        ("SELECT * FROM dev.silver.orders", ("id", "customer_id", "amount")),
        (
            "SELECT o.*, name FROM dev.silver.orders o JOIN dev.silver.customers c ON o.id = c.id",
            ("id", "customer_id", "amount", "name"),
        ),
        ("SELECT * EXCEPT (id) FROM dev.silver.orders", ("customer_id", "amount")),
        ("WITH x AS (SELECT id, amount AS a FROM dev.silver.orders) SELECT * FROM x", ("id", "a")),
        ("SELECT id FROM dev.silver.orders UNION ALL SELECT amount FROM dev.silver.orders", ("id",)),
        ("SELECT * FROM dev.silver.unknown", None),
        ("SELECT * FROM VALUES (1, 2) AS t(a, b)", ("a", "b")),
    ],
)
def test_returned_columns(query: str, columns: tuple[str, ...] | None) -> None:
    assert returned_columns(query, RELATIONS) == columns


def test_named_columns_are_those_that_the_text_names() -> None:
    assert named_columns("SELECT id, sum(a) AS b FROM a.b.c") == ("id", "b")
    assert named_columns("SELECT id, sum(a) FROM a.b.c") is None
    assert named_columns("SELECT id, * FROM a.b.c") is None


@pytest.mark.parametrize(
    ("query", "orders", "is_sure"),
    [
        ("SELECT amount FROM dev.silver.orders WHERE customer_id > 1", {"amount", "customer_id"}, True),
        (
            "SELECT o.amount AS name FROM dev.silver.orders o JOIN dev.silver.customers USING (id)",
            {"amount", "id"},
            True,
        ),
        (
            "WITH x AS (SELECT * FROM dev.silver.orders) SELECT id FROM x",
            {"id"},
            True,
        ),
        (
            "SELECT name FROM dev.silver.customers c "
            "WHERE EXISTS (SELECT 1 FROM dev.silver.orders WHERE customer_id = c.id)",
            {"customer_id"},
            True,
        ),
        (
            "SELECT amount, u FROM dev.silver.orders o, dev.silver.other p WHERE o.id = p.x",
            {"amount", "u", "id"},
            False,
        ),
        ("SELECT nothing FROM dev.silver.orders", {"nothing"}, False),
        (
            "SELECT id AS Amount FROM dev.silver.orders ORDER BY -amount, customer_id",
            {"id", "customer_id"},
            True,
        ),
        ("SELECT id AS amount FROM dev.silver.orders o ORDER BY o.amount", {"id", "amount"}, True),
        (
            "SELECT max(id) OVER (ORDER BY amount) AS amount FROM dev.silver.orders",
            {"id", "amount"},
            True,
        ),
        ("SELECT id, amount FROM dev.silver.orders ORDER BY amount", {"id", "amount"}, True),
    ],
)
def test_columns_that_queries_read(query: str, orders: set[str], is_sure: bool) -> None:
    reads = read_columns(query, RELATIONS)
    assert reads is not None
    assert reads.columns["dev.silver.orders"] == orders
    assert reads.is_sure is is_sure


def test_tables_whose_columns_are_counted() -> None:
    reads = read_columns("SELECT o.a FROM dev.silver.orders AS o(a, b, c), dev.silver.customers", RELATIONS)
    assert reads is not None
    assert reads.counted == {"dev.silver.orders"}
    assert not reads.is_sure


@pytest.mark.parametrize(
    ("query", "spread"),
    [
        ("SELECT * FROM dev.silver.orders", {"dev.silver.orders"}),
        ("SELECT o.* FROM dev.silver.orders o, dev.silver.customers c", {"dev.silver.orders"}),
        ("WITH x AS (SELECT * FROM dev.silver.orders) SELECT id FROM x", set()),
        ("WITH x AS (SELECT * FROM dev.silver.orders) SELECT * FROM x", {"dev.silver.orders"}),
        ("SELECT id FROM (SELECT * FROM dev.silver.orders UNION SELECT 1, 2, 3)", {"dev.silver.orders"}),
        ("SELECT count(*) AS n FROM dev.silver.orders", set()),
        ("SELECT id FROM dev.silver.orders", set()),
    ],
)
def test_tables_whose_columns_are_spread(query: str, spread: set[str]) -> None:
    reads = read_columns(query, RELATIONS)
    assert reads is not None
    assert reads.spread == spread


@pytest.mark.parametrize(
    ("query", "renamed"),
    [
        ("SELECT a, b FROM dev.silver.orders", "SELECT a, b FROM dev.silver.orders AS `orders`(`a`, `b c`)"),
        (
            "SELECT o.a FROM dev.silver.Orders AS o JOIN x.y.z",
            "SELECT o.a FROM dev.silver.Orders AS o(`a`, `b c`) JOIN x.y.z",
        ),
        (
            "SELECT '\U0001f600' AS e, o.a FROM dev.silver.`orders` o -- all",
            "SELECT '\U0001f600' AS e, o.a FROM dev.silver.`orders` o(`a`, `b c`)",
        ),
        (
            "WITH x AS (SELECT a FROM dev.silver.orders)\nSELECT a FROM x, dev.silver.orders AS y",
            "WITH x AS (SELECT a FROM dev.silver.orders AS `orders`(`a`, `b c`))\n"
            "SELECT a FROM x, dev.silver.orders AS y(`a`, `b c`)",
        ),
        ("SELECT a FROM dev.silver.orders AS o(x, y)", None),
        ("SELECT dev.silver.orders.a FROM dev.silver.orders", None),
        ("SELECT a FROM dev.silver.orders TABLESAMPLE (5 ROWS)", None),
        ("SELECT a FROM dev.silver.others", None),
        ("SELECT a FROM", None),
    ],
)
def test_columns_read_by_position(query: str, renamed: str | None) -> None:
    assert without_names(query, ORDERS, ["a", "b c"]) == renamed


@pytest.mark.parametrize(
    ("query", "certain"),
    [
        (
            "SELECT a, b FROM dev.silver.orders WHERE a > 1",
            "SELECT a, b FROM (SELECT `a`, `b c` FROM dev.silver.orders) AS `orders` WHERE a > 1",
        ),
        (
            "SELECT '\U0001f600' AS e, o.a FROM dev.`silver`.Orders o, x.y.z",
            "SELECT '\U0001f600' AS e, o.a FROM (SELECT `a`, `b c` FROM dev.`silver`.Orders) o, x.y.z",
        ),
        (
            "SELECT x FROM dev.silver.orders AS o(x, y) UNION SELECT a FROM dev.silver.orders AS p",
            "SELECT x FROM (SELECT `a`, `b c` FROM dev.silver.orders) AS o(x, y) "
            "UNION SELECT a FROM (SELECT `a`, `b c` FROM dev.silver.orders) AS p",
        ),
        (
            "SELECT a FROM (SELECT a FROM dev.silver.orders) AS o",
            "SELECT a FROM (SELECT a FROM (SELECT `a`, `b c` FROM dev.silver.orders) AS `orders`) AS o",
        ),
        ("SELECT dev.silver.orders.a FROM dev.silver.orders", None),
        ("SELECT a FROM dev.silver.orders TABLESAMPLE (5 ROWS)", None),
        ("SELECT a FROM dev.silver.others", None),
        ("SELECT a FROM", None),
    ],
)
def test_certain_columns_read(query: str, certain: str | None) -> None:
    assert with_columns(query, ORDERS, ["a", "b c"]) == certain


def test_columns_are_read_by_position_of_certain_ones() -> None:
    query = "SELECT o.a FROM dev.silver.orders AS o"
    bridge = without_names(query, ORDERS, ["a", "b"])
    between = bridge and with_columns(bridge, ORDERS, ["c", "b"])
    assert between == "SELECT o.a FROM (SELECT `c`, `b` FROM dev.silver.orders) AS o(`a`, `b`)"


@pytest.mark.parametrize(
    ("query", "retyped"),
    [
        ("SELECT a AS x, b AS y, a + 1 AS z, 1 AS n FROM dev.silver.orders", {"x", "z"}),
        ("SELECT * FROM dev.silver.orders", {"a"}),
        ("SELECT b FROM dev.silver.orders WHERE a > 1", set()),
        ("SELECT CAST(a AS INT) AS x, try_cast(a AS INT) + a AS y FROM dev.silver.orders", {"y"}),
        ("WITH o AS (SELECT b, a AS c FROM dev.silver.orders) SELECT B AS x, C AS y FROM o", {"y"}),
        ("SELECT o.b AS x, (SELECT max(p.a) FROM dev.silver.orders AS p) AS y FROM x.y.z AS o", {"y"}),
        ("SELECT b AS x, b AS y FROM dev.silver.orders UNION SELECT b, a FROM dev.silver.orders", {"y"}),
        ("SELECT b AS x FROM dev.silver.orders UNION BY NAME SELECT a AS x FROM dev.silver.orders", {"x"}),
        ("SELECT o.x, o.y FROM dev.silver.orders AS o(x, y)", {"x", "y"}),
        ("SELECT v.x FROM dev.silver.orders LATERAL VIEW explode(array(a)) v AS x", {"x"}),
        ("SELECT a, b FROM dev.silver.orders, unheard.of.table", {"a"}),
        ("SELECT a FROM x.y.z", set()),
        ("SELECT a FROM", set()),
    ],
)
def test_columns_whose_types_change(query: str, retyped: set[str]) -> None:
    relations = {ORDERS.key: ("a", "b"), "x.y.z": ("b", "n")}
    assert retyped_columns(query, relations, {ORDERS.key: frozenset({"a"})}) == retyped


@pytest.mark.parametrize(
    ("query", "filled"),
    [
        ("SELECT a FROM ${catalog}.s.t", "SELECT a FROM `my-dev`.s.t"),
        ("SELECT a FROM `${catalog}`.`${schema}` . t_${n}", "SELECT a FROM `my-dev`.`gold` . t_7"),
        ("SELECT ${catalog}.s.f(x) FROM ${catalog}.s.t", "SELECT `my-dev`.s.f(x) FROM `my-dev`.s.t"),
        ("SELECT '${catalog}.s.t' -- ${catalog}.s.t", None),
        ("SELECT `${catalog}.s.t` /* ${catalog}.s.t */, `a ${catalog}.s.t`", None),
        ("SELECT ${n}, ${catalog}.t FROM a.b", None),
        ("SELECT 1 FROM `a``$${b}`.s.t", "SELECT 1 FROM `a``${b}`.s.t"),
    ],
)
def test_names_take_variables_and_nothing_else_does(query: str, filled: str | None) -> None:
    variables = {"catalog": "my-dev", "schema": "gold", "n": "7"}
    assert with_names(query, lambda name: substitute(name, variables, None)) == (filled or query)


def test_a_query_spells_its_catalog_as_its_model_does() -> None:
    query = (
        "SELECT dev.s.f(o.dev.x.y, 'dev.s.t') FROM dev.s.t AS o JOIN `dev`.s.u JOIN devel.s.v JOIN a.dev.v"
    )
    spelled = (
        "SELECT ${c}.s.f(o.dev.x.y, 'dev.s.t') FROM ${c}.s.t AS o JOIN `${c}`.s.u JOIN devel.s.v JOIN a.dev.v"
    )
    assert (
        with_names(query, lambda name: name.replace("dev.", "${c}.") if name == "dev." else name) == spelled
    )
