"""The reader of Unity Catalog, over recorded rows and documents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest

from delta_engine.addressing import CatalogAddressing
from delta_engine.errors import CatalogReadError, RefusalGroup, StatementError
from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    QualifiedName,
    Reference,
    RowFilter,
    Schema,
)
from delta_engine.sql_runner import Row
from delta_engine.state.states import ABSENT, Audit, RelationKind, SchemaState
from delta_engine.state.unity_catalog.described_details import DescribedDetailsReader
from delta_engine.state.unity_catalog.listed_details import ListedDetailsReader
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.builders import ORDERS, orders
from tests.recorded_catalog import (
    RECORDED,
    Answer,
    RecordedRunner,
    column_rows,
    constraint_row,
    key_rows,
    reference_row,
    schema_row,
    table_row,
)

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import TableInfo

TABLE: Row = {"table_schema": "silver", "table_name": "orders"}
TAGGED: Row = {"schema_name": "silver", "table_name": "orders"}


def document(*columns: tuple[str, str], **changes: object) -> list[Row]:
    """Return what AS JSON says of a table of nullable columns without comments."""
    text = {
        "columns": [{"name": name, "type": {"name": kind}, "nullable": True} for name, kind in columns],
        "table_properties": {"a": "b"},
        **changes,
    }
    return [{"json_metadata": json.dumps(text)}]


PLAIN = (("Id", "bigint"), ("B", "date"))


def unity(views: dict[str, Answer] | None = None, texts: dict[str, Answer] | None = None) -> RecordedRunner:
    """Return a Unity Catalog with dev.silver.orders, but for the changes."""
    recorded: dict[str, Answer] = {
        "schemata": [schema_row()],
        "tables": [table_row()],
        "columns": column_rows(*PLAIN),
        **(views or {}),
    }
    return RecordedRunner(recorded, {"AS JSON": document(*PLAIN)} if texts is None else texts)


def read(views: dict[str, Answer] | None = None, texts: dict[str, Answer] | None = None) -> object:
    """Return the state of dev.silver.orders."""
    return UnityCatalogReader(unity(views, texts)).snapshot([orders()]).table(ORDERS)


def refusal(views: dict[str, Answer] | None = None, texts: dict[str, Answer] | None = None) -> str:
    """Return why dev.silver.orders cannot be read."""
    with pytest.raises(CatalogReadError) as caught:
        read(views, texts)
    return str(caught.value)


def test_everything_is_read_with_one_query_per_view_and_one_statement_per_table() -> None:
    views: dict[str, Answer] = {
        "schemata": [schema_row(comment="Cleansed")],
        "tables": [
            table_row(comment="Orders table", table_type="EXTERNAL", storage_path="s3://bucket/orders"),
            table_row("customers"),
            table_row("a_view", table_type="VIEW", data_source_format="UNKNOWN"),
        ],
        "table_constraints": [
            constraint_row("pk_x", "orders", "PRIMARY KEY"),
            constraint_row("fk_self", "orders", "FOREIGN KEY"),
            constraint_row("fk_b", "orders", "FOREIGN KEY"),
            constraint_row("uq", "orders", "UNIQUE"),
            constraint_row("fk_in", "lines", "FOREIGN KEY", schema="gold"),
        ],
        "key_column_usage": [
            *key_rows("pk_x", "orders", ["B", "id"])[::-1],
            *key_rows("fk_self", "orders", ["ID", "b"], there=[2, 1]),
            *key_rows("fk_b", "orders", ["b"], there=[1]),
            *key_rows("pk_days", "days", ["day"], schema="gold"),
            *key_rows("fk_in", "lines", ["d", "o"], there=[1, 2], schema="gold"),
        ],
        "referential_constraints": [
            reference_row("fk_self", "pk_x"),
            reference_row("fk_b", "pk_days", target_schema="gold"),
            reference_row("fk_in", "pk_x", schema="gold"),
        ],
        "table_tags": [
            {**TAGGED, "tag_name": "pii", "tag_value": "yes"},
            {**TAGGED, "tag_name": "x", "tag_value": ""},
        ],
        "column_tags": [{**TAGGED, "column_name": "ID", "tag_name": "k", "tag_value": "v"}],
        "schema_tags": [{"schema_name": "silver", "tag_name": "zone", "tag_value": "2"}],
        "row_filters": [{**TABLE, "filter_name": "dev.f.mine", "target_columns": "`Id`, B"}],
        "column_masks": [{**TABLE, "column_name": "b", "mask_name": "dev.f.hide", "using_columns": "Id"}],
        "table_privileges": [
            {**TABLE, "grantee": "readers", "privilege_type": "SELECT"},
            {**TABLE, "grantee": "readers", "privilege_type": "ALL_PRIVILEGES"},
        ],
        "schema_privileges": [
            {"schema_name": "silver", "grantee": "readers", "privilege_type": "USE_SCHEMA"}
        ],
    }
    properties = {"a": "b", "clusteringColumns": '[["B"],["Id"]]', "delta.constraints.c": "Id > 0"}
    runner = unity(views, {"AS JSON": document(*PLAIN, table_properties=properties, partition_columns=["B"])})
    models = [orders(), orders(name="nope"), orders(name="ORDERS")]
    state = UnityCatalogReader(runner).snapshot(models)
    found = state.table(ORDERS)
    assert found.columns == (
        Column("Id", "bigint", tags={"k": "v"}),
        Column("B", "date", mask=ColumnMask("dev.f.hide", ["Id"])),
    )
    assert found.table_comment == "Orders table"
    assert found.primary_key == PrimaryKey(("B", "Id"), "pk_x")
    assert found.foreign_keys == (
        ForeignKey(["B"], "dev.gold.days", ["day"], "fk_b"),
        ForeignKey(["Id", "B"], "dev.silver.orders", ["id", "B"], "fk_self"),
    )
    assert found.referenced_by == (Reference(table=QualifiedName("dev", "gold", "lines"), name="fk_in"),)
    assert found.checks == (CheckConstraint("c", "Id > 0"),)
    assert found.table_properties["a"] == "b"
    assert "clusteringColumns" not in found.table_properties
    assert (found.cluster_by, found.clusters_automatically) == (("B", "Id"), False)
    assert found.partitioned_by == ("B",)
    assert dict(found.tags) == {"pii": "yes", "x": ""}
    assert found.row_filter == RowFilter("dev.f.mine", ["Id", "B"])
    assert found.owner == "data-engineers"
    assert dict(found.grants) == {"readers": ("ALL PRIVILEGES", "SELECT")}
    assert found.location == "s3://bucket/orders"
    assert found.relation is RelationKind.TABLE
    assert found.audit == Audit(
        created_at=datetime(2026, 1, 2, tzinfo=timezone.utc),
        created_by="ann",
        altered_at=datetime(2026, 3, 4, tzinfo=timezone.utc),
        altered_by="bob",
    )
    assert state.schema_states["dev.silver"] == SchemaState(
        comment="Cleansed", tags={"zone": "2"}, owner="platform", grants={"readers": ("USE SCHEMA",)}
    )
    assert state.table(QualifiedName("dev", "silver", "nope")) is ABSENT
    assert state.unasked == (QualifiedName("dev", "silver", "customers"),)
    views_asked = [sql for sql in runner.statements if "information_schema" in sql]
    assert (len(views_asked), len(runner.statements)) == (13, 14)


def test_it_asks_no_more_than_needed() -> None:
    runner = unity({"tables": []})
    assert UnityCatalogReader(runner).snapshot([orders()]).table(ORDERS) is ABSENT
    assert len(runner.statements) == 4  # what there is of schemas, and that there is no table
    runner = unity({"schemata": []})
    state = UnityCatalogReader(runner).snapshot([orders()])
    assert state.missing_schemas == {("dev", "silver")}
    assert len(runner.statements) == 2  # schemas and tables at the same time: neither waits for the other


def test_schemas_can_be_read_that_hold_no_table() -> None:
    runner = unity({"schemata": [schema_row("gold")], "tables": []})
    schemas = [Schema("dev", "gold"), Schema("dev", "bronze")]
    state = UnityCatalogReader(runner).snapshot([], schemas)
    assert state.schema_states == {"dev.gold": SchemaState(owner="platform")}
    assert state.missing_schemas == {("dev", "bronze")}


def test_queries_quote_names_and_leave_out_what_comes_from_above() -> None:
    runner = unity()
    UnityCatalogReader(runner).snapshot([orders()])
    assert runner.asked("schemata") == (
        "SELECT schema_name, comment, schema_owner, created, created_by, last_altered, last_altered_by\n"
        "FROM `dev`.information_schema.schemata\n"
        "WHERE schema_name IN ('silver')"
    )
    assert runner.asked("table_privileges") == (
        "SELECT table_schema, table_name, grantee, privilege_type\n"
        "FROM `dev`.information_schema.table_privileges\n"
        "WHERE table_schema IN ('silver') AND coalesce(inherited_from, 'NONE') = 'NONE'"
    )
    assert runner.asked("row_filters") == "SELECT *\nFROM `dev`.information_schema.row_filters"


def test_filters_and_masks_may_be_spelled_as_documented() -> None:
    filtered = {
        "catalog_name": "dev",
        **TAGGED,
        "filter_catalog": "dev",
        "filter_schema": "f",
        "filter_name": "mine",
        "filter_col_usage": "",
    }
    masked = {
        **TAGGED,
        "column_name": "B",
        "mask_catalog": "dev",
        "mask_schema": "f",
        "mask_name": "hide",
        "mask_col_usage": None,
    }
    runner = unity({"row_filters": [filtered], "column_masks": [masked]})
    state = UnityCatalogReader(runner).snapshot([orders()]).table(ORDERS)
    assert state.row_filter == RowFilter("dev.f.mine")
    assert state.columns[1].mask == ColumnMask("dev.f.hide")


def test_a_document_is_read_whole() -> None:
    text = (RECORDED / "described" / "orders.json").read_text("utf-8")
    runner = unity({"tables": [], "columns": []}, {"AS JSON": [{"json_metadata": text}]})
    state = UnityCatalogReader(runner).snapshot_directly([orders()]).table(ORDERS)
    assert state.columns == (
        Column("Id", "bigint", is_nullable=False, comment="Order ID"),
        Column("placed", "timestamp"),
        Column("amount", "decimal(18,2)", default="0.00"),
        Column("state", "varchar(2)"),
        Column("lines", "array<struct<sku: string COMMENT 'it\\'s', tags: map<string,int>>>"),
    )
    assert state.table_comment == "Orders table"
    assert state.cluster_by == ("Id", "a b.c")
    assert state.checks == (CheckConstraint("positive", "amount >= 0"),)
    assert (state.owner, state.location) == ("data-engineers", None)


def test_what_was_just_changed_is_believed_before_the_views() -> None:
    runner = unity(texts={"AS JSON": document(("Id", "bigint"), ("New", "date"), comment="new")})
    reader = UnityCatalogReader(runner)
    state = reader.snapshot_directly([orders(), orders(name="other")]).table(ORDERS)
    assert [column.name for column in state.columns] == ["Id", "New"]
    assert (state.table_comment, state.owner) == ("new", "data-engineers")
    with pytest.raises(CatalogReadError, match="shows the columns Id, B, the table itself Id, New"):
        reader.snapshot([orders()])


KEYS = (
    "[(pk_x,PRIMARY KEY (`Id`, `a``b, (c`) RELY), "
    "(fk_b,FOREIGN KEY (`B`) REFERENCES `dev`.`gold`.`days` (`day`))]"
)


def test_keys_that_were_just_made_are_read_where_the_table_tells_them() -> None:
    runner = unity(texts={"AS JSON": document(*PLAIN, table_constraints=KEYS)})
    state = UnityCatalogReader(runner).snapshot_directly([orders()]).table(ORDERS)
    assert state.primary_key == PrimaryKey(["Id", "a`b, (c"], "pk_x")
    assert state.foreign_keys == (ForeignKey(["B"], "dev.gold.days", ["day"], "fk_b"),)
    assert UnityCatalogReader(runner).snapshot([orders()]).table(ORDERS).primary_key is None
    none = unity(texts={"AS JSON": document(*PLAIN, table_constraints="[]")})
    assert UnityCatalogReader(none).snapshot_directly([orders()]).table(ORDERS).foreign_keys == ()


@pytest.mark.parametrize(
    "text", ["(pk,PRIMARY KEY (`Id`))", "[(pk,PRIMARY KEY (`Id`)), (x,NEW KEY)]", "[(f,FOREIGN KEY (`a`))]"]
)
def test_keys_that_are_not_understood_come_from_the_views(text: str) -> None:
    views: dict[str, Answer] = {
        "table_constraints": [constraint_row("pk", "orders", "PRIMARY KEY")],
        "key_column_usage": key_rows("pk", "orders", ["ID"]),
    }
    runner = unity(views, {"AS JSON": document(*PLAIN, table_constraints=text)})
    state = UnityCatalogReader(runner).snapshot_directly([orders()]).table(ORDERS)
    assert state.primary_key == PrimaryKey(["Id"], "pk")


def test_what_is_gone_by_now_is_absent() -> None:
    gone = StatementError("x", sql="y", error_class="TABLE_OR_VIEW_NOT_FOUND")
    assert read(texts={"AS JSON": gone}) is ABSENT
    runner = unity({"tables": [], "columns": []}, {"AS JSON": gone})
    assert UnityCatalogReader(runner).snapshot_directly([orders()]).table(ORDERS) is ABSENT


CREATE = """CREATE TABLE dev.silver.orders (
  Id BIGINT NOT NULL GENERATED BY DEFAULT AS IDENTITY (START WITH 5 INCREMENT BY -2) COMMENT 'it\\'s',
  placed TIMESTAMP DEFAULT current_timestamp(),
  state STRING COLLATE UTF8_BINARY,
  s STRUCT<a: INT NOT NULL COMMENT 'x', b: ARRAY<VARCHAR(3)>>,
  B DATE GENERATED ALWAYS AS (CAST(placed AS DATE)),
  CONSTRAINT `pk` PRIMARY KEY (`Id`) RELY)
USING delta
PARTITIONED BY (B)
COMMENT 'it\\'s'
TBLPROPERTIES ('a' = 'b')"""

CREATED = (
    Column("Id", "bigint", False, "it's", identity=Identity(5, -2, always=False)),
    Column("placed", "timestamp", default="CURRENT_TIMESTAMP()"),
    Column("state", "string"),
    Column("s", "struct<a: int NOT NULL COMMENT 'x', b: array<varchar(3)>>"),
    Column("B", "date", generated_as="CAST(placed AS DATE)"),
)

CREATED_ROWS = [
    {**row, "is_nullable": nullable, "comment": comment}
    for row, nullable, comment in zip(
        column_rows(
            ("Id", "bigint"),
            ("placed", "timestamp"),
            ("state", "string"),
            ("s", "struct<a:int,b:array<string>>"),
            ("B", "date"),
        ),
        ("NO", "YES", "YES", "YES", "YES"),
        ("it's", None, None, None, None),
        strict=True,
    )
]


@pytest.mark.parametrize(
    "condition", ["PARSE_SYNTAX_ERROR", "UNSUPPORTED_FEATURE.X", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"]
)
def test_an_older_runtime_shows_properties_and_the_create_statement(condition: str) -> None:
    runner = unity(
        {"columns": CREATED_ROWS},
        {
            "AS JSON": StatementError("x", sql="y", error_class=condition),
            "SHOW TBLPROPERTIES": [{"key": "a", "value": "b"}],
            "SHOW CREATE TABLE": [{"createtab_stmt": CREATE}],
        },
    )
    reader = UnityCatalogReader(runner)
    for _ in range(2):
        state = reader.snapshot([orders()]).table(ORDERS)
        assert state.columns == CREATED
        assert reader.snapshot_directly([orders()]).table(ORDERS).table_comment == "it's"
        assert state.partitioned_by == ("B",)
        assert dict(state.table_properties) == {"a": "b"}
    assert sum("AS JSON" in sql for sql in runner.statements) == 1


@pytest.mark.parametrize(
    "properties", [{"delta.feature.identityColumns": "supported"}, {"delta.minWriterVersion": "6"}]
)
def test_generated_columns_are_looked_up_where_the_document_may_hide_them(
    properties: dict[str, str],
) -> None:
    described = document(
        *(
            (column.name, str(row["full_data_type"]))
            for column, row in zip(CREATED, CREATED_ROWS, strict=True)
        ),
        table_properties=properties,
    )
    columns = json.loads(str(described[0]["json_metadata"]))
    columns["columns"][0] |= {"nullable": False, "comment": "it's"}
    columns["columns"][3]["type"] = {
        "name": "struct",
        "fields": [
            {"name": "a", "type": {"name": "int"}},
            {"name": "b", "type": {"name": "array", "element_type": {"name": "string"}}},
        ],
    }
    texts: dict[str, Answer] = {
        "AS JSON": [{"json_metadata": json.dumps(columns)}],
        "SHOW CREATE TABLE": [{"createtab_stmt": CREATE}],
    }
    runner = unity({"columns": CREATED_ROWS}, texts)
    state = UnityCatalogReader(runner).snapshot([orders()]).table(ORDERS)
    assert state.columns[0].identity == Identity(5, -2, always=False)
    assert state.columns[4].generated_as == "CAST(placed AS DATE)"


class FakeListing:
    """Lists what it has, and counts how often it is asked."""

    def __init__(self, *tables: TableInfo | Exception) -> None:
        self._tables = tables
        self.asked: list[tuple[str, str]] = []

    def list(self, catalog_name: str, schema_name: str) -> Iterator[TableInfo]:
        self.asked.append((catalog_name, schema_name))
        for table in self._tables:
            if isinstance(table, Exception):
                raise table
            yield table


def listed(**changes: object) -> TableInfo:
    """Return dev.silver.orders as it was listed, but for the changes."""
    from databricks.sdk.service.catalog import TableInfo

    recorded = json.loads((RECORDED / "listed" / "orders.json").read_text("utf-8"))
    return TableInfo.from_dict({**recorded, **changes})


LISTED_ROWS: dict[str, Answer] = {
    "tables": [table_row(table_type="EXTERNAL", storage_path="s3://bucket/orders/")],
    "columns": [
        {**row, "is_nullable": nullable, "comment": comment}
        for row, nullable, comment in zip(
            column_rows(("Id", "bigint"), ("state", "varchar(2)"), ("placed_on", "date")),
            ("NO", "YES", "YES"),
            ("Order ID", None, None),
            strict=True,
        )
    ],
}


def reader_over(runner: RecordedRunner, listing: FakeListing) -> UnityCatalogReader:
    described = DescribedDetailsReader(runner, CatalogAddressing())
    return UnityCatalogReader(runner, details=ListedDetailsReader(listing, described))


def test_a_listing_says_what_the_views_do_not() -> None:
    runner, listing = unity(LISTED_ROWS, {}), FakeListing(listed(), listed(name="another"))
    state = reader_over(runner, listing).snapshot([orders()]).table(ORDERS)
    assert state.columns == (
        Column("Id", "bigint", False, "Order ID", identity=Identity(100, 10, always=False)),
        Column("state", "varchar(2)", default="'XX'"),
        Column("placed_on", "date", generated_as="CAST(placed AS DATE)"),
    )
    assert (state.cluster_by, state.clusters_automatically) == ((), True)
    assert state.partitioned_by == ("placed_on",)
    assert state.checks == (CheckConstraint("positive", "Id > 0"),)
    assert state.location == "s3://bucket/orders/"
    assert listing.asked == [("dev", "silver")]
    assert len(runner.statements) == 13


def not_listed() -> Iterable[Sequence[TableInfo | Exception]]:
    """Yield listings that do not say all of the table."""
    from databricks.sdk.errors import PermissionDenied

    yield ()
    yield (PermissionDenied("no"),)
    yield (TimeoutError(),)
    yield (listed(properties=None),)
    yield (listed(columns=None),)
    yield (listed(browse_only=True),)
    yield (listed(columns=[{"name": "Id", "position": 0, "type_json": '"long"'}]),)
    yield (listed(columns=[{"name": "Id", "position": 0, "type_json": "{"}]),)
    hidden = {"name": "Id", "position": 0, "type_json": '{"name": "Id", "type": "long", "metadata": {}}'}
    yield (listed(columns=[hidden]),)  # the properties say that there is an identity column


@pytest.mark.parametrize("tables", list(not_listed()))
def test_what_a_listing_does_not_say_the_table_is_asked_for(tables: Sequence[TableInfo | Exception]) -> None:
    runner = unity()
    state = reader_over(runner, FakeListing(*tables)).snapshot([orders()]).table(ORDERS)
    assert [column.name for column in state.columns] == ["Id", "B"]
    assert sum("AS JSON" in sql for sql in runner.statements) == 1


def test_a_workspace_that_cannot_be_reached_is_tried_once() -> None:
    listing = FakeListing(TimeoutError())
    reader = reader_over(unity(), listing)
    for _ in range(2):
        assert reader.snapshot([orders()]).table(ORDERS).exists
    assert listing.asked == [("dev", "silver")]


def test_a_listing_of_another_workspace_is_not_believed() -> None:
    views = {**LISTED_ROWS, "tables": [table_row(storage_path="s3://other/orders")]}
    with pytest.raises(
        CatalogReadError, match="shows the location s3://other/orders, the table itself s3://b"
    ):
        reader_over(unity(views, {}), FakeListing(listed())).snapshot([orders()])


def test_streaming_tables_are_told_apart() -> None:
    views: dict[str, Answer] = {"tables": [table_row(table_type="STREAMING_TABLE")]}
    runner = unity(views)
    assert (
        UnityCatalogReader(runner).snapshot([orders()]).table(ORDERS).relation is RelationKind.STREAMING_TABLE
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
    assert str(caught.value) == (
        f"table dev.silver.orders: it exists, but it is {kind} in the format {source_format}, not a Delta "
        "table. Rename the model, or move what is there out of the way. A table that is no longer declared is "
        "forgotten with `delta-engine state rm`."
    )
    assert not any("AS JSON" in sql for sql in runner.statements)


def test_what_the_views_do_not_show_yet_may_be_no_table_either() -> None:
    runner = unity({"tables": [], "columns": []}, {"AS JSON": document(*PLAIN, type="VIEW")})
    with pytest.raises(CatalogReadError, match="it exists, but it is VIEW, not a Delta table"):
        UnityCatalogReader(runner).snapshot_directly([orders()])


LAGGING = (
    " Run it again in a minute: the views of information_schema can lag behind. If it stays, run REPAIR TABLE … "
    "SYNC METADATA."
)
CONNECTED = " Ask for SELECT on the tables that the key connects."
SHAPE: dict[str, Answer] = {"AS JSON": document(("Id", "bigint"), ("B", "geography"))}


@pytest.mark.parametrize(
    ("views", "texts", "message"),
    [
        (
            {"columns": []},
            None,
            "table dev.silver.orders: its columns are not visible to you. Ask for SELECT on it.",
        ),
        (
            {},
            SHAPE,
            "table dev.silver.orders, column B: type 'geography' is not one that the engine can manage: Delta "
            "tables cannot store it. Leave this table out of the models.",
        ),
        (
            {},
            {
                "AS JSON": document(
                    *PLAIN, columns=[{"name": "t", "type": {"name": "string", "collation": "UNICODE_CI"}}]
                )
            },
            "table dev.silver.orders, column t: type 'string collate UNICODE_CI' is not one that the engine can "
            "manage: Delta tables hold the default collation only. Leave this table out of the models.",
        ),
        (
            {},
            {
                "AS JSON": document(
                    *PLAIN, columns=[{"name": "t", "type": {"name": "interval", "start_unit": "day"}}]
                )
            },
            "table dev.silver.orders, column t: type 'interval' is not one that the engine can manage: Delta tables "
            "cannot store it. Leave this table out of the models.",
        ),
        (
            {},
            {"AS JSON": [{"json_metadata": "{}"}]},
            "table dev.silver.orders: its description as JSON is not of the documented form: KeyError('columns'). "
            "Report it, with what DESCRIBE TABLE EXTENDED … AS JSON returns for this table.",
        ),
        (
            {},
            {"AS JSON": []},
            "table dev.silver.orders: the platform describes it with nothing at all. Run it again.",
        ),
        (
            {},
            {"AS JSON": StatementError("no SELECT\nmore", sql="y", error_class="INSUFFICIENT_PERMISSIONS")},
            "table dev.silver.orders: its description may not be read: no SELECT. Ask for SELECT on it.",
        ),
        (
            {"columns": column_rows(("Id", "bigint"))},
            None,
            "table dev.silver.orders: information_schema shows the columns Id, the table itself Id, B."
            + LAGGING,
        ),
        (
            {"columns": column_rows(("Id", "int"), ("B", "date"))},
            None,
            "table dev.silver.orders, column Id: information_schema shows int, comment '', the table itself bigint, "
            "comment ''." + LAGGING,
        ),
        (
            {"columns": [{**row, "is_nullable": None} for row in column_rows(*PLAIN)[:1]]},
            None,
            "table dev.silver.orders, column Id: information_schema.columns has a row that is not whole: "
            "is_nullable is None." + LAGGING,
        ),
        (
            {"table_constraints": [constraint_row("pk", "orders", "PRIMARY KEY")]},
            None,
            "table dev.silver.orders: the columns of its key pk are not visible to you." + CONNECTED,
        ),
        (
            {
                "table_constraints": [constraint_row("fk", "orders", "FOREIGN KEY")],
                "key_column_usage": key_rows("fk", "orders", ["id"], there=[1]),
                "referential_constraints": [reference_row("fk", "pk_hidden", target_schema="secret")],
            },
            None,
            "table dev.silver.orders: what its foreign key fk points at is not visible to you." + CONNECTED,
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
            "table dev.silver.orders: its foreign key fk points at columns that are not shown." + CONNECTED,
        ),
        (
            {"row_filters": [{**TABLE, "filter_name": "f", "target_columns": ""}] * 2},
            None,
            "table dev.silver.orders: it has more than one row filter. Filters that policies bring in cannot be "
            "managed: leave this table out of the models.",
        ),
        (
            {"row_filters": [{**TABLE, "filter_name": "dev.f.g", "columns": ""}]},
            None,
            "information_schema has a view without target_columns or filter_col_usage: its columns are table_schema, "
            "table_name, filter_name, columns. Report it: the view is not as documented.",
        ),
        (
            {"schemata": StatementError("x", sql="y", error_class="NO_SUCH_CATALOG_EXCEPTION")},
            None,
            "catalog 'dev' does not exist or is not visible to you. Create it, ask for USE CATALOG on it, or "
            "correct the variable that names it.",
        ),
    ],
)
def test_it_fails_closed(views: dict[str, Answer], texts: dict[str, Answer] | None, message: str) -> None:
    assert refusal(views, texts) == message


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (a int) USING delta WITH ROW FILTER dev.f.g ON (a)",
        "CREATE TABLE t (a int MASK dev.f.g) USING delta",
        "CREATE TABLE t (a string COLLATE UNICODE) USING delta",
        "CREATE VIEW t AS SELECT 1",
    ],
)
def test_a_create_statement_that_is_not_understood_is_refused(statement: str) -> None:
    texts: dict[str, Answer] = {
        "AS JSON": StatementError("x", sql="y", error_class="PARSE_SYNTAX_ERROR"),
        "SHOW CREATE TABLE": [{"createtab_stmt": statement}],
    }
    assert "what SHOW CREATE TABLE returns is not understood" in refusal(texts=texts)


def test_all_that_cannot_be_read_is_named() -> None:
    views: dict[str, Answer] = {"tables": [table_row(name, table_type="VIEW") for name in ("a", "b")]}
    with pytest.raises(RefusalGroup) as caught:
        UnityCatalogReader(unity(views)).snapshot([orders(name="a"), orders(name="b")])
    assert [refusal.table for refusal in caught.value.refusals] == ["dev.silver.a", "dev.silver.b"]


@pytest.mark.parametrize("where", ["schemata", "key_column_usage", "AS JSON"])
def test_other_errors_of_the_platform_pass_through(where: str) -> None:
    error = StatementError("x", sql="y", error_class="PERMISSION_DENIED" if where != "AS JSON" else "BROKEN")
    with pytest.raises(StatementError):
        read({where: error}, {"AS JSON": error} if where == "AS JSON" else None)


def test_keys_can_point_into_other_catalogs() -> None:
    elsewhere = {**reference_row("fk", "pk"), "unique_constraint_catalog": "OTHER"}
    views: dict[str, Answer] = {
        "table_constraints": [constraint_row("fk", "orders", "FOREIGN KEY")],
        "key_column_usage": [*key_rows("fk", "orders", ["id"], there=[1]), *key_rows("pk", "days", ["day"])],
        "referential_constraints": [elsewhere],
    }
    runner = unity(views)
    state = UnityCatalogReader(runner).snapshot([orders()]).table(ORDERS)
    assert state.foreign_keys == (ForeignKey(["Id"], "other.silver.days", ["day"], "fk"),)
    assert any("FROM `other`.information_schema.key_column_usage" in sql for sql in runner.statements)


def test_tables_are_listed() -> None:
    views: dict[str, Answer] = {"tables": [table_row("b"), table_row("a"), table_row("v", table_type="VIEW")]}
    reader = UnityCatalogReader(unity(views))
    assert [name.table for name in reader.tables_in("DEV", "Silver")] == ["a", "b"]
    assert UnityCatalogReader(unity({"schemata": []})).tables_in("dev", "silver") == ()
