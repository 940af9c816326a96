"""The reader's real queries, run by Spark against the Unity Catalog in miniature: what was stated is what is read."""

from __future__ import annotations

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
from delta_engine.orchestrate.backend import databricks_backend
from delta_engine.state.states import CatalogState, RelationKind, SchemaState, TableState
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.builders import orders
from tests.integration.unity_catalog import MiniatureUnityCatalog

pytestmark = pytest.mark.integration

STATEMENTS = """
CREATE TABLE `dev`.`silver`.`days` (
  `day` date NOT NULL,
  CONSTRAINT `pk_days` PRIMARY KEY (`day`)
) USING delta;
CREATE TABLE `dev`.`silver`.`orders` (
  `Id` bigint NOT NULL GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2) COMMENT 'Order ID',
  `placed` timestamp,
  `day` date GENERATED ALWAYS AS (CAST(placed AS DATE)),
  `email` string DEFAULT 'nobody' MASK dev.f.hide USING COLUMNS (`Id`, `day`),
  CONSTRAINT `pk_orders` PRIMARY KEY (`Id`) NOT ENFORCED RELY,
  CONSTRAINT `fk_day` FOREIGN KEY (`day`) REFERENCES `dev`.`silver`.`days` (`day`),
  CONSTRAINT `fk_self` FOREIGN KEY (`Id`) REFERENCES `dev`.`silver`.`orders` (`Id`)
)
USING delta
CLUSTER BY (`day`, `Id`)
COMMENT 'Orders table'
LOCATION 's3://bucket/orders'
WITH ROW FILTER dev.f.mine ON (`Id`)
TBLPROPERTIES ('team' = 'retail');
CREATE SCHEMA dev.gold;
CREATE TABLE `dev`.`gold`.`lines` (`o` bigint NOT NULL, `n` int) USING delta PARTITIONED BY (`n`);
ALTER TABLE `dev`.`gold`.`lines` ADD CONSTRAINT `fk_in` FOREIGN KEY (`o`) REFERENCES `dev`.`silver`.`orders` (`Id`);
ALTER TABLE `dev`.`gold`.`lines` CLUSTER BY AUTO;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `positive` CHECK (Id > 0);
ALTER TABLE `dev`.`silver`.`orders` SET TAGS ('pii' = 'it\\'s', 'zone' = '');
ALTER TABLE `dev`.`silver`.`orders` UNSET TAGS ('zone');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `email` SET TAGS ('kind' = 'mail');
ALTER TABLE `dev`.`silver`.`orders` OWNER TO `data engineers`;
GRANT SELECT, MODIFY ON TABLE `dev`.`silver`.`orders` TO `readers`;
REVOKE MODIFY ON TABLE `dev`.`silver`.`orders` FROM `readers`;
COMMENT ON SCHEMA `dev`.`silver` IS 'Cleansed';
ALTER SCHEMA `dev`.`silver` SET TAGS ('layer' = '2');
ALTER SCHEMA `dev`.`silver` OWNER TO `platform`;
GRANT USE SCHEMA ON SCHEMA `dev`.`silver` TO `readers`
"""

ORDERS = TableState(
    columns=(
        Column("Id", "bigint", False, "Order ID", identity=Identity(5, 2)),
        Column("placed", "timestamp"),
        Column("day", "date", generated_as="CAST(placed AS DATE)"),
        Column(
            "email",
            "string",
            default="'nobody'",
            tags={"kind": "mail"},
            mask=ColumnMask("dev.f.hide", ["Id", "day"]),
        ),
    ),
    table_comment="Orders table",
    table_properties={
        "team": "retail",
        "delta.constraints.positive": "Id > 0",
        "delta.feature.generatedColumns": "supported",
        "delta.feature.identityColumns": "supported",
    },
    primary_key=PrimaryKey(["Id"], "pk_orders"),
    foreign_keys=(
        ForeignKey(["day"], "dev.silver.days", ["DAY"], "fk_day"),
        ForeignKey(["Id"], "dev.silver.orders", ["ID"], "fk_self"),
    ),
    checks=(CheckConstraint("positive", "Id > 0"),),
    cluster_by=("day", "Id"),
    tags={"pii": "it's"},
    row_filter=RowFilter("dev.f.mine", ["Id"]),
    owner="data engineers",
    grants={"readers": ("SELECT",)},
    location="s3://bucket/orders",
    referenced_by=(Reference(table=QualifiedName("dev", "gold", "lines"), name="fk_in"),),
)


def stated(catalog: MiniatureUnityCatalog) -> tuple[CatalogState, CatalogState]:
    """Run the statements, and return what is read then, in bulk and directly."""
    for statement in STATEMENTS.split(";\n"):
        catalog.run(statement.strip())
    reader = UnityCatalogReader(catalog)
    models = [orders(), Table("dev", "gold", "lines", ())]
    return reader.snapshot(models, [Schema("dev", "silver")]), reader.snapshot_directly(models)


@pytest.mark.parametrize("knows_json", [True, False])
def test_everything_that_is_stated_is_read(unity_catalog: MiniatureUnityCatalog, knows_json: bool) -> None:
    unity_catalog.knows_json = knows_json
    for state in stated(unity_catalog):
        assert state.tables["dev.silver.orders"] == ORDERS
        lines = state.tables["dev.gold.lines"]
        assert (lines.clusters_automatically, lines.partitioned_by) == (True, ("n",))
        assert state.schema_states == {
            "dev.silver": SchemaState(
                comment="Cleansed",
                tags={"layer": "2"},
                owner="platform",
                grants={"readers": ("USE SCHEMA",)},
            ),
            "dev.gold": SchemaState(owner="ann"),
        }
        assert [name.table for name in state.other_tables] == ["days"]


def test_what_was_just_made_is_read_directly_while_the_views_lag_behind(
    unity_catalog: MiniatureUnityCatalog,
) -> None:
    backend = databricks_backend(unity_catalog)
    unity_catalog.run("CREATE TABLE `dev`.`silver`.`orders` (`id` bigint COMMENT 'a') USING delta")
    assert backend.reader.snapshot([orders()]).tables["dev.silver.orders"].exists
    unity_catalog.is_lagging = True
    unity_catalog.run("ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` COMMENT 'b'")
    unity_catalog.run("CREATE TABLE `dev`.`silver`.`new` (`id` bigint) USING delta")
    state = backend.reader.snapshot_directly([orders(), orders(name="new"), orders(name="none")])
    assert state.tables["dev.silver.orders"].columns == (Column("id", "bigint", comment="b"),)
    assert state.tables["dev.silver.new"].columns == (Column("id", "bigint"),)
    assert not state.tables["dev.silver.none"].exists


def test_a_streaming_table_is_read_as_one(unity_catalog: MiniatureUnityCatalog) -> None:
    unity_catalog.run("CREATE TABLE `dev`.`silver`.`orders` (`id` bigint) USING delta")
    unity_catalog.streaming_tables.add("dev.silver.orders")
    state = UnityCatalogReader(unity_catalog).snapshot([orders()])
    assert state.tables["dev.silver.orders"].relation is RelationKind.STREAMING_TABLE
