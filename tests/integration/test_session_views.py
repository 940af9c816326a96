"""Views in Spark's session catalog: created from models, read back, altered, and read while their tables change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from delta_engine.actions.policy import Removed
from delta_engine.backends.error_conditions import is_refused_query
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import StatementError
from delta_engine.models import Column, Table
from delta_engine.models.parts import QualifiedName
from delta_engine.models.views import SchemaMode, View, ViewColumn, ViewName
from delta_engine.orchestrate.backend import catalog_backend
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.sql.missing_columns import missing_columns
from delta_engine.sql.text import sql_path
from delta_engine.sql.view_queries import (
    is_same_query,
    query_problem,
    returned_columns,
    with_columns,
    without_names,
)
from delta_engine.sql.views import (
    sql_alter_view_query,
    sql_create_view,
    sql_describe_query,
    sql_drop_view,
    sql_drop_view_if_exists,
    sql_rename_view,
    sql_set_schema_mode,
    sql_set_session_view_comment,
)
from delta_engine.state.view_descriptions import read_view
from delta_engine.state.view_states import ABSENT_VIEW, ViewState, view_state_of
from tests.builders.deployment import deployment_over
from tests.cases.capability_walks import POLICY, engine_over

ORDERS = "spark_catalog.views.orders"
COLUMNS = ("id", "name", "x y")


@pytest.fixture(scope="module")
def runner(spark: SparkSession) -> Iterator[SqlRunner]:
    spark.sql("CREATE DATABASE IF NOT EXISTS views")
    yield SparkSqlRunner(spark)
    spark.sql("DROP DATABASE views CASCADE")


@pytest.fixture
def orders(runner: SqlRunner) -> Iterator[str]:
    mapping = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')"
    runner.run(
        f"CREATE TABLE {ORDERS} (id INT COMMENT 'the id', name STRING, `x y` INT) USING delta {mapping}"
    )
    yield ORDERS
    runner.run(sql_drop_view_if_exists(view("").qualified_name))
    runner.run(f"DROP TABLE {ORDERS}")


def view(query: str, *columns: ViewColumn, **changes: Any) -> View:
    return View("spark_catalog", "views", "v", query, columns, **changes)


def names(state: ViewState) -> Sequence[tuple[str, str]]:
    return [(column.name, column.comment) for column in state.columns]


QUERIES = [
    f"SELECT id, name FROM {ORDERS}",
    f"\ufeff-- lead\r\nSELECT\tid,\r\n\r\n  'it''s\t${{x}}\n\n;' AS `a b` -- in\r\nFROM {ORDERS} -- last\r\n;\r\n",
    f"WITH a AS (SELECT * FROM {ORDERS}), b AS (SELECT id FROM a) SELECT b.id FROM a JOIN b USING (id)",
    f"SELECT id FROM {ORDERS} UNION ALL (SELECT `x y` FROM {ORDERS})",
    f"SELECT o.id, e FROM {ORDERS} AS o LATERAL VIEW explode(array(1)) t AS e",
    f"FROM {ORDERS} |> WHERE id > 1 |> SELECT id",
    f"SELECT id, '{'a' * 100_000}' AS large FROM {ORDERS}",
    "SELECT * FROM VALUES (1, 'a') AS t(a, b)",
    f"SELECT /*+ BROADCAST(o) */ id, (SELECT max(id) FROM {ORDERS}) AS m FROM {ORDERS} o",
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query[:20])
def test_a_query_is_read_back_as_it_was_submitted(runner: SqlRunner, orders: str, query: str) -> None:
    model = view(query)
    assert query_problem(query) is None
    runner.run(sql_create_view(model))
    state = read_view(runner, model.qualified_name)
    assert state.query == view_state_of(model).query
    assert is_same_query(state.query, query)
    returned = returned_columns(query, {orders: COLUMNS})
    assert returned == tuple(column.name for column in state.columns)


@pytest.mark.parametrize("mode", SchemaMode)
def test_a_whole_view_is_read_back(runner: SqlRunner, orders: str, mode: SchemaMode) -> None:
    columns = () if mode is SchemaMode.EVOLUTION else (ViewColumn("ID", "it's ${x}"), ViewColumn("Name", "n"))
    model = view(f"SELECT id AS ID, name AS Name FROM {orders}", *columns, schema_mode=mode, comment="a\nb")
    runner.run(sql_create_view(model))
    state = read_view(runner, model.qualified_name)
    assert (state.schema_mode, state.comment) == (mode, "a\nb")
    assert not columns or state.columns == columns
    runner.run(sql_set_session_view_comment(model.qualified_name, "it's"))
    assert read_view(runner, model.qualified_name).comment == "it's"


def test_another_query_loses_comments_of_columns_and_keeps_mode_and_comment(
    runner: SqlRunner, orders: str
) -> None:
    model = view(
        f"SELECT id, name FROM {orders}", ViewColumn("name", "n"), schema_mode="binding", comment="c"
    )
    name = model.qualified_name
    runner.run(sql_create_view(model))
    assert names(read_view(runner, name)) == [("id", "the id"), ("name", "n")]
    runner.run(sql_alter_view_query(name, f"SELECT id, name FROM {orders} WHERE id > 1"))
    state = read_view(runner, name)
    assert names(state) == [("id", "the id"), ("name", "")]
    assert (state.schema_mode, state.comment) == (SchemaMode.BINDING, "c")
    runner.run(sql_create_view(model, replaces=True))
    assert names(read_view(runner, name)) == [("id", "the id"), ("name", "n")]


def test_a_view_is_renamed_inside_its_catalog(runner: SqlRunner, orders: str) -> None:
    model = view(f"SELECT id FROM {orders}")
    runner.run(sql_create_view(model))
    runner.run(sql_rename_view(model.qualified_name, ("views", "w")))
    renamed = ViewName("spark_catalog", "views", "w")
    assert read_view(runner, renamed).query == model.query
    runner.run(sql_drop_view(renamed))


@pytest.mark.parametrize("mode", SchemaMode)
@pytest.mark.parametrize(
    "query",
    [f"SELECT o.label AS name FROM {ORDERS} o", f"SELECT id, label FROM {ORDERS}", f"SELECT * FROM {ORDERS}"],
)
def test_a_view_that_reads_by_position_works_while_a_column_is_renamed(
    runner: SqlRunner, orders: str, query: str, mode: SchemaMode
) -> None:
    bridged = without_names(query, QualifiedName(*orders.split(".")), ["id", "label", "x y"])
    assert bridged is not None
    name = view(query).qualified_name
    runner.run(sql_create_view(view(bridged, schema_mode=mode)))
    select = f"SELECT * FROM {sql_path(name.parts)}"
    runner.run(select)
    runner.run(f"ALTER TABLE {orders} RENAME COLUMN name TO label")
    runner.run(select)
    runner.run(sql_alter_view_query(name, query))
    runner.run(select)


@pytest.mark.parametrize("mode", SchemaMode)
@pytest.mark.parametrize("query", [f"SELECT o.name AS n FROM {ORDERS} o", f"SELECT * FROM {ORDERS}"])
def test_a_view_that_reads_certain_columns_works_while_one_is_renamed_and_one_comes(
    runner: SqlRunner, orders: str, query: str, mode: SchemaMode
) -> None:
    table, name = QualifiedName(*orders.split(".")), view(query).qualified_name
    bridge = without_names(query, table, COLUMNS)
    between = bridge and with_columns(bridge, table, ["id", "label", "x y"])
    assert bridge
    assert between
    select = f"SELECT * FROM {sql_path(name.parts)}"
    for sql in (
        sql_create_view(view(bridge, schema_mode=mode)),
        f"ALTER TABLE {orders} RENAME COLUMN name TO label",
        sql_alter_view_query(name, between),
        f"ALTER TABLE {orders} ADD COLUMNS (more INT)",
        sql_alter_view_query(name, f"SELECT label, more FROM {orders}"),
    ):
        runner.run(sql)
        runner.run(select)


@pytest.mark.parametrize("mode", SchemaMode)
def test_a_star_follows_its_table_only_if_the_view_evolves(
    runner: SqlRunner, orders: str, mode: SchemaMode
) -> None:
    name = view("").qualified_name
    runner.run(sql_create_view(view(f"SELECT * FROM {orders}")))
    runner.run(sql_set_schema_mode(name, mode))
    runner.run(f"ALTER TABLE {orders} ADD COLUMNS (more INT)")
    runner.run(f"ALTER TABLE {orders} RENAME COLUMN name TO label")
    select = f"SELECT * FROM {sql_path(name.parts)}"
    if mode is SchemaMode.EVOLUTION:
        runner.run(select)  # a description shows the former columns until then
        assert [row["col_name"] for row in runner.run(f"DESCRIBE {sql_path(name.parts)}")] == [
            *("id", "label", "x y", "more")
        ]
    else:
        with pytest.raises(StatementError) as refusal:
            runner.run(select)
        assert refusal.value.error_class == "INCOMPATIBLE_VIEW_SCHEMA_CHANGE"


def test_a_bound_view_fails_after_another_type_until_its_query_is_set_again(
    runner: SqlRunner, orders: str
) -> None:
    model = view(f"SELECT id FROM {orders}", schema_mode="binding")
    name = model.qualified_name
    runner.run(sql_create_view(model))
    runner.run(f"ALTER TABLE {orders} ALTER COLUMN id TYPE BIGINT")
    with pytest.raises(StatementError) as refusal:
        runner.run(f"SELECT * FROM {sql_path(name.parts)}")
    assert refusal.value.error_class == "CANNOT_UP_CAST_DATATYPE"
    runner.run(sql_alter_view_query(name, model.query))
    runner.run(f"SELECT * FROM {sql_path(name.parts)}")


@pytest.mark.parametrize(
    ("query", "error_class"),
    [
        (f"SELECT nope FROM {ORDERS}", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("SELECT id FROM spark_catalog.views.nope", "TABLE_OR_VIEW_NOT_FOUND"),
        (f"SELECT id, 1 AS ID FROM {ORDERS}", "COLUMN_ALREADY_EXISTS"),
        (f"SELECT id + 1 FROM {ORDERS}", "CREATE_PERMANENT_VIEW_WITHOUT_ALIAS"),
        ("SELECT (id", "PARSE_SYNTAX_ERROR"),
        ("SELECT 1 AS a; SELECT 2 AS b", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_queries_that_spark_refuses(runner: SqlRunner, orders: str, query: str, error_class: str) -> None:
    with pytest.raises(StatementError) as refusal:
        runner.run(f"CREATE VIEW spark_catalog.views.v AS {query}")
    assert refusal.value.error_class == error_class


def steps() -> Iterator[tuple[Table, Sequence[View]]]:
    """Yield models of a table and views over it that change together, one step after the other."""
    key = Column("id", "bigint", comment="The key")
    mapped = {"delta.columnMapping.mode": "name"}
    table = Table("spark_catalog", "views", "sold", [key, Column("name", "string")], table_properties=mapped)
    label = Column("label", "string", renamed_from="name")
    renamed = replace(table, columns=(key, label, Column("amount", "int")))
    sold = str(table.qualified_name)
    reader = View("spark_catalog", "views", "top", "SELECT id FROM spark_catalog.views.v WHERE id > 1")
    commented = ViewColumn("id", "it's ${x}")
    yield table, [view(f"SELECT id, name\n\n\tFROM {sold} -- all;", commented, comment="a\nb"), reader]
    yield renamed, [view(f"SELECT id, label FROM {sold}", commented, comment="Changed"), reader]
    changed = view(
        f"SELECT id, sum(amount) AS amount FROM {sold} GROUP BY id", commented, schema_mode="binding"
    )
    yield replace(renamed, columns=(key, Column("amount", "int"))), [changed, reader]
    moved = replace(changed, view_name="w", renamed_from=("v",))
    yield replace(renamed, columns=(key, Column("amount", "int"))), [moved]


def test_views_are_synced_with_their_table_and_leave_nothing_to_do(
    spark: SparkSession, runner: SqlRunner, tmp_path: Path
) -> None:
    backend = catalog_backend(spark)
    planner = TablePlanner(replace(POLICY, removed_views=Removed.DROP), backend.capabilities)
    engine = replace(engine_over(backend, deployment_over(tmp_path)), planner=planner)
    for table, views in steps():
        models: list[Table | View] = [table, *views]
        assert plan_unlocked(engine, models).plan
        engine.sync_tables(models)
        preview = plan_unlocked(engine, models)
        assert not preview.refusals
        assert not preview.plan, preview.plan
        for model in views:
            state = read_view(runner, model.qualified_name)
            assert {*names(state)} >= {(column.name, column.comment) for column in model.columns}
            assert state.comment == model.comment
            runner.run(f"SELECT * FROM {sql_path(model.qualified_name.parts)}")
    assert read_view(runner, view("").qualified_name) == ABSENT_VIEW


@pytest.mark.parametrize("query", QUERIES)
def test_spark_describes_every_query_that_it_takes_for_a_view(
    runner: SqlRunner, orders: str, query: str
) -> None:
    rows = runner.run(sql_describe_query(query))
    runner.run(sql_create_view(view(query)))
    described = [row["col_name"] for row in rows]
    assert described == [column.name for column in read_view(runner, view(query).qualified_name).columns]


def test_spark_describes_two_columns_of_one_name(runner: SqlRunner, orders: str) -> None:
    rows = runner.run(sql_describe_query(f"SELECT *, 1 AS ID FROM {orders}"))
    assert [row["col_name"] for row in rows] == [*COLUMNS, "ID"]


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT nope FROM {ORDERS}",
        "SELECT 1 AS a FROM spark_catalog.views.missing",
        "SELECT 1 AS a FROM spark_catalog.missing.missing",
        f"SELECT spark_catalog.views.missing(id) AS a FROM {ORDERS}",
        f"SELECT id a b FROM {ORDERS}",
        f"SELECT id FROM {ORDERS} GROUP BY name",
        f"SELECT o.id FROM {ORDERS} p",
        f"SELECT id FROM {ORDERS} p, {ORDERS} o",
    ],
)
def test_spark_refuses_to_describe_what_cannot_run(runner: SqlRunner, orders: str, query: str) -> None:
    with pytest.raises(StatementError) as caught:
        runner.run(sql_describe_query(query))
    assert is_refused_query(caught.value), (caught.value.error_class, caught.value.sql_state)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT `x y`, o.name FROM {orders} o WHERE ID > 1",
        "SELECT id AS k, k + 1 AS l FROM {orders} ORDER BY l",
        "SELECT id AS k, count(*) AS l FROM {orders} GROUP BY k HAVING l > 1 ORDER BY k",
        "SELECT dateadd(DAY, id, current_date) AS d, timestampdiff(MONTH, current_date, current_timestamp) AS m, "
        "user AS u, session_user AS s, extract(WEEK FROM current_date) AS w FROM {orders}",
        "SELECT name, count(*) AS n FROM {orders} GROUP BY ALL ORDER BY ALL",
        "SELECT transform(array(id), x -> x + 1) AS xs, aggregate(array(id), 0, (a, b) -> a + b) AS s FROM {orders}",
        "SELECT _metadata.file_path AS f FROM {orders}",
        "SELECT id, sum(id) OVER w AS s FROM {orders} WINDOW w AS (PARTITION BY name)",
        "SELECT o.id FROM {orders} o WHERE EXISTS (SELECT 1 FROM {orders} p WHERE p.name = o.name AND id > `x y`)",
        "WITH t AS (SELECT *, 1 AS n FROM {orders}) SELECT n, id, t.name FROM t",
        "SELECT id FROM {orders} UNION SELECT `x y` FROM {orders} ORDER BY id",
        "SELECT a.id FROM {orders} a JOIN {orders} b USING (id, name)",
        "SELECT id FROM {orders} a LEFT ANTI JOIN {orders} b ON a.id = b.id",
        "SELECT o.id, e FROM {orders} o LATERAL VIEW explode(array(id)) t AS e",
        "SELECT o.n FROM (SELECT struct(id AS n) AS o FROM {orders})",
        "SELECT named_struct('a', id).a AS b FROM {orders} TABLESAMPLE (10 ROWS)",
    ],
)
def test_nothing_is_missing_in_a_query_that_spark_takes(runner: SqlRunner, orders: str, query: str) -> None:
    text = query.format(orders=orders)
    runner.run(sql_describe_query(text))
    assert missing_columns(text, {orders: COLUMNS}) == []
