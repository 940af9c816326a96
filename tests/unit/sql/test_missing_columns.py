"""Columns that a query names and nothing has that it reads: only what is missing for sure is reported."""

from __future__ import annotations

import pytest

from delta_engine.sql.missing_columns import is_failing, missing_columns

RELATIONS = {
    "dev.s.orders": ("id", "Amount", "address"),
    "dev.s.customers": ("id", "name"),
}


@pytest.mark.parametrize(
    ("query", "missing"),
    [
        ("SELECT nope FROM dev.s.orders", [("nope", 1)]),
        ("SELECT id,\n  `no pe` AS x\nFROM dev.s.orders", [("no pe", 2)]),
        ("SELECT o.name FROM dev.s.orders o JOIN dev.s.customers c USING (id)", [("name", 1)]),
        ("SELECT id FROM dev.s.orders WHERE a > 1 GROUP BY b ORDER BY c", list("abc")),
        ("SELECT sum(a + abs(b)) OVER (PARTITION BY c ORDER BY d) AS x FROM dev.s.orders", list("abcd")),
        ("SELECT id FROM dev.s.orders WHERE id IN (SELECT x FROM dev.s.customers)", ["x"]),
        (
            "SELECT id FROM dev.s.orders o WHERE EXISTS (SELECT 1 FROM dev.s.customers c WHERE c.x = o.y)",
            ["x", "y"],
        ),
        ("WITH t AS (SELECT *, 1 AS n FROM dev.s.orders) SELECT n, amount, m FROM t", ["m"]),
        ("WITH t AS (SELECT id AS k FROM dev.s.orders) SELECT t.id FROM t", ["id"]),
        ("SELECT id FROM dev.s.orders UNION ALL SELECT x FROM dev.s.customers", ["x"]),
        ("SELECT x FROM (SELECT name FROM dev.s.customers)", ["x"]),
        ("SELECT nope, NOPE AS b, o.nope AS c FROM dev.s.orders o", ["nope"]),
        ("SELECT transform(xs, x -> x + amount) AS a FROM dev.s.orders", ["xs"]),
    ],
)
def test_missing_columns_are_found_with_their_lines(query: str, missing: list[str | tuple[str, int]]) -> None:
    places = [column if isinstance(column, tuple) else (column, 1) for column in missing]
    assert [(column.name, column.line) for column in missing_columns(query, RELATIONS)] == places


def test_a_missing_column_has_what_it_may_mean() -> None:
    (column,) = missing_columns("SELECT o.nmae FROM dev.s.customers o, dev.s.orders p", RELATIONS)
    assert column.relations == ("dev.s.customers",)
    assert column.present == {"id", "name"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ID, amount, o.Amount AS b FROM dev.s.orders o",
        "SELECT x FROM dev.s.others",
        "SELECT x FROM dev.s.orders, dev.s.others",
        "SELECT address.city, o.address.zip AS zip FROM dev.s.orders o",
        "SELECT id AS k, k + 1 AS l FROM dev.s.orders HAVING l > 1 ORDER BY l",
        "SELECT x FROM dev.s.orders VERSION AS OF 1",
        "SELECT x FROM dev.s.orders AS o(x, y, z)",
        "SELECT x FROM (SELECT id, name FROM dev.s.customers) AS o(x, y)",
        "WITH t(x) AS (SELECT id FROM dev.s.orders) SELECT x FROM t",
        "SELECT e FROM dev.s.orders LATERAL VIEW explode(address) t AS e",
        "SELECT id FROM dev.s.orders |> EXTEND id + 1 AS x |> WHERE x > 1",
        "SELECT x FROM dev.s.orders, range(10) AS r",
        "SELECT x FROM VALUES (1) AS t(x)",
        "SELECT x FROM dev.s.orders PIVOT (sum(amount) FOR id IN (1 AS x))",
        "SELECT _metadata.file_path AS f, current_user AS u, user AS v, localtimestamp AS l FROM dev.s.orders",
        "SELECT dateadd(DAY, 1, id) AS d, timestampdiff(MONTH, id, id) AS m FROM dev.s.orders",
        "SELECT id, count(*) AS n FROM dev.s.orders GROUP BY ALL ORDER BY ALL",
        "SELECT a:b.c FROM dev.s.others a",
        "SELECT f(n => id) AS x FROM dev.s.orders",
        "SELECT /*+ BROADCAST(o) */ id FROM dev.s.orders o",
        "SELECT sum(id) OVER w AS s FROM dev.s.orders WINDOW w AS (PARTITION BY amount)",
        "SELECT id FROM dev.s.orders UNION SELECT id FROM dev.s.customers ORDER BY id",
        "SELECT k FROM (SELECT id AS k FROM dev.s.orders UNION SELECT 1 AS z)",
        "SELECT `CAST(id AS STRING)` FROM (SELECT CAST(id AS STRING) FROM dev.s.orders)",
        "SELECT id FROM dev.s.orders o WHERE id IN (SELECT o.amount FROM dev.s.customers)",
        "SELECT id FROM dev.s.orders WHERE id IN (SELECT address FROM dev.s.customers)",
        "SELECT SELECT FROM",
        "DELETE FROM dev.s.orders WHERE x = 1",
    ],
)
def test_what_a_parser_may_misread_is_not_missing(query: str) -> None:
    assert missing_columns(query, RELATIONS) == []


@pytest.mark.parametrize(
    ("query", "fails"),
    [
        ("SELECT id FROM dev.s.orders", False),
        ("SELECT nope FROM dev.s.orders", True),
        ("SELECT a FROM dev.s.orders AS o(a, b, c)", False),
        ("SELECT a FROM dev.s.orders AS o(a, b)", True),
        ("SELECT a FROM (SELECT id, amount FROM dev.s.orders) AS o(a, b)", False),
        ("SELECT a FROM dev.s.unknown AS o(a, b)", False),
        ("SELECT", False),
    ],
)
def test_what_fails_for_sure(query: str, fails: bool) -> None:
    assert is_failing(query, RELATIONS) is fails
