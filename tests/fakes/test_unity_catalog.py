"""The fake Unity Catalog refuses what the real one refuses, and spells as it does."""

from __future__ import annotations

import pytest

from delta_engine.errors import StatementError
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
    Table,
)
from delta_engine.models.types import StructType
from delta_engine.state.states import TableState
from tests.fakes.unity_catalog import FakeUnityCatalog

PARENT = QualifiedName("dev", "silver", "parent")
CHILD = QualifiedName("dev", "silver", "child")

SETUP = [
    "CREATE TABLE dev.silver.parent (`id` BIGINT NOT NULL, `name` STRING, "
    "CONSTRAINT `parent_pk` PRIMARY KEY (`id`)) USING delta",
    "CREATE TABLE dev.silver.child (`id` BIGINT NOT NULL, `parent` BIGINT, `n` INT, `s` struct<a: int, b: string>,"
    " `twice` INT GENERATED ALWAYS AS (n * 2), `no` BIGINT GENERATED ALWAYS AS IDENTITY,"
    " `secret` STRING MASK dev.silver.hide USING COLUMNS (region), `region` STRING, `owned` STRING, `d` DATE,"
    " CONSTRAINT `child_fk` FOREIGN KEY (`parent`) REFERENCES dev.silver.parent (`id`)) USING delta"
    " CLUSTER BY (`d`) WITH ROW FILTER dev.silver.mine ON (owned)"
    " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "CREATE TABLE dev.silver.checked (`id` BIGINT, `n` INT, `s` struct<a: int, b: int, c: int>,"
    " `of_a` INT GENERATED ALWAYS AS (s.a + 1)) USING delta"
    " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "CREATE TABLE dev.silver.committed (`id` INT) USING delta"
    " TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported', 'delta.enableInCommitTimestamps' = 'true')",
    "ALTER TABLE dev.silver.checked ADD CONSTRAINT `Positive` CHECK (id > 0)",
    "CREATE TABLE dev.silver.indexed (`id` INT, s STRUCT<a: INT, b: INT>) USING delta CLUSTER BY (s.a)"
    " TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '2')",
    f"CREATE TABLE dev.silver.outside ({', '.join(f'c{place} INT' for place in range(40))}) USING delta"
    " CLUSTER BY (c31) LOCATION 's3://bucket/outside'",
    "CREATE TABLE dev.silver.versioned (`id` INT, `_commit_version` INT) USING delta",
    "CREATE TABLE dev.silver.fed (`id` INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true',"
    " 'delta.columnMapping.mode' = 'name')",
    "CREATE TABLE dev.silver.parted (`day` DATE, `n` INT) USING delta PARTITIONED BY (`day`)",
]
REFUSED = {
    "ALTER TABLE dev.silver.committed SET TBLPROPERTIES ('delta.enableincommittimestamps' = 'false')": (
        "DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES"
    ),
    "ALTER TABLE dev.silver.committed UNSET TBLPROPERTIES ('delta.inCommitTimestampEnablementVersion')": (
        "DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES"
    ),
    "ALTER TABLE dev.silver.parent SET TBLPROPERTIES ('delta.feature.clustering' = 'enabled')": (
        "DELTA_UNSUPPORTED_FEATURE_STATUS"
    ),
    "CREATE TABLE dev.silver.t (_change_type INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'TRUE')": (
        "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"
    ),
    "ALTER TABLE dev.silver.versioned SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')": (
        "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"
    ),
    "ALTER TABLE dev.silver.fed ADD COLUMNS (_commit_timestamp INT)": "RESERVED_CDC_COLUMNS_ON_WRITE",
    "ALTER TABLE dev.silver.fed RENAME COLUMN id TO _change_type": "RESERVED_CDC_COLUMNS_ON_WRITE",
    "CREATE TABLE dev.silver.t (`a` INTERVAL) USING delta": "DELTA_UNSUPPORTED_DATA_TYPES",
    "CREATE TABLE dev.silver.t (`a` nope) USING delta": "UNSUPPORTED_DATATYPE",
    "CREATE TABLE dev.silver.parent (`id` INT) USING delta": "TABLE_OR_VIEW_ALREADY_EXISTS",
    "CREATE TABLE dev.gold.t (`id` INT) USING delta": "SCHEMA_NOT_FOUND",
    "CREATE TABLE dev.silver.t (`a` INT, `A` INT) USING delta": "COLUMN_ALREADY_EXISTS",
    "CREATE TABLE dev.silver.t (`a` INT DEFAULT 1) USING delta": "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
    "CREATE TABLE dev.silver.t (`a b` INT) USING delta": "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAME",
    "CREATE TABLE dev.silver.t (`a` INT, CONSTRAINT k PRIMARY KEY (`a`)) USING delta": "INVALID_PARAMETER_VALUE",
    "CREATE TABLE dev.silver.t (`a` BIGINT, CONSTRAINT k FOREIGN KEY (`a`) REFERENCES dev.silver.t (a)) USING delta": (
        "TABLE_OR_VIEW_NOT_FOUND"
    ),
    "CREATE TABLE dev.silver.t (`a` INT GENERATED ALWAYS AS IDENTITY) USING delta": (
        "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE"
    ),
    "CREATE TABLE dev.silver.t (`a` INT) USING delta PARTITIONED BY (a)": "ALL_PARTITION_COLUMNS_NOT_ALLOWED",
    "ALTER TABLE dev.silver.nowhere SET TAGS ('a' = 'b')": "TABLE_OR_VIEW_NOT_FOUND",
    "ALTER TABLE dev.silver.parent DROP COLUMNS (name)": "DELTA_UNSUPPORTED_DROP_COLUMN",
    "ALTER TABLE dev.silver.parent RENAME COLUMN name TO n": "DELTA_UNSUPPORTED_RENAME_COLUMN",
    "ALTER TABLE dev.silver.checked DROP COLUMNS (id)": "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
    "ALTER TABLE dev.silver.checked RENAME COLUMN id TO x": "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
    "ALTER TABLE dev.silver.checked DROP COLUMNS (s.a)": "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
    "ALTER TABLE dev.silver.checked RENAME COLUMN s.a TO x": "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
    "ALTER TABLE dev.silver.checked RENAME COLUMN s TO x": "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
    "ALTER TABLE dev.silver.child DROP COLUMNS (n)": "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
    "ALTER TABLE dev.silver.child DROP COLUMNS (d)": "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
    "ALTER TABLE dev.silver.child DROP COLUMNS (parent)": "INVALID_PARAMETER_VALUE",
    "ALTER TABLE dev.silver.child DROP COLUMNS (owned)": "ROW_LEVEL_SECURITY_INCOMPATIBLE_SCHEMA_CHANGE",
    "ALTER TABLE dev.silver.child DROP COLUMNS (region)": "COLUMN_MASKS_INCOMPATIBLE_SCHEMA_CHANGE",
    "ALTER TABLE dev.silver.child DROP COLUMNS (s.a, s.b)": "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
    "ALTER TABLE dev.silver.child DROP COLUMNS (s.c)": "FIELD_NOT_FOUND",
    "ALTER TABLE dev.silver.child ADD COLUMNS (x INT NOT NULL)": "DELTA_OPERATION_NOT_ALLOWED",
    "ALTER TABLE dev.silver.child ADD COLUMNS (x INT DEFAULT 1)": (
        "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED"
    ),
    "ALTER TABLE dev.silver.child ADD COLUMNS (N INT)": "FIELD_ALREADY_EXISTS",
    "ALTER TABLE dev.silver.child ADD COLUMNS (s.A INT)": "FIELD_ALREADY_EXISTS",
    "ALTER TABLE dev.silver.child ADD COLUMNS (x TIMESTAMP_NTZ)": "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
    "ALTER TABLE dev.silver.child ALTER COLUMN d TYPE STRING": "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
    "ALTER TABLE dev.silver.child ALTER COLUMN s.a TYPE BIGINT": "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
    "ALTER TABLE dev.silver.child ALTER COLUMN parent TYPE DECIMAL(20,0)": "INVALID_PARAMETER_VALUE",
    "ALTER TABLE dev.silver.parent ALTER COLUMN id DROP NOT NULL": "INVALID_PARAMETER_VALUE",
    "ALTER TABLE dev.silver.child ALTER COLUMN d SET NOT NULL": "DELTA_NEW_NOT_NULL_VIOLATION",
    "ALTER TABLE dev.silver.child ALTER COLUMN d COMMENT 'x', D DROP NOT NULL": "NOT_SUPPORTED_CHANGE_SAME_COLUMN",
    "ALTER TABLE dev.silver.child ALTER COLUMN no COMMENT 'x'": "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED",
    "ALTER TABLE dev.silver.child ALTER COLUMN n SET DEFAULT 1": "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
    "ALTER TABLE dev.silver.parent DROP CONSTRAINT parent_pk": "INVALID_PARAMETER_VALUE",
    "ALTER TABLE dev.silver.parent DROP CONSTRAINT PARENT_PK": "CONSTRAINT_DOES_NOT_EXIST",
    "ALTER TABLE dev.silver.parent ADD CONSTRAINT Child_FK FOREIGN KEY (id) REFERENCES dev.silver.parent (id)": (
        "INVALID_PARAMETER_VALUE"
    ),
    "ALTER TABLE dev.silver.child ADD CONSTRAINT k FOREIGN KEY (n) REFERENCES dev.silver.parent (id)": (
        "INVALID_PARAMETER_VALUE"
    ),
    "ALTER TABLE dev.silver.child ADD CONSTRAINT k FOREIGN KEY (id) REFERENCES dev.silver.parent (name)": (
        "FOREIGN_KEY_MISMATCH"
    ),
    "ALTER TABLE dev.silver.child ADD CONSTRAINT k FOREIGN KEY (id) REFERENCES dev.silver.parted (day)": (
        "INVALID_PARAMETER_VALUE"
    ),
    "ALTER TABLE dev.silver.checked ADD CONSTRAINT positive CHECK (n > 0)": "DELTA_CONSTRAINT_ALREADY_EXISTS",
    "ALTER TABLE dev.silver.checked ADD CONSTRAINT k CHECK (nothing > 0)": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    "ALTER TABLE dev.silver.checked ADD CONSTRAINT k CHECK (n > :x)": "UNBOUND_SQL_PARAMETER",
    "ALTER TABLE dev.silver.checked ADD CONSTRAINT k CHECK (max(n) > 0)": "INVALID_WHERE_CONDITION",
    "ALTER TABLE dev.silver.checked ADD CONSTRAINT k CHECK (explode(n) > 0)": "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT",
    "ALTER TABLE dev.silver.checked ADD CONSTRAINT k CHECK (n IN (SELECT 1))": None,
    "ALTER TABLE dev.silver.checked ADD CONSTRAINT k CHECK (struct(*) IS NULL)": "INVALID_USAGE_OF_STAR_OR_REGEX",
    "ALTER TABLE dev.silver.checked ADD CONSTRAINT k CHECK (1)": "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
    "ALTER TABLE dev.silver.child CLUSTER BY (id, n, parent, region, owned)": "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
    "ALTER TABLE dev.silver.child CLUSTER BY (s)": "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
    "ALTER TABLE dev.silver.indexed CLUSTER BY (s.b)": "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
    "ALTER TABLE dev.silver.outside CLUSTER BY (c32)": "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
    "ALTER TABLE dev.silver.parted CLUSTER BY (n)": "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
    "ALTER TABLE dev.silver.child SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')": (
        "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"
    ),
    "ALTER TABLE dev.silver.child UNSET TBLPROPERTIES IF EXISTS ('delta.minReaderVersion')": None,
    "ALTER TABLE dev.silver.child SET TAGS ('a.b' = 'c')": "INVALID_PARAMETER_VALUE",
    "ALTER TABLE dev.silver.child SET ROW FILTER f ON (nothing)": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    "ALTER TABLE dev.silver.child SET ROW FILTER f ON (n, n)": "ROW_LEVEL_SECURITY_DUPLICATE_COLUMN_NAME",
    "ALTER TABLE dev.silver.child ALTER COLUMN n SET MASK f USING COLUMNS (n)": (
        "COLUMN_MASKS_USING_COLUMN_NAME_SAME_AS_TARGET_COLUMN"
    ),
    "ALTER TABLE dev.silver.child RENAME TO dev.silver.parent": "TABLE_OR_VIEW_ALREADY_EXISTS",
    "ALTER TABLE dev.silver.child RENAME TO other.silver.child": "SCHEMA_NOT_FOUND",
    "DROP TABLE dev.silver.nothing": "TABLE_OR_VIEW_NOT_FOUND",
    "ALTER TABLE dev.silver.child ADD CONSTRAINT k CHECK (id > 0)": None,
    "ALTER TABLE dev.silver.checked SET ROW FILTER f ON (n)": None,
    "ALTER TABLE dev.silver.checked ALTER COLUMN n SET MASK f": None,
    "GRANT USE SCHEMA ON TABLE dev.silver.parent TO `team`": "INVALID_PARAMETER_VALUE",
    "CREATE SCHEMA dev.silver": "SCHEMA_ALREADY_EXISTS",
    "VACUUM dev.silver.child": "PARSE_SYNTAX_ERROR",
    "ALTER TABLE dev.silver.child ALTER COLUMN a COMMENT 'x', COLUMN b COMMENT 'y'": "PARSE_SYNTAX_ERROR",
}


def filled() -> FakeUnityCatalog:
    """Return a catalog in which something stands in every change's way."""
    catalog = FakeUnityCatalog(governed_tags=["pii"])
    for sql in SETUP:
        catalog.run(sql)
    catalog.put_nulls(CHILD, "d", 3)
    return catalog


def read(catalog: FakeUnityCatalog, name: QualifiedName) -> TableState:
    model = Table(name.catalog, name.schema, name.table, [])
    return catalog.snapshot([model]).table(name)


@pytest.mark.parametrize("sql", REFUSED)
def test_it_refuses_and_changes_nothing(sql: str) -> None:
    catalog = filled()
    before = dict(catalog.tables)
    with pytest.raises(StatementError) as refusal:
        catalog.run(sql)
    assert refusal.value.error_class == REFUSED[sql]
    assert catalog.tables == before
    assert catalog.statements == SETUP


def test_governed_tags_block_the_drop_of_their_column() -> None:
    catalog = filled()
    catalog.run("ALTER TABLE dev.silver.child ALTER COLUMN s SET TAGS ('pii' = 'yes')")
    with pytest.raises(StatementError):
        catalog.run("ALTER TABLE dev.silver.child DROP COLUMNS (s)")
    catalog.run("ALTER TABLE dev.silver.child ALTER COLUMN s UNSET TAGS ('pii')")
    catalog.run("ALTER TABLE dev.silver.child DROP COLUMNS (s)")


def test_what_was_written_is_read() -> None:
    catalog = filled()
    state = read(catalog, CHILD)
    by_name = {column.name: column for column in state.columns}
    assert by_name["twice"].generated_as == "n * 2"
    assert by_name["no"].identity == Identity()
    assert by_name["secret"].mask == ColumnMask("dev.silver.hide", ["region"])
    assert by_name["s"] == Column("s", "struct<a: int, b: string>")
    assert state.row_filter == RowFilter("dev.silver.mine", ["owned"])
    assert state.cluster_by == ("d",)
    assert state.foreign_keys == (ForeignKey(["parent"], "dev.silver.parent", ["id"], "child_fk"),)
    assert state.table_properties["delta.columnMapping.mode"] == "name"
    checked = read(catalog, QualifiedName("dev", "silver", "checked"))
    assert checked.checks == (CheckConstraint("positive", "( id > 0 )"),)
    assert read(catalog, PARENT).referenced_by == (Reference(table=CHILD, name="child_fk"),)


def test_text_and_names_survive_whatever_is_in_them() -> None:
    catalog = FakeUnityCatalog()
    catalog.run(
        "CREATE TABLE `dev`.`Silver`.`it``s, a -- table` (`a, ``b` struct<`x)`: int COMMENT 'it\\'s, (\\n$\\{x}'> "
        "COMMENT 'a \\\\ b, `c` 🎉 -- d') USING delta COMMENT 'x' "
        "TBLPROPERTIES ('k, = \\'' = 'v)', 'delta.columnMapping.mode' = 'name')"
    )
    state = read(catalog, QualifiedName("dev", "silver", "it`s, a -- table"))
    (column,) = state.columns
    assert column.name == "a, `b"
    assert column.comment == "a \\ b, `c` 🎉 -- d"
    assert isinstance(column.data_type, StructType)
    assert column.data_type.fields[0].name == "x)"
    assert column.data_type.fields[0].comment == "it's, (\n${x}"
    assert state.table_properties["k, = '"] == "v)"


@pytest.mark.parametrize("clustering", ["(`day`)", "AUTO"])
def test_a_table_that_was_ever_clustered_is_not_replaced_by_a_partitioned_one(clustering: str) -> None:
    catalog = FakeUnityCatalog()
    catalog.run(f"CREATE TABLE dev.silver.t (`day` DATE, `n` INT) USING delta CLUSTER BY {clustering}")
    rewrite = "CREATE OR REPLACE TABLE dev.silver.t USING delta{} AS SELECT * FROM dev.silver.t"
    for sql in ("ALTER TABLE dev.silver.t CLUSTER BY NONE", rewrite.format("")):
        catalog.run(sql)
        with pytest.raises(StatementError) as refusal:
            catalog.run(rewrite.format(" PARTITIONED BY (`day`)"))
        assert refusal.value.error_class == "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE"


def test_a_rewrite_loses_unique_constraints_that_the_views_show() -> None:
    catalog = filled()
    catalog.run("ALTER TABLE dev.silver.parent ADD CONSTRAINT One_Name UNIQUE (name)")
    view = "SELECT constraint_name, constraint_type FROM dev.information_schema.table_constraints"
    assert {"constraint_name": "one_name", "constraint_type": "UNIQUE"} in catalog.run(view)
    assert read(catalog, PARENT).unique_constraints == ("one_name",)
    catalog.run("CREATE OR REPLACE TABLE dev.silver.parent USING delta AS SELECT * FROM dev.silver.parent")
    assert read(catalog, PARENT).unique_constraints == ()


def test_unique_constraints_are_dropped_by_name() -> None:
    catalog = filled()
    catalog.run("ALTER TABLE dev.silver.parent ADD CONSTRAINT one_name UNIQUE (name)")
    catalog.run("ALTER TABLE dev.silver.parent DROP CONSTRAINT one_name")
    assert read(catalog, PARENT).unique_constraints == ()


def test_renaming_a_keys_column_takes_keys_away_without_a_word() -> None:
    catalog = filled()
    catalog.run("ALTER TABLE dev.silver.parent SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    catalog.run("ALTER TABLE dev.silver.parent RENAME COLUMN id TO key")
    assert read(catalog, PARENT).primary_key is None
    assert read(catalog, CHILD).foreign_keys == ()


def test_foreign_keys_follow_a_renamed_table() -> None:
    catalog = filled()
    catalog.run("ALTER TABLE dev.silver.parent RENAME TO dev.silver.Ancestor")
    assert read(catalog, CHILD).foreign_keys[0].references == "dev.silver.ancestor"
    assert read(catalog, QualifiedName("dev", "silver", "ancestor")).primary_key == PrimaryKey(
        ["id"], "parent_pk"
    )


def test_fields_beside_one_that_is_read_change_freely() -> None:
    catalog = filled()
    catalog.run("ALTER TABLE dev.silver.checked DROP COLUMNS (s.b)")
    catalog.run("ALTER TABLE dev.silver.checked RENAME COLUMN s.c TO d")
    columns = read(catalog, QualifiedName("dev", "silver", "checked")).columns
    assert [column for column in columns if column.name == "s"] == [Column("s", "struct<a: int, d: int>")]


def test_rely_cannot_be_read_back() -> None:
    catalog = FakeUnityCatalog()
    catalog.run(
        "CREATE TABLE dev.silver.parent (`id` INT NOT NULL, "
        "CONSTRAINT K PRIMARY KEY (id) NOT ENFORCED RELY) USING delta"
    )
    assert read(catalog, PARENT).primary_key == PrimaryKey(["id"], "k")
    assert catalog.tables[PARENT.key].state.primary_key == PrimaryKey(["id"], "k", rely=True)


def test_columns_move_and_fields_change() -> None:
    catalog = filled()
    for sql in (
        "ALTER TABLE dev.silver.child ADD COLUMNS (s.c array<struct<x: int>> COMMENT 'c', z INT)",
        "ALTER TABLE dev.silver.child ADD COLUMNS (s.c.element.y STRING)",
        "ALTER TABLE dev.silver.child RENAME COLUMN s.b TO b2",
        "ALTER TABLE dev.silver.child ALTER COLUMN s.b2 COMMENT 'new', z COMMENT 'last'",
        "ALTER TABLE dev.silver.child ALTER COLUMN z FIRST",
        "ALTER TABLE dev.silver.child ALTER COLUMN region AFTER id",
        "ALTER TABLE dev.silver.child DROP COLUMNS (s.a)",
    ):
        catalog.run(sql)
    state = read(catalog, CHILD)
    assert [column.name for column in state.columns][:3] == ["z", "id", "region"]
    (struct_column,) = [column for column in state.columns if column.name == "s"]
    wanted = Column("s", "struct<b2: string COMMENT 'new', c: array<struct<x: int, y: string>> COMMENT 'c'>")
    assert struct_column == wanted


def test_schemas_and_grants() -> None:
    catalog = filled()
    for sql in (
        "CREATE SCHEMA dev.Gold",
        "COMMENT ON SCHEMA dev.gold IS 'it\\'s'",
        "ALTER SCHEMA dev.gold SET TAGS ('a' = 'b', 'c' = '')",
        "ALTER SCHEMA dev.gold UNSET TAGS ('c')",
        "ALTER SCHEMA dev.gold OWNER TO `the team`",
        "GRANT USE SCHEMA, SELECT ON SCHEMA dev.gold TO `a`",
        "REVOKE SELECT ON SCHEMA dev.gold FROM `a`",
        "GRANT SELECT, MODIFY ON TABLE dev.silver.parent TO `b`",
        "REVOKE SELECT, MODIFY ON TABLE dev.silver.parent FROM `b`",
    ):
        catalog.run(sql)
    schema = catalog.schemas["dev.gold"]
    assert (schema.comment, schema.tags, schema.owner) == ("it's", {"a": "b"}, "the team")
    assert schema.grants == {"a": ("USE SCHEMA",)}
    assert read(catalog, PARENT).grants == {}
