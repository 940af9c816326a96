"""The reader returns what the statements said, in bulk and directly, on every runtime."""

from dataclasses import replace

import pytest

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
    Table,
)
from delta_engine.state.states import SchemaState, TableState
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.builders.models import orders
from tests.fakes.unity_catalog.example import catalog_of_everything

ORDERS = TableState(
    columns=(
        Column("Id", "bigint", False, "Order ID", identity=Identity(5, 2)),
        Column("placed", "timestamp"),
        Column("day", "date", generated_as="CAST(placed AS DATE)"),
        Column(
            "email",
            "string",
            default="( 'nobody' )",
            tags={"kind": "mail"},
            mask=ColumnMask("dev.f.hide", ["Id", "day"]),
        ),
    ),
    table_comment="Orders table",
    primary_key=PrimaryKey(["Id"], "pk_orders"),
    foreign_keys=(
        ForeignKey(["day"], "dev.silver.days", ["day"], "fk_day"),
        ForeignKey(["Id"], "dev.silver.orders", ["id"], "fk_self"),
    ),
    cluster_by=("day", "Id"),
    tags={"pii": "it's"},
    row_filter=RowFilter("dev.f.mine", ["Id"]),
    owner="data engineers",
    grants={"readers": ("SELECT",)},
    location="s3://bucket/orders",
    referenced_by=(Reference(table=QualifiedName("dev", "gold", "lines"), name="fk_in"),),
)


@pytest.mark.parametrize("knows_json", [True, False])
def test_what_the_statements_said_is_read(knows_json: bool) -> None:
    catalog = catalog_of_everything()
    catalog.knows_json = knows_json
    reader = UnityCatalogReader(catalog)
    models = [orders(), *(Table("dev", "gold", name, ()) for name in ("lines", "parts"))]
    for state in (reader.snapshot([*models, Schema("dev", "silver")]), reader.snapshot_directly(models)):
        table = state.tables["dev.silver.orders"]
        assert replace(table, table_properties={}) == ORDERS
        assert table.table_properties["team"] == "retail"
        assert state.tables["dev.gold.parts"].partitioned_by == ("n",)
        lines = state.tables["dev.gold.lines"]
        assert lines.clusters_automatically
        assert lines.checks == (CheckConstraint("positive", "( o > 0 )"),)
        silver = SchemaState(
            comment="Cleansed", tags={"layer": "2"}, owner="platform", grants={"readers": ("USE SCHEMA",)}
        )
        assert state.schema_states == {"dev.silver": silver, "dev.gold": SchemaState(owner="ann@example.com")}
        assert [name.table for name in state.other_tables] == ["days"]
