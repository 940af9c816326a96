"""Views of the fake catalog do what was measured on Spark 4.1.1, and what Databricks documents."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from delta_engine.errors import StatementError
from delta_engine.models.views import SchemaMode, ViewColumn, ViewName
from delta_engine.state.unity_catalog.information_schema import (
    TABLES,
    by_table,
)
from delta_engine.state.unity_catalog.views import OF_VIEWS, is_view, view_state
from delta_engine.state.view_descriptions import read_view
from delta_engine.state.view_states import ViewState
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.refusals import Refusal

ORDERS = (
    "CREATE TABLE dev.silver.orders (id INT COMMENT 'the id', name STRING, x DOUBLE) USING delta "
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')"
)
V = "dev.silver.v"


@pytest.fixture
def catalog() -> FakeUnityCatalog:
    made = FakeUnityCatalog(["dev.silver", "dev.gold"])
    made.run(ORDERS)
    return made


def refusal(catalog: FakeUnityCatalog, sql: str) -> str | None:
    with pytest.raises(StatementError) as caught:
        catalog.run(sql)
    return caught.value.error_class


def failure(catalog: FakeUnityCatalog, view: str = V) -> str | None:
    """Return the error condition of a query of a view; None if it works."""
    try:
        catalog.query_view(view)
    except Refusal as refused:
        return refused.error_class
    return None


def columns(catalog: FakeUnityCatalog, view: str = V) -> list[tuple[str, str]]:
    return [(column.name, column.comment) for column in catalog.query_view(view).columns]


def read(catalog: FakeUnityCatalog, name: ViewName) -> ViewState:
    of_schemas = {view: by_table(catalog.run(view.query(name.catalog, [name.schema]))) for view in OF_VIEWS}
    parts = {view: rows.get((name.schema, name.name), ()) for view, rows in of_schemas.items()}
    tables = catalog.run(TABLES.query(name.catalog, [name.schema]))
    (row,) = (row for row in tables if is_view(row) and row["table_name"] == name.name)
    return view_state(name, row, parts)


def test_columns_inherit_the_comments_of_those_that_they_pass_on(catalog: FakeUnityCatalog) -> None:
    catalog.run(
        f"CREATE VIEW {V} AS SELECT id AS i, id + 1 AS j, y.id FROM (SELECT id FROM dev.silver.orders) AS y"
    )
    assert columns(catalog) == [("i", "the id"), ("j", ""), ("id", "the id")]


def test_create_takes_names_and_comments_of_all_columns(catalog: FakeUnityCatalog) -> None:
    catalog.run(
        f"CREATE VIEW {V} (a COMMENT 'one', b) WITH SCHEMA BINDING COMMENT 'it' "
        "AS SELECT id, id + 1 AS c FROM dev.silver.orders"
    )
    assert columns(catalog) == [("a", "one"), ("b", "")]
    view = catalog.user_views[V]
    assert (view.mode, view.comment, view.owner) == (SchemaMode.BINDING, "it", "ann@example.com")


@pytest.mark.parametrize(
    ("sql", "error_class"),
    [
        (f"CREATE VIEW {V} AS SELECT nope FROM dev.silver.orders", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (f"CREATE VIEW {V} AS SELECT id FROM dev.silver.nope", "TABLE_OR_VIEW_NOT_FOUND"),
        (f"CREATE VIEW {V} AS SELECT id, 1 AS ID FROM dev.silver.orders", "COLUMN_ALREADY_EXISTS"),
        (
            f"CREATE VIEW {V} (a, b) AS SELECT id FROM dev.silver.orders",
            "CREATE_VIEW_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS",
        ),
        (
            f"CREATE VIEW {V} (a) AS SELECT id, x FROM dev.silver.orders",
            "CREATE_VIEW_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
        ),
        (f"CREATE VIEW {V} AS SELECT dev.gov.f(id) AS a FROM dev.silver.orders", "UNRESOLVED_ROUTINE"),
        ("CREATE VIEW dev.silver.orders AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE OR REPLACE VIEW dev.silver.orders AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE VIEW dev.nope.v AS SELECT 1 AS a", "SCHEMA_NOT_FOUND"),
        (f"ALTER VIEW {V} AS SELECT 1 AS a", "TABLE_OR_VIEW_NOT_FOUND"),
        ("DROP VIEW dev.silver.orders", "WRONG_COMMAND_FOR_OBJECT_TYPE"),
        (f"CREATE VIEW {V} AS SELECT o.a FROM dev.silver.orders AS o(a, b)", "ASSIGNMENT_ARITY_MISMATCH"),
    ],
)
def test_statements_about_views_that_are_refused(
    catalog: FakeUnityCatalog, sql: str, error_class: str
) -> None:
    assert refusal(catalog, sql) == error_class


@pytest.mark.parametrize(
    ("sql", "error_class"),
    [
        (f"CREATE VIEW {V} AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        (f"CREATE TABLE {V} (a INT) USING delta", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        (f"DROP TABLE {V}", "WRONG_COMMAND_FOR_OBJECT_TYPE"),
        (f"ALTER TABLE {V} ALTER COLUMN id COMMENT 'x'", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
        (f"ALTER TABLE {V} SET TAGS ('a' = 'b')", "EXPECT_TABLE_NOT_VIEW.USE_ALTER_VIEW"),
        (f"ALTER VIEW {V} AS SELECT id FROM {V}", "RECURSIVE_VIEW"),
        (f"ALTER VIEW {V} AS SELECT id FROM dev.silver.w", "RECURSIVE_VIEW"),
        (f"COMMENT ON COLUMN {V}.nope IS 'x'", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (f"GRANT MODIFY ON VIEW {V} TO `bob`", "INVALID_PARAMETER_VALUE"),
    ],
)
def test_statements_about_an_existing_view_that_are_refused(
    catalog: FakeUnityCatalog, sql: str, error_class: str
) -> None:
    catalog.run(f"CREATE VIEW {V} AS SELECT id FROM dev.silver.orders")
    catalog.run(f"CREATE VIEW dev.silver.w AS SELECT id FROM {V}")
    assert refusal(catalog, sql) == error_class


def dressed(catalog: FakeUnityCatalog) -> None:
    catalog.run(f"CREATE VIEW {V} WITH SCHEMA TYPE EVOLUTION AS SELECT name FROM dev.silver.orders")
    catalog.run(f"COMMENT ON TABLE {V} IS 'it'")
    catalog.run(f"COMMENT ON COLUMN {V}.name IS 'the name'")
    catalog.run(f"ALTER VIEW {V} SET TAGS ('domain' = 'sales')")
    catalog.run(f"ALTER TABLE {V} ALTER COLUMN name SET TAGS ('pii' = 'yes')")
    catalog.run(f"GRANT SELECT ON VIEW {V} TO `bob`")


def test_the_views_of_information_schema_show_a_view(catalog: FakeUnityCatalog) -> None:
    dressed(catalog)
    assert read(catalog, ViewName("dev", "silver", "v")) == ViewState(
        query="SELECT name FROM dev.silver.orders",
        columns=(ViewColumn("name", "the name", tags={"pii": "yes"}),),
        comment="it",
        tags={"domain": "sales"},
        owner="ann@example.com",
        grants={"bob": ("SELECT",)},
    )


def test_a_description_has_the_mode(catalog: FakeUnityCatalog) -> None:
    dressed(catalog)
    described = read_view(catalog, ViewName("dev", "silver", "v"))
    assert described.schema_mode is SchemaMode.TYPE_EVOLUTION
    assert described.columns == (ViewColumn("name", "the name"),)


def test_the_query_of_another_owner_is_hidden(catalog: FakeUnityCatalog) -> None:
    dressed(catalog)
    catalog.hides_queries = True
    catalog.user = "eve"
    state = read(catalog, ViewName("dev", "silver", "v"))
    assert (state.query, state.comment) == (None, "it")


def test_a_query_is_shown_with_other_white_space(catalog: FakeUnityCatalog) -> None:
    catalog.run(f"CREATE VIEW {V} AS SELECT\tid,\n\n\n  x FROM dev.silver.orders")
    assert read(catalog, ViewName("dev", "silver", "v")).query == "SELECT    id,\n  x FROM dev.silver.orders"


@pytest.mark.parametrize("lost", [set(), {"tags"}, {"column_tags", "tags"}])
def test_another_query_loses_comments_of_columns_and_keeps_grants(
    catalog: FakeUnityCatalog, lost: set[str]
) -> None:
    dressed(catalog)
    number = catalog.user_views[V].number
    catalog.lost_on_alter = frozenset(lost)
    catalog.run(f"ALTER VIEW {V} AS SELECT name, id FROM dev.silver.orders")
    view = catalog.user_views[V]
    assert columns(catalog) == [("name", ""), ("id", "the id")]
    assert view.column("name").tags == ({} if "column_tags" in lost else {"pii": "yes"})
    assert view.tags == ({} if "tags" in lost else {"domain": "sales"})
    assert (view.comment, view.mode, view.grants, view.number) == (
        "it",
        SchemaMode.TYPE_EVOLUTION,
        {"bob": ("SELECT",)},
        number,
    )


def test_replacing_a_view_loses_all_and_makes_another_one(catalog: FakeUnityCatalog) -> None:
    dressed(catalog)
    former = catalog.user_views[V]
    catalog.run(f"CREATE OR REPLACE VIEW {V} AS SELECT name FROM dev.silver.orders")
    view = catalog.user_views[V]
    assert (view.comment, view.tags, view.grants, view.mode) == ("", {}, {}, SchemaMode.COMPENSATION)
    assert view.number != former.number
    assert columns(catalog) == [("name", "")]


def test_a_renamed_view_keeps_all(catalog: FakeUnityCatalog) -> None:
    dressed(catalog)
    former = catalog.user_views[V]
    catalog.run(f"ALTER VIEW {V} RENAME TO dev.gold.v2")
    assert failure(catalog, "dev.gold.v2") is None
    renamed = catalog.user_views["dev.gold.v2"]
    assert (renamed.grants, renamed.tags, renamed.number) == (former.grants, former.tags, former.number)
    assert V not in catalog.user_views


MODES = ("BINDING", "COMPENSATION", "TYPE EVOLUTION", "EVOLUTION")


@pytest.mark.parametrize("mode", MODES)
def test_only_a_view_that_evolves_gets_added_columns_of_a_star(catalog: FakeUnityCatalog, mode: str) -> None:
    catalog.run(f"CREATE VIEW {V} WITH SCHEMA {mode} AS SELECT * FROM dev.silver.orders")
    catalog.run("ALTER TABLE dev.silver.orders ADD COLUMNS (extra INT COMMENT 'more')")
    names = ["id", "name", "x"] + ["extra"] * (mode == "EVOLUTION")
    assert [name for name, _ in columns(catalog)] == names


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "change",
    ["RENAME COLUMN name TO label", "DROP COLUMN name"],
)
def test_a_star_over_a_column_that_goes_fails_unless_the_view_evolves(
    catalog: FakeUnityCatalog, mode: str, change: str
) -> None:
    catalog.run(f"CREATE VIEW {V} WITH SCHEMA {mode} AS SELECT * FROM dev.silver.orders")
    catalog.run(f"ALTER TABLE dev.silver.orders {change}")
    assert failure(catalog) == (None if mode == "EVOLUTION" else "INCOMPATIBLE_VIEW_SCHEMA_CHANGE")


def test_a_list_of_columns_turns_evolution_into_type_evolution(catalog: FakeUnityCatalog) -> None:
    catalog.run(
        f"CREATE VIEW {V} (id COMMENT 'c', name, x) WITH SCHEMA EVOLUTION AS SELECT * FROM dev.silver.orders"
    )
    catalog.run("ALTER TABLE dev.silver.orders ADD COLUMNS (extra INT)")
    assert columns(catalog) == [("id", "c"), ("name", ""), ("x", "")]


def test_a_view_that_evolves_takes_its_comments_from_its_query(catalog: FakeUnityCatalog) -> None:
    catalog.run(f"CREATE VIEW {V} WITH SCHEMA EVOLUTION AS SELECT id FROM dev.silver.orders")
    catalog.run(f"COMMENT ON COLUMN {V}.id IS 'mine'")
    assert read(catalog, ViewName("dev", "silver", "v")).columns == (ViewColumn("id", "mine"),)
    assert columns(catalog) == [("id", "the id")]
    assert read(catalog, ViewName("dev", "silver", "v")).columns == (ViewColumn("id", "the id"),)
    catalog.run("ALTER TABLE dev.silver.orders ALTER COLUMN id COMMENT 'theirs'")
    assert columns(catalog) == [("id", "theirs")]


def test_other_views_keep_the_comments_that_they_had(catalog: FakeUnityCatalog) -> None:
    catalog.run(f"CREATE VIEW {V} AS SELECT id FROM dev.silver.orders")
    catalog.run("ALTER TABLE dev.silver.orders ALTER COLUMN id COMMENT 'theirs'")
    assert columns(catalog) == [("id", "the id")]


@pytest.mark.parametrize("mode", MODES)
def test_another_type_breaks_a_bound_view(catalog: FakeUnityCatalog, mode: str) -> None:
    catalog.run(f"CREATE VIEW {V} WITH SCHEMA {mode} AS SELECT id FROM dev.silver.orders")
    catalog.run("ALTER TABLE dev.silver.orders ALTER COLUMN id TYPE BIGINT")
    assert failure(catalog) == ("CANNOT_UP_CAST_DATATYPE" if mode == "BINDING" else None)
    catalog.run(f"ALTER VIEW {V} AS SELECT id FROM dev.silver.orders")
    assert failure(catalog) is None


@pytest.mark.parametrize(
    ("statements", "condition"),
    [
        (["DROP TABLE dev.silver.orders"], "TABLE_OR_VIEW_NOT_FOUND"),
        (["ALTER TABLE dev.silver.orders RENAME TO dev.silver.o2"], "TABLE_OR_VIEW_NOT_FOUND"),
        (["ALTER TABLE dev.silver.orders RENAME COLUMN id TO i"], "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (["ALTER TABLE dev.silver.orders DROP COLUMN x"], None),
        (["DROP SCHEMA dev.silver CASCADE"], "TABLE_OR_VIEW_NOT_FOUND"),
    ],
)
def test_a_view_fails_without_what_it_reads(
    catalog: FakeUnityCatalog, statements: Sequence[str], condition: str | None
) -> None:
    catalog.run("CREATE VIEW dev.silver.w AS SELECT id FROM dev.silver.orders")
    catalog.run("CREATE VIEW dev.gold.v AS SELECT id FROM dev.silver.w")
    for sql in statements:
        catalog.run(sql)
    assert failure(catalog, "dev.gold.v") == condition


def test_a_view_that_reads_by_position_survives_a_rename(catalog: FakeUnityCatalog) -> None:
    catalog.run(f"CREATE VIEW {V} AS SELECT o.label AS name FROM dev.silver.orders AS o(id, label, x)")
    catalog.run("ALTER TABLE dev.silver.orders RENAME COLUMN name TO label")
    assert failure(catalog) is None
    catalog.run("ALTER TABLE dev.silver.orders DROP COLUMN x")
    assert failure(catalog) == "ASSIGNMENT_ARITY_MISMATCH"


def test_only_owners_and_managers_change_views() -> None:
    catalog = FakeUnityCatalog(["dev.silver"], checks_owners=True)
    catalog.run(ORDERS)
    dressed(catalog)
    catalog.run(f"GRANT MANAGE ON VIEW {V} TO `jo`")
    for sql in (
        f"ALTER VIEW {V} AS SELECT id FROM dev.silver.orders",
        f"COMMENT ON TABLE {V} IS ''",
        f"COMMENT ON COLUMN {V}.name IS ''",
        f"DROP VIEW {V}",
        "CREATE VIEW dev.silver.w AS SELECT 1 AS a",
        f"ALTER TABLE {V} ALTER COLUMN name UNSET TAGS ('pii')",
    ):
        with pytest.raises(StatementError) as caught:
            catalog.by_hand(sql, user="eve")
        assert caught.value.error_class == "INSUFFICIENT_PERMISSIONS"
        catalog.user = "ann@example.com"
    catalog.by_hand(f"REVOKE SELECT ON VIEW {V} FROM `bob`", user="jo")
    assert catalog.user_views[V].grants == {"jo": ("MANAGE",)}


def test_a_query_is_described_without_a_view(catalog: FakeUnityCatalog) -> None:
    """Two columns of one name are described, and refused for a view (measured on Spark 4.1.1)."""
    twice = "SELECT *, 1 AS id FROM dev.silver.orders"
    rows = catalog.run(f"DESCRIBE QUERY {twice}")
    assert [(row["col_name"], row["comment"]) for row in rows] == [
        ("id", "the id"),
        ("name", None),
        ("x", None),
        ("id", None),
    ]
    assert refusal(catalog, f"CREATE VIEW {V} AS {twice}") == "COLUMN_ALREADY_EXISTS"


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("SELECT nope FROM dev.silver.orders", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("SELECT 1 AS a FROM dev.silver.missing", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT dev.silver.missing(id) AS a FROM dev.silver.orders", "UNRESOLVED_ROUTINE"),
        ("SELECT id a b FROM dev.silver.orders", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_a_query_that_cannot_run_is_not_described(
    catalog: FakeUnityCatalog, query: str, condition: str
) -> None:
    assert refusal(catalog, f"DESCRIBE QUERY {query}") == condition
