"""What is refused instead of being read wrongly: other relations, hidden and contradicting answers."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from delta_engine.backends.error_conditions import statement_error
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError, RefusalGroup, RefusedError, StatementError
from delta_engine.models import Schema
from delta_engine.state.catalog_reader import readable_snapshot
from delta_engine.state.states import CatalogState
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.builders.error_forms import FORMS, OF_EVERY_TABLE, OF_ONE_TABLE
from tests.builders.models import orders
from tests.cases.golden_texts import assert_golden_lines
from tests.fakes.recorded_catalog import (
    Answer,
    RecordedRunner,
    column_rows,
    constraint_row,
    key_rows,
    reference_row,
    schema_row,
    table_row,
)
from tests.fakes.recording_sql_runner import ScriptedSqlRunner
from tests.unit.state.unity_catalog.catalogs import (
    PLAIN,
    TABLE,
    TAGGED,
    document,
    of_two_tables,
    read,
    refusal,
    state_in,
    unity,
)


@pytest.mark.parametrize(
    ("kind", "source_format"),
    [
        ("VIEW", "UNKNOWN"),
        ("MATERIALIZED_VIEW", "DELTA"),
        ("FOREIGN", "POSTGRESQL"),
        ("MANAGED", "ICEBERG"),
        ("MANAGED_SHALLOW_CLONE", "DELTA"),
        ("EXTERNAL", "PARQUET"),
        ("METRIC_VIEW", "DELTA"),
        ("WHATEVER_COMES_NEXT", "DELTA"),
    ],
)
def test_other_relations_are_refused(kind: str, source_format: str) -> None:
    runner = unity({"tables": [table_row(table_type=kind, data_source_format=source_format)]})
    with pytest.raises(CatalogReadError) as caught:
        UnityCatalogReader(runner).snapshot([orders()])
    is_view = kind.endswith("VIEW")
    what = f"a {kind.lower().replace('_', ' ')}" if is_view else f"{kind} in the format {source_format}"
    assert str(caught.value) == (
        f"table dev.silver.orders: it exists, but it is {what}, not a Delta table. Rename the model, or rename or "
        "move the existing object. To forget a table that is no longer declared, use `delta-engine -e ENV state rm`."
    )
    assert not any("AS JSON" in sql for sql in runner.statements)


def test_what_the_views_do_not_show_yet_may_be_no_table_either() -> None:
    runner = unity({"tables": [], "columns": []}, {"AS JSON": document(*PLAIN, type="VIEW")})
    with pytest.raises(CatalogReadError, match="it exists, but it is VIEW, not a Delta table"):
        UnityCatalogReader(runner).snapshot_directly([orders()])


LAGGING = (
    " Run the command again in a minute, because the views of information_schema can lag. If it persists, run "
    "REPAIR TABLE … "
    "SYNC METADATA."
)
CONNECTED = " Ask for USE CATALOG, USE SCHEMA and SELECT on the tables that the key connects."


def _with_type_of_b(data_type: Mapping[str, object]) -> dict[str, Answer]:
    """Return the description of a table with another type of its second column."""
    columns = [{"name": "Id", "type": {"name": "bigint"}}, {"name": "B", "type": data_type}]
    return {"AS JSON": document(*PLAIN, columns=columns)}


SHAPE: dict[str, Answer] = {"AS JSON": document(("Id", "bigint"), ("B", "geography"))}


REFUSED: list[tuple[dict[str, Answer], dict[str, Answer] | None]] = [
    ({"columns": []}, None),
    ({}, SHAPE),
    ({}, _with_type_of_b({"name": "string", "collation": "UNICODE_CI"})),
    ({}, _with_type_of_b({"name": "interval", "start_unit": "day"})),
    ({}, _with_type_of_b({"name": "whatever_comes_next"})),
    ({}, {"AS JSON": [{"json_metadata": "{}"}]}),
    ({}, {"AS JSON": []}),
    ({}, {"AS JSON": StatementError("no SELECT\nmore", sql="y", error_class="INSUFFICIENT_PERMISSIONS")}),
    ({"columns": column_rows(("Id", "bigint"))}, None),
    ({"columns": column_rows(("Id", "int"), ("B", "date"))}, None),
    ({"columns": [{**row, "is_nullable": None} for row in column_rows(*PLAIN)[:1]]}, None),
    ({"table_constraints": [constraint_row("pk", "orders", "PRIMARY KEY")]}, None),
    (
        {
            "table_constraints": [constraint_row("fk", "orders", "FOREIGN KEY")],
            "key_column_usage": key_rows("fk", "orders", ["id"], there=[1]),
            "referential_constraints": [reference_row("fk", "pk_hidden", target_schema="secret")],
        },
        None,
    ),
    (
        {
            "table_constraints": [constraint_row("fk", "orders", "FOREIGN KEY")],
            "key_column_usage": [
                *key_rows("fk", "orders", ["id"], there=[2]),
                *key_rows("pk", "days", ["day"]),
            ],
            "referential_constraints": [reference_row("fk", "pk")],
        },
        None,
    ),
    ({"row_filters": [{**TABLE, "filter_name": "f", "target_columns": ""}] * 2}, None),
    ({"row_filters": [{**TABLE, "filter_name": "dev.f.g", "columns": ""}]}, None),
    ({"schemata": StatementError("x", sql="y", error_class="NO_SUCH_CATALOG_EXCEPTION")}, None),
]


def test_it_fails_closed(request: pytest.FixtureRequest) -> None:
    refusals = [refusal(views, texts) for views, texts in REFUSED]
    assert_golden_lines(refusals, Path(__file__).parent / "refusals.txt", request)


@pytest.mark.parametrize("form", FORMS)
def test_a_description_that_may_not_be_read_refuses_its_table_alone_in_each_form(form: str) -> None:
    words = FORMS[form]("PERMISSION_DENIED", "User does not have SELECT on Table 'dev.silver.a'.")
    runner = of_two_tables({"`a` AS JSON": statement_error(words, sql="DESCRIBE")})
    with pytest.raises(CatalogReadError) as caught:
        UnityCatalogReader(runner).snapshot([orders(name="a"), orders(name="b")])
    assert (caught.value.table, caught.value.way_out) == ("dev.silver.a", "Ask for SELECT on it.")
    assert words.removesuffix(".") in caught.value.reason


def test_all_that_cannot_be_read_is_named() -> None:
    views: dict[str, Answer] = {"tables": [table_row(name, table_type="VIEW") for name in ("a", "b")]}
    with pytest.raises(RefusalGroup) as caught:
        UnityCatalogReader(unity(views)).snapshot([orders(name="a"), orders(name="b")])
    assert [refusal.table for refusal in caught.value.refusals] == ["dev.silver.a", "dev.silver.b"]


def read_despite(error: StatementError) -> tuple[CatalogState, tuple[RefusedError, ...]]:
    """Return what is read of the tables a and b if the description of a fails."""
    reader = UnityCatalogReader(of_two_tables({"`a` AS JSON": error}))
    return readable_snapshot(reader, [orders(name="a"), orders(name="b")])


@pytest.mark.parametrize("failure", OF_ONE_TABLE)
def test_a_description_that_fails_for_one_table_refuses_that_table_alone(failure: str) -> None:
    """Delta's own conditions of missing tables are of files: the catalog has the table."""
    error = OF_ONE_TABLE[failure]
    observed, (refusal,) = read_despite(error)
    assert (refusal.table, refusal.reason) == ("dev.silver.a", f"it cannot be read: {error.first_line}")
    assert [*observed.tables] == ["dev.silver.b"]


@pytest.mark.parametrize("failure", OF_EVERY_TABLE)
def test_a_description_that_fails_for_every_table_is_one_failure(failure: str) -> None:
    with pytest.raises(
        StatementError, match=r"^no table can be read \(reading table dev\.silver\.a failed\): "
    ):
        read_despite(OF_EVERY_TABLE[failure])


def test_rows_of_an_unknown_form_refuse_their_table() -> None:
    rows = [{**row, "ordinal_position": "first"} for row in column_rows(*PLAIN)]
    assert refusal({"columns": rows}).startswith(
        "table dev.silver.orders: the platform describes it in an unknown form: "
    )


def test_a_schema_that_cannot_be_described_is_named() -> None:
    schema = Schema("dev", "silver", predictive_optimization="enable")
    runner = unity(None, {"DESCRIBE SCHEMA": OF_ONE_TABLE["status 500"], "AS JSON": document(*PLAIN)})
    with pytest.raises(CatalogReadError, match=r"^schema dev\.silver cannot be described: "):
        UnityCatalogReader(runner).snapshot([schema])


@pytest.mark.parametrize("where", ["schemata", "key_column_usage"])
def test_other_errors_of_the_platform_pass_through(where: str) -> None:
    error = StatementError("x", sql="y", error_class="PERMISSION_DENIED")
    with pytest.raises(StatementError):
        read({where: error})


WHOLE: dict[str, list[Row]] = {
    "tables": [table_row()],
    "columns": column_rows(*PLAIN),
    "table_constraints": [
        constraint_row("pk", "orders", "PRIMARY KEY"),
        constraint_row("fk", "orders", "FOREIGN KEY"),
    ],
    "key_column_usage": [
        *key_rows("pk", "orders", ["id"]),
        *key_rows("fk", "orders", ["b"], there=[1]),
        *key_rows("pk_days", "days", ["day"]),
    ],
    "referential_constraints": [reference_row("fk", "pk_days")],
    "table_tags": [{**TAGGED, "tag_name": "a", "tag_value": None}],
    "column_tags": [{**TAGGED, "column_name": "id", "tag_name": "a", "tag_value": None}],
    "schema_tags": [{"schema_name": "silver", "tag_name": "a", "tag_value": None}],
    "row_filters": [{**TABLE, "filter_name": "dev.silver.f", "target_columns": None}],
    "column_masks": [{**TABLE, "column_name": "id", "mask_name": "dev.silver.m", "using_columns": None}],
    "table_privileges": [{**TABLE, "grantee": "ann", "privilege_type": "SELECT"}],
    "schema_privileges": [{"schema_name": "silver", "grantee": "ann", "privilege_type": "SELECT"}],
}
"""Rows in which nothing is missing but what may be."""

MAY_BE_MISSING = {
    *("comment", "storage_path", "table_owner", "schema_owner", "created", "created_by", "last_altered"),
    *("last_altered_by", "tag_value", "target_columns", "using_columns", "position_in_unique_constraint"),
    *("constraint_catalog", "unique_constraint_catalog", "table_catalog"),
}

HALVES = [
    (view, place, column)
    for view, rows in WHOLE.items()
    for place, row in enumerate(rows)
    for column in sorted(row.keys() - MAY_BE_MISSING)
    if not (column == "schema_name" and view.startswith("schema_"))  # the query asks for some schemas alone
]


@pytest.mark.parametrize(("view", "place", "column"), HALVES)
def test_nothing_is_made_of_half_a_row(view: str, place: int, column: str) -> None:
    rows: list[Row] = [
        {**row, column: None} if here == place else row for here, row in enumerate(WHOLE[view])
    ]
    assert read({**WHOLE})
    with pytest.raises(CatalogReadError):
        read({**WHOLE, view: rows})


HALF_ROWS = [
    ("column_masks", "mask_name"),
    ("table_constraints", "constraint_type"),
    ("tables", "table_name"),
    ("schema_tags", "tag_name"),
]
HALF_DOCUMENTS: list[dict[str, object]] = [
    {"name": None},
    {"nullable": None},
    {"comment": 7},
    {"default": 7},
    {"type": {"name": "struct", "fields": [{"name": 1, "type": {"name": "int"}}]}},
]


def test_what_half_a_row_or_document_lacks_is_said(request: pytest.FixtureRequest) -> None:
    refusals = [refusal({**WHOLE, view: [{**WHOLE[view][0], column: None}]}) for view, column in HALF_ROWS]
    whole = {"name": "a", "type": {"name": "int"}}
    documents = [document(columns=[{**whole, **column}]) for column in HALF_DOCUMENTS]
    refusals += [refusal(texts={"AS JSON": document}) for document in documents]
    assert_golden_lines(refusals, Path(__file__).parent / "halves.txt", request)


def _with_key_into_other(
    table: str, error_class: str | None = "INSUFFICIENT_PERMISSIONS"
) -> ScriptedSqlRunner:
    """Return two tables, one of which has a foreign key into the catalog `other`, which cannot be read."""
    message = "User does not have USE CATALOG on Catalog 'other'."
    recorded = RecordedRunner(
        {
            "schemata": [schema_row()],
            "tables": [table_row(), table_row("lines")],
            "columns": [*column_rows(*PLAIN), *column_rows(*PLAIN, name="lines")],
            "table_constraints": [constraint_row("fk", table, "FOREIGN KEY")],
            "key_column_usage": key_rows("fk", table, ["id"], there=[1]),
            "referential_constraints": [{**reference_row("fk", "pk"), "unique_constraint_catalog": "other"}],
        },
        {"AS JSON": document(*PLAIN)},
    )
    error = StatementError(message, sql="", error_class=error_class)
    return ScriptedSqlRunner({"`other`": error}, recorded.run)


def test_a_key_into_a_forbidden_catalog_refuses_its_table_alone() -> None:
    runner = _with_key_into_other("lines")
    with pytest.raises(CatalogReadError) as caught:
        UnityCatalogReader(runner).snapshot([orders(), orders(name="lines")])
    assert str(caught.value) == (
        "table dev.silver.lines: its foreign key fk points into another catalog: 'other' cannot be read (User does "
        f"not have USE CATALOG on Catalog 'other').{CONNECTED}"
    )


def test_keys_of_tables_that_are_not_wanted_are_not_followed() -> None:
    runner = _with_key_into_other("lines")
    assert state_in(runner).exists
    assert not any("`other`" in sql for sql in runner.statements)


def test_another_catalog_that_fails_otherwise_refuses_the_table_alone_too() -> None:
    with pytest.raises(CatalogReadError, match="'other' cannot be read"):
        state_in(_with_key_into_other("orders", None))
    with pytest.raises(StatementError, match=r"^no table can be read \(reading catalog other failed\): "):
        state_in(_with_key_into_other("orders", "TEMPORARILY_UNAVAILABLE"))


def test_a_schema_that_the_views_lack_is_not_taken_for_missing() -> None:
    shown: dict[str, Answer] = {"SHOW SCHEMAS IN `dev`": [{"databaseName": "silver"}]}
    with pytest.raises(CatalogReadError) as caught:
        UnityCatalogReader(unity({"schemata": []}, shown)).snapshot([orders()])
    assert str(caught.value) == (
        f"the information_schema of catalog 'dev' does not show what exists there: silver.{LAGGING}"
    )
    state = UnityCatalogReader(unity({"schemata": []}, shown)).snapshot_directly([orders()])
    assert state.missing_schemas == {("dev", "silver")}


def test_a_renamed_catalog_is_refused_where_system_is_forbidden() -> None:
    forbidden = StatementError("No SELECT.", sql="", error_class="PERMISSION_DENIED")
    runner = ScriptedSqlRunner({"`system`": forbidden, "SHOW SCHEMAS": [{"databaseName": "silver"}]})
    with pytest.raises(CatalogReadError) as caught:
        UnityCatalogReader(runner).snapshot([orders()])
    assert str(caught.value) == (
        "the information_schema of catalog 'dev' does not show what exists there: silver. If the catalog was renamed, "
        "ask for SELECT on system.information_schema (No SELECT.). If a schema is new, run it again in a minute."
    )
    just_made = UnityCatalogReader(runner).snapshot_directly([orders()])  # the views lag behind
    assert just_made.missing_schemas == {("dev", "silver")}
