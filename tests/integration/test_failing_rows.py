"""The rows for which `using` fails, as the engine tells them, beside those for which Spark fails."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import StatementError
from delta_engine.models import Column, Table
from delta_engine.orchestrate.backend import Backend
from delta_engine.sql.failing_rows import failure_condition
from delta_engine.validation.preflight import Preflight

BEFORE = (
    Column("id", "bigint"),
    Column("amount", "string"),
    Column("share", "int"),
    Column("day", "string"),
    Column("list", "array<int>"),
)
ROWS = """
    (1, '10', 2, '2026-01-31', array(1, 2)), (2, '1,000', 3, '2026-02-31', array()),
    (3, NULL, 4, NULL, NULL), (4, 'abc', NULL, '31.01.2026', array(1, NULL)),
    (5, '99999999999', 5, 'x', array(NULL, 2)), (6, '-3', 2147483647, '2026-12-31', array(1, 2, 3)),
    (7, '7', 0, '2026-01-01', array(0))
"""
FOUND = f"(SELECT * FROM VALUES {ROWS} AS t(id, amount, share, day, list))"
GUARDED = (
    "CASE WHEN share = 0 THEN 0 ELSE 10 / share END",
    "share <> 0 AND 10 / share > 2",
)
"""Expressions that compute nothing for rows where it would fail."""

EXPRESSIONS = (
    "cast(amount AS int)",
    "amount::int * share",
    "cast(replace(amount, ',', '') AS decimal(9,2))",
    "10 / share",
    "10 % share",
    "mod(10, share)",
    "10 div share",
    "share + 1",
    "share - -5",
    "share * 2",
    "to_date(day)",
    "to_date(day, 'yyyy-MM-dd')",
    "to_timestamp(day)",
    "to_timestamp(day, 'dd.MM.yyyy')",
    "to_timestamp_ntz(day)",
    "to_number(amount, '999')",
    "date(day)",
    "10 / (int(share) - 2)",
    "list[1]",
    "element_at(list, 2)",
    "element_at(list, -3)",
    "parse_json(amount) IS NULL",
    "to_binary(amount, 'hex')",
    "nullif(10 / share, 5)",
    "coalesce(cast(amount AS int), share)",
    "coalesce(share, id / (id - id))",
    *GUARDED,
    "CASE share WHEN 0 THEN 10 / share WHEN 2 THEN 1 END",
    "if(share > 0, cast(amount AS int), 0)",
    "nvl2(amount, 10 / share, 0)",
    "share = 0 OR cast(amount AS int) > 2",
)


@pytest.fixture(autouse=True)
def readers_agree() -> None:
    """Read tables in one way here: other tests hold both readers against each other, which takes long."""


def fails(runner: SqlRunner, expression: str, rows: str) -> bool:
    try:
        runner.run(f"SELECT {expression} AS value FROM {FOUND} WHERE {rows}")
    except StatementError:
        return True
    return False


def test_spark_fails_for_the_same_rows(spark: SparkSession) -> None:
    runner = SparkSqlRunner(spark)
    for expression in EXPRESSIONS:
        condition = failure_condition(expression)
        assert condition is not None, expression
        told = [row["id"] for row in runner.run(f"SELECT id FROM {FOUND} WHERE {condition}")]
        assert bool(told) is (expression not in GUARDED), expression
        assert all(fails(runner, expression, f"id = {number}") for number in told), expression
        assert not fails(runner, expression, f"NOT coalesce({condition}, false)"), expression


def test_a_division_by_zero_in_row_7_and_texts_that_are_no_numbers_are_counted(backend: Backend) -> None:
    assert isinstance(backend.addressing, PathAddressing)
    model = Table(
        "dev",
        "silver",
        "orders",
        [
            BEFORE[0],
            Column("amount", "int", using="cast(replace(amount, ',', '') AS int)"),
            *BEFORE[2:],
            Column("ratio", "double", using="10 / share"),
            Column("next", "bigint", using="id + 1"),
        ],
    )
    address = backend.addressing.table(model.qualified_name)
    backend.runner.run(
        f"CREATE TABLE {address} (id bigint, amount string, share int, day string, list array<int>) USING delta"
    )
    backend.runner.run(f"INSERT INTO {address} VALUES {ROWS}")
    seen = backend.reader.snapshot([model])
    refusals = Preflight(backend.runner, backend.addressing).refusals(
        TablePlanner().plan([model], seen), [model], seen
    )
    messages = {refusal.column: str(refusal) for refusal in refusals}
    assert list(messages) == ["amount", "ratio"]
    assert "its using fails for 2 rows. The platform says: [CAST_" in messages["amount"]
    assert "its using fails for 1 row. The platform says: [CAST_" in messages["ratio"]
    shown = {name: backend.runner.run(message.split("See them: ")[1]) for name, message in messages.items()}
    assert {name: [row["id"] for row in rows] for name, rows in shown.items()} == {
        "amount": [4, 5],
        "ratio": [7],
    }
