"""The reader of Unity Catalog: what is asked, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError, RefusalGroup, StatementError
from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    PrimaryKey,
    QualifiedName,
    Reference,
    RowFilter,
    Schema,
)
from delta_engine.state.audits import Audit
from delta_engine.state.catalog_reader import readable_snapshot
from delta_engine.state.states import ABSENT, RelationKind, SchemaState
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.builders.error_forms import OF_EVERY_TABLE, OF_ONE_TABLE
from tests.builders.models import ORDERS, orders
from tests.fakes.recorded_catalog import (
    Answer,
    constraint_row,
    key_rows,
    reference_row,
    schema_row,
    table_row,
)
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.unit.state.unity_catalog.catalogs import (
    PLAIN,
    TABLE,
    TAGGED,
    document,
    of_two_tables,
    read,
    state_in,
    unity,
)


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
    table = state.table(ORDERS)
    assert table.columns == (
        Column("Id", "bigint", tags={"k": "v"}),
        Column("B", "date", mask=ColumnMask("dev.f.hide", ["Id"])),
    )
    assert table.table_comment == "Orders table"
    assert table.primary_key == PrimaryKey(("B", "Id"), "pk_x")
    assert table.foreign_keys == (
        ForeignKey(["B"], "dev.gold.days", ["day"], "fk_b"),
        ForeignKey(["Id", "B"], "dev.silver.orders", ["id", "B"], "fk_self"),
    )
    assert table.referenced_by == (Reference(table=QualifiedName("dev", "gold", "lines"), name="fk_in"),)
    assert table.unique_constraints == ("uq",)
    assert table.checks == (CheckConstraint("c", "Id > 0"),)
    assert table.table_properties["a"] == "b"
    assert "clusteringColumns" not in table.table_properties
    assert (table.cluster_by, table.clusters_automatically) == (("B", "Id"), False)
    assert table.partitioned_by == ("B",)
    assert dict(table.tags) == {"pii": "yes", "x": ""}
    assert table.row_filter == RowFilter("dev.f.mine", ["Id", "B"])
    assert table.owner == "data-engineers"
    assert dict(table.grants) == {"readers": ("ALL PRIVILEGES", "SELECT")}
    assert table.location == "s3://bucket/orders"
    assert table.relation is RelationKind.TABLE
    assert table.audit == Audit(
        created_at=datetime(2026, 1, 2, tzinfo=timezone.utc),
        created_by="ann",
        altered_at=datetime(2026, 3, 4, tzinfo=timezone.utc),
        altered_by="bob",
    )
    assert state.schema_states["dev.silver"] == SchemaState(
        comment="Cleansed", tags={"zone": "2"}, owner="platform", grants={"readers": ("USE SCHEMA",)}
    )
    assert state.table(QualifiedName("dev", "silver", "nope")) is ABSENT
    assert state.other_tables == (QualifiedName("dev", "silver", "customers"),)
    views_asked = [sql for sql in runner.statements if "information_schema" in sql]
    assert (len(views_asked), len(runner.statements)) == (13, 14)


def granted(*grants: tuple[str | None, str, str | None]) -> list[Row]:
    return [dict(zip(("Principal", "ActionType", "ObjectType"), row, strict=True)) for row in grants]


def refusing(condition: str) -> StatementError:
    return StatementError("no", sql="SHOW GRANTS", error_class=condition)


SHOWN: dict[str, Answer] = {
    "table_privileges": [{**TABLE, "grantee": "a", "privilege_type": "MODIFY"}],
    "schema_privileges": [{"schema_name": "silver", "grantee": "a", "privilege_type": "CREATE_TABLE"}],
}
GRANTED_TABLE = replace(orders(), grants={"r": ("SELECT",)})
GRANTED_SCHEMA = Schema("dev", "silver", grants={"r": ["USE SCHEMA"]})
INHERITED = (
    *(("s", "SELECT", "SCHEMA"), ("s", "SELECT", "database")),
    *(("all", "BROWSE", "CATALOG"), ("all", "BROWSE", "METASTORE")),
)
BOTH = {"a": ("MODIFY",), "r": ("SELECT",)}


@pytest.mark.parametrize(
    ("answer", "grants"),
    [
        *(
            (granted(("r", "SELECT", kind), *INHERITED), BOTH)
            for kind in ("TABLE", "STREAMING_TABLE", "table", None)
        ),
        (
            [
                {name.lower(): value for name, value in row.items()}
                for row in granted(("r", "SELECT", "TABLE"))
            ],
            BOTH,
        ),
        (
            granted(("ann", "OWN", "TABLE"), ("r", "ALL PRIVILEGES", "TABLE")),
            {"a": ("MODIFY",), "r": ("ALL PRIVILEGES",)},
        ),
        (  # one principal in two spellings
            granted(("A", "SELECT", "TABLE"), ("r", "SELECT", "TABLE")),
            {"a": ("MODIFY", "SELECT"), "r": ("SELECT",)},
        ),
        ([], {"a": ("MODIFY",)}),
        *(
            (refusing(condition), {"a": ("MODIFY",)})
            for condition in ("PARSE_SYNTAX_ERROR", "PERMISSION_DENIED", "TABLE_OR_VIEW_NOT_FOUND")
        ),
    ],
)
def test_show_grants_adds_to_what_the_views_show(answer: Answer, grants: dict[str, Sequence[str]]) -> None:
    texts: dict[str, Answer] = {
        "AS JSON": document(*PLAIN),
        "ON TABLE": answer,
        "ON SCHEMA": granted(("r", "USE_SCHEMA", "DATABASE"), ("all", "BROWSE", "CATALOG")),
    }
    state = UnityCatalogReader(unity(SHOWN, texts)).snapshot([GRANTED_TABLE, GRANTED_SCHEMA])
    assert dict(state.table(ORDERS).grants) == grants
    assert dict(state.schema_states["dev.silver"].grants) == {"a": ("CREATE TABLE",), "r": ("USE SCHEMA",)}


@pytest.mark.parametrize("failure", OF_EVERY_TABLE)
def test_show_grants_that_fails_for_every_table_is_one_failure(failure: str) -> None:
    runner = unity(SHOWN, {"AS JSON": document(*PLAIN), "SHOW GRANTS": OF_EVERY_TABLE[failure]})
    failed = r"^no table can be read \(reading the grants of table dev\.silver\.orders failed\): "
    with pytest.raises(StatementError, match=failed):
        UnityCatalogReader(runner).snapshot([GRANTED_TABLE])


@pytest.mark.parametrize("failure", ["status 500", "timeout", "size", "unreadable answer"])
def test_show_grants_that_fails_for_one_table_refuses_that_table_alone(failure: str) -> None:
    """The views lack grants to other principals: without the answer, these would count as revoked."""
    error = OF_ONE_TABLE[failure]
    runner = of_two_tables({"GRANTS ON TABLE `dev`.`silver`.`a`": error, "SHOW GRANTS": []})
    models = [replace(GRANTED_TABLE, table_name=name) for name in "ab"]
    observed, (refusal,) = readable_snapshot(UnityCatalogReader(runner), models)
    reason = f"its grants cannot be read: {error.first_line}"
    assert (refusal.table, refusal.reason) == ("dev.silver.a", reason)
    assert [*observed.tables] == ["dev.silver.b"]


def test_show_grants_that_fails_for_a_schema_names_it() -> None:
    texts: dict[str, Answer] = {"AS JSON": document(*PLAIN), "SHOW GRANTS": OF_ONE_TABLE["status 500"]}
    with pytest.raises(CatalogReadError, match=r"^schema dev\.silver: its grants cannot be read: "):
        UnityCatalogReader(unity(SHOWN, texts)).snapshot([GRANTED_SCHEMA])


@pytest.mark.parametrize(
    "row",
    [
        {"Principal": "r", "ActionType": "SELECT"},
        {"grantee": "r", "privilege": "SELECT", "ObjectType": "TABLE"},
        *granted((None, "SELECT", "TABLE")),
    ],
)
def test_an_answer_of_show_grants_in_another_shape_refuses_its_object_alone(row: Row) -> None:
    runner = of_two_tables({"ON TABLE `dev`.`silver`.`a`": [row], "ON SCHEMA": [row], "SHOW GRANTS": []})
    models = [replace(GRANTED_TABLE, table_name=name) for name in "ab"]
    with pytest.raises(CatalogReadError) as of_table:
        UnityCatalogReader(runner).snapshot(models)
    assert of_table.value.table == "dev.silver.a"
    assert of_table.value.reason.startswith("SHOW GRANTS ON TABLE `dev`.`silver`.`a` returns another form")
    with pytest.raises(RefusalGroup) as of_both:
        UnityCatalogReader(runner).snapshot([*models, GRANTED_SCHEMA])
    assert [refusal.table for refusal in of_both.value.refusals] == ["dev.silver.a", None]
    assert "SHOW GRANTS ON SCHEMA `dev`.`silver` returns" in str(of_both.value)


def test_all_privileges_stand_for_those_named_beside_them() -> None:
    runner = unity({"table_privileges": [{**TABLE, "grantee": "r", "privilege_type": "ALL_PRIVILEGES"}]})
    UnityCatalogReader(runner).snapshot([replace(orders(), grants={"R": ("ALL PRIVILEGES", "SELECT")})])
    assert not [sql for sql in runner.statements if sql.startswith("SHOW GRANTS")]


def test_it_asks_no_more_than_needed() -> None:
    runner = unity({"tables": []})
    assert state_in(runner) is ABSENT
    assert len(runner.statements) == 4  # what there is of schemas, and that there is no table
    runner = unity({"schemata": []})
    state = UnityCatalogReader(runner).snapshot([orders()])
    assert state.missing_schemas == {("dev", "silver")}
    assert len(runner.statements) == 3  # schemas and tables in parallel, then SHOW SCHEMAS


def test_schemas_can_be_read_that_hold_no_table() -> None:
    runner = unity({"schemata": [schema_row("gold")], "tables": []})
    schemas = [Schema("dev", "gold"), Schema("dev", "bronze")]
    state = UnityCatalogReader(runner).snapshot(schemas)
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
    state = read({"row_filters": [filtered], "column_masks": [masked]})
    assert state.row_filter == RowFilter("dev.f.mine")
    assert state.columns[1].mask == ColumnMask("dev.f.hide")


def test_streaming_tables_are_told_apart() -> None:
    state = read({"tables": [table_row(table_type="STREAMING_TABLE")]})
    assert state.relation is RelationKind.STREAMING_TABLE


def test_keys_can_point_into_other_catalogs() -> None:
    elsewhere = {**reference_row("fk", "pk"), "unique_constraint_catalog": "OTHER"}
    views: dict[str, Answer] = {
        "table_constraints": [constraint_row("fk", "orders", "FOREIGN KEY")],
        "key_column_usage": [*key_rows("fk", "orders", ["id"], there=[1]), *key_rows("pk", "days", ["day"])],
        "referential_constraints": [elsewhere],
    }
    runner = unity(views)
    state = state_in(runner)
    assert state.foreign_keys == (ForeignKey(["Id"], "other.silver.days", ["day"], "fk"),)
    assert any("FROM `other`.information_schema.key_column_usage" in sql for sql in runner.statements)


def test_tables_are_listed() -> None:
    views: dict[str, Answer] = {"tables": [table_row("b"), table_row("a"), table_row("v", table_type="VIEW")]}
    reader = UnityCatalogReader(unity(views))
    assert [name.table for name in reader.relations_in("DEV", {"Silver"}).tables] == ["a", "b"]
    assert UnityCatalogReader(unity({"schemata": []})).relations_in("dev", {"silver"}).tables == ()


def renamed_catalog() -> FakeUnityCatalog:
    """Return a catalog with a filtered and tagged table that was made under another name of the catalog."""
    catalog = FakeUnityCatalog(("dev.silver", "dev.gold", "test.silver"))
    for name in ("dev.silver.orders", "test.silver.orders"):
        catalog.run(f"CREATE TABLE {name} (id BIGINT NOT NULL, CONSTRAINT pk PRIMARY KEY (id)) USING DELTA")
        catalog.run(f"ALTER TABLE {name} SET TAGS ('from' = '{name}')")
        catalog.run(f"ALTER TABLE {name} SET ROW FILTER dev.gov.mine ON (id)")
    catalog.renamed_catalogs = frozenset({"dev"})
    return catalog


def test_a_renamed_catalog_is_read_through_the_views_of_system() -> None:
    reader = UnityCatalogReader(renamed_catalog())
    state = reader.snapshot([orders(), Schema("dev", "gold"), Schema("dev", "bronze")])
    table = state.table(ORDERS)
    assert (table.primary_key, dict(table.tags)) == (PrimaryKey(["id"], "pk"), {"from": "dev.silver.orders"})
    assert table.row_filter == RowFilter("dev.gov.mine", ["id"])
    assert sorted(state.schema_states) == ["dev.gold", "dev.silver"]
    assert state.missing_schemas == {("dev", "bronze")}
    assert reader.relations_in("dev", {"silver"}).tables == (ORDERS,)
