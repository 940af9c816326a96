"""SQL functions in Spark's session catalog: created from models, read back, replaced, and run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from delta_engine.actions.policy import Policy
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.compile.compiler import compile_plan
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models.functions import Function, Parameter
from delta_engine.orchestrate.backend import catalog_backend
from delta_engine.sql.function_bodies import body_problem
from delta_engine.sql.functions import sql_create_function, sql_describe_function, sql_drop_function
from delta_engine.sql.text import sql_path
from delta_engine.state.function_states import ABSENT_FUNCTION, function_state_of
from delta_engine.state.session_functions import described_function


@pytest.fixture(scope="module")
def runner(spark: SparkSession) -> Iterator[SqlRunner]:
    spark.sql("CREATE DATABASE IF NOT EXISTS functions")
    yield SparkSqlRunner(spark)
    spark.sql("DROP DATABASE functions CASCADE")


def function(name: str, body: str, *parameters: Parameter, returns: str = "string") -> Function:
    return Function(
        "spark_catalog", "functions", name, returns, body, parameters, tags={}, is_deterministic=True
    )


X = Parameter("x", "string")
FUNCTIONS = [
    function("plain", "upper(x)", X),
    function("quotes", "concat(x, 'it''s', \"a\", r'\\d', '${y}', '\U0001f600', '\\n')", X),
    function("a b", "`x y`", Parameter("x y", "string", comment="it's ${z}, a `b`")),
    function("defaults", "concat(x, n)", X, Parameter("n", "int", default="3", comment="how many")),
    function(
        "nested",
        "s.a",
        Parameter("s", "struct<a: int, b: array<int>>", default="named_struct('a', 1, 'b', array(2))"),
        returns="int",
    ),
    function("inner_comment", "concat(x, -- a note with ' in it\n 'b') /* c */ || ''", X),
    function("query", "SELECT max(id) FROM range(3)", returns="bigint"),
    function("large", f"concat(x, '{'a' * 100_000}')", X),
]


@pytest.mark.parametrize("model", FUNCTIONS, ids=lambda model: model.function_name)
def test_a_function_is_read_back_as_it_was_declared(runner: SqlRunner, model: Function) -> None:
    model = replace(model, comment="Shows it's ${x}")
    assert body_problem(model) is None
    runner.run(sql_create_function(model))
    name = model.qualified_name
    assert described_function(name, runner.run(sql_describe_function(name))) == replace(
        function_state_of(model), tags={}
    )
    changed = replace(model, comment="", is_deterministic=False)
    runner.run(sql_create_function(changed, replaces=True))
    assert described_function(name, runner.run(sql_describe_function(name))) == replace(
        function_state_of(changed), tags={}
    )
    runner.run(sql_drop_function(name))
    with pytest.raises(StatementError):
        runner.run(sql_describe_function(name))


def test_a_literal_means_what_it_says(runner: SqlRunner) -> None:
    model = function("meaning", "concat(x, 'it''s ${y}', r'\\d')", X)
    runner.run(sql_create_function(model))
    (row,) = runner.run(f"SELECT {sql_path(model.qualified_name.parts)}('a') AS found")
    assert row["found"] == "ait's ${y}\\d"


def test_a_comment_at_the_end_of_a_body_is_lost(runner: SqlRunner) -> None:
    model = function("ends", "upper(x) -- a note", X)
    runner.run(sql_create_function(model))
    found = described_function(model.qualified_name, runner.run(sql_describe_function(model.qualified_name)))
    assert found == replace(function_state_of(model), body="upper(x)", tags={})


@pytest.mark.parametrize("body", ["y", "x +", "spark_catalog.functions.plain(x)", "DROP TABLE t"])
def test_spark_refuses_other_bodies(runner: SqlRunner, body: str) -> None:
    with pytest.raises(StatementError):
        runner.run(sql_create_function(function("broken", body, X)))


def test_a_snapshot_has_the_declared_functions(spark: SparkSession, runner: SqlRunner) -> None:
    reader = catalog_backend(spark).reader
    there, missing = function("there", "upper(x)", X), function("missing", "x", X)
    elsewhere = replace(missing, schema_name="nowhere")
    runner.run(sql_create_function(there))
    state = reader.snapshot([there, missing, elsewhere])
    assert state.functions == {
        there.key: function_state_of(there),
        missing.key: ABSENT_FUNCTION,
        elsewhere.key: ABSENT_FUNCTION,
    }
    assert state.missing_schemas == {("spark_catalog", "nowhere")}


def test_a_table_function_is_refused_if_it_is_declared(spark: SparkSession, runner: SqlRunner) -> None:
    model = function("rows", "1")
    runner.run(
        f"CREATE FUNCTION {sql_path(model.qualified_name.parts)}() RETURNS TABLE(a INT) RETURN SELECT 1"
    )
    with pytest.raises(CatalogReadError, match="it is a table function, which the engine does not manage"):
        catalog_backend(spark).reader.snapshot([model])


def test_functions_are_planned_made_and_replaced(spark: SparkSession, runner: SqlRunner) -> None:
    backend = catalog_backend(spark)
    planner = TablePlanner(Policy(), backend.capabilities)
    inner = function("inner", "upper(x)", X)
    outer = function("outer", "functions.inner(concat(x, 'it''s'))", X)
    for models in ([outer, inner], [replace(outer, comment="Changed", body="functions.inner(x)"), inner]):
        plan = planner.plan(models, backend.reader.snapshot(models))
        assert plan
        for sql in compile_plan(plan, backend.addressing, backend.capabilities).sql():
            runner.run(sql)
        assert not planner.plan(models, backend.reader.snapshot(models))
    (row,) = runner.run(f"SELECT {sql_path(outer.qualified_name.parts)}('a') AS shown")
    assert row["shown"] == "A"
