"""Both readers of tables by path say the same: the one of logs through deltalake, and the one through Spark."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import Identity, QualifiedName
from delta_engine.orchestrate.backend import embedded_backend
from delta_engine.state.catalog_reader import bare_model
from delta_engine.state.delta_log_reader import KNOWN_FEATURES, DeltaLogReader
from delta_engine.state.spark_delta_reader import SparkDeltaReader
from delta_engine.state.states import TableState
from delta_engine.state.table_descriptions import described_state
from delta_engine.state.table_queries import TableQueries

TABLE = QualifiedName("dev", "silver", "t")
MAPPED = "'delta.columnMapping.mode' = 'name'"
MANY_COMMITS = tuple(f"INSERT INTO {{t}} VALUES ({number})" for number in range(4))

KINDS: dict[str, tuple[str, ...]] = {
    "plain": ("CREATE TABLE {t} (a INT NOT NULL COMMENT 'it\\'s', b STRING) USING delta COMMENT 'x\\ny'",),
    "properties": (
        "CREATE TABLE {t} (a INT) USING delta TBLPROPERTIES ('k' = 'v ü', 'delta.appendOnly' = 'true', 'path' = '/x')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('k' = '', 'password' = 'p', 'delta.enableChangeDataFeed' = 'true')",
        "ALTER TABLE {t} UNSET TBLPROPERTIES ('delta.appendOnly')",
        "COMMENT ON TABLE {t} IS ''",
    ),
    "every type": (
        "CREATE TABLE {t} (a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(38,18), "
        "i STRING, j CHAR(3), k VARCHAR(40), l BINARY, m DATE, n TIMESTAMP, o TIMESTAMP_NTZ, p VARIANT, "
        "q ARRAY<VARCHAR(3)>, r MAP<STRING, ARRAY<DECIMAL(3,1)>>, "
        "s ARRAY<STRUCT<a: CHAR(2), b: MAP<VARCHAR(3), INT>>>, "
        "u STRUCT<a: INT NOT NULL COMMENT 'it\\'s', b: ARRAY<STRUCT<c: DATE, d: TIMESTAMP_NTZ>>>, v VOID) USING delta",
    ),
    "mapped, renamed and dropped columns": (
        f"CREATE TABLE {{t}} (a INT, b STRUCT<x: INT, y: INT>, c INT) USING delta TBLPROPERTIES ({MAPPED})",
        "ALTER TABLE {t} RENAME COLUMN a TO `a b.c``d`",
        "ALTER TABLE {t} RENAME COLUMN b.x TO z",
        "ALTER TABLE {t} DROP COLUMNS (c)",
        "ALTER TABLE {t} ADD COLUMNS (n INT COMMENT 'new' AFTER b)",
    ),
    "mapping switched on later": (
        "CREATE TABLE {t} (a INT) USING delta",
        "INSERT INTO {t} VALUES (1)",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({MAPPED})",
        "ALTER TABLE {t} RENAME COLUMN a TO b",
    ),
    "mapping by id": (
        "CREATE TABLE {t} (a INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'id')",
    ),
    "partitions": (
        f"CREATE TABLE {{t}} (a INT, `# d``ay` DATE, c STRING) USING delta PARTITIONED BY (`# d``ay`, c) "
        f"TBLPROPERTIES ({MAPPED})",
        "INSERT INTO {t} VALUES (1, DATE'2024-01-01', 'x')",
        "ALTER TABLE {t} RENAME COLUMN c TO d",
    ),
    "checks and defaults": (
        "CREATE TABLE {t} (a INT DEFAULT 7, b TIMESTAMP DEFAULT current_timestamp()) USING delta "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (a > 0)",
        "ALTER TABLE {t} ADD CONSTRAINT delta_engine_not_null_b CHECK (b IS NOT NULL)",
        "ALTER TABLE {t} ALTER COLUMN a DROP DEFAULT",
    ),
    "keys": (
        "CREATE TABLE {t} (a INT) USING delta TBLPROPERTIES ('delta_engine.constraint.t_pk' = "
        '\'{"type": "primary_key", "columns": ["a"]}\')',
    ),
    "features": (
        "CREATE TABLE {t} (a INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
        "'delta.enableRowTracking' = 'true', 'delta.enableTypeWidening' = 'true')",
        "INSERT INTO {t} VALUES (1), (2)",
        "DELETE FROM {t} WHERE a = 1",
        "ALTER TABLE {t} ALTER COLUMN a TYPE BIGINT",
    ),
    "in-commit timestamps": (
        "CREATE TABLE {t} (a INT) USING delta TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        "INSERT INTO {t} VALUES (1)",
    ),
    "Iceberg compatibility": (
        f"CREATE TABLE {{t}} (a INT) USING delta TBLPROPERTIES ({MAPPED}, 'delta.enableIcebergCompatV2' = 'true')",
    ),
    "checkpoints": (
        "CREATE TABLE {t} (a INT) USING delta COMMENT 'c' TBLPROPERTIES ('delta.checkpointInterval' = '2')",
        *MANY_COMMITS,
        "OPTIMIZE {t}",
    ),
    "checkpoints of version 2": (
        "CREATE TABLE {t} (a INT) USING delta TBLPROPERTIES ('delta.checkpointInterval' = '2', "
        "'delta.checkpointPolicy' = 'v2')",
        *MANY_COMMITS,
    ),
    "clustering": (
        f"CREATE TABLE {{t}} (a INT, b STRUCT<x: INT, y: DATE>) USING delta CLUSTER BY (a, b.x) "
        f"TBLPROPERTIES ({MAPPED})",
        "ALTER TABLE {t} RENAME COLUMN a TO `c.d`",
        "INSERT INTO {t} VALUES (1, NULL)",
    ),
    "clustering changed": (
        "CREATE TABLE {t} (a INT, b INT) USING delta CLUSTER BY (a)",
        "ALTER TABLE {t} CLUSTER BY (b, a)",
    ),
    "clustering removed": (
        "CREATE TABLE {t} (a INT) USING delta CLUSTER BY (a)",
        "ALTER TABLE {t} CLUSTER BY NONE",
    ),
    "clustering replaced": (
        "CREATE TABLE {t} (a INT) USING delta CLUSTER BY (a)",
        "CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS a, 2 AS b",
    ),
    "clustering restored": (
        "CREATE TABLE {t} (a INT, b INT) USING delta CLUSTER BY (a)",
        "INSERT INTO {t} VALUES (1, 2)",
        "ALTER TABLE {t} CLUSTER BY (b)",
        "RESTORE TABLE {t} TO VERSION AS OF 1",
    ),
    "a dropped feature": (
        "CREATE TABLE {t} (a INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "ALTER TABLE {t} DROP FEATURE deletionVectors",
    ),
    "replaced by a query": (
        "CREATE TABLE {t} (a INT NOT NULL COMMENT 'x') USING delta COMMENT 'c'",
        "INSERT INTO {t} VALUES (1)",
        "CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (b) AS SELECT a, 1 AS b FROM {t}",
    ),
}
"""What makes each kind of table; `{t}` is its address."""

SLOW = ("a dropped feature", "clustering restored")

ONLY_SPARK: dict[str, tuple[str, ...]] = {
    "no columns": ("CREATE TABLE {t} USING delta",),
    "an unknown feature": (
        "CREATE TABLE {t} (a INT) USING delta "
        "TBLPROPERTIES ('delta.feature.coordinatedCommits-preview' = 'supported')",
    ),
}


class Warehouse:
    """A warehouse with one table, and its readers."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.addressing = PathAddressing(folder)
        self._runner = SparkSqlRunner(spark)
        self.by_spark = SparkDeltaReader(self._runner, self._runner.schema, self.addressing)
        self._queries = TableQueries(self._runner, self.addressing)
        self.log = DeltaLogReader(self.addressing)
        self.folder.parent.mkdir(parents=True)

    @property
    def folder(self) -> Path:
        return self.addressing.folder(TABLE)

    def make(self, *statements: str) -> None:
        address = self.addressing.table(TABLE)
        for statement in statements:
            self._runner.run(statement.replace("{t}", address))

    def state_by_spark(self) -> TableState:
        return self.by_spark.snapshot([bare_model(TABLE)]).table(TABLE)

    def state_by_log(self) -> TableState:
        description = self.log.describe(TABLE)
        assert description is not None
        return described_state(TABLE, description)

    def assert_readers_agree(self) -> None:
        by_spark, by_log = self.state_by_spark(), self.state_by_log()
        assert by_log == by_spark
        assert list(by_log.table_properties.items()) == list(by_spark.table_properties.items())
        assert self.log.commits(TABLE) == self._queries.read_commits([TABLE])[TABLE.key]


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    return Warehouse(spark, tmp_path)


@pytest.mark.parametrize("text", ['{"commitInfo": ', "", "nonsense"])
def test_errors_are_those_of_spark(spark: SparkSession, warehouse: Warehouse, text: str) -> None:
    (warehouse.folder / "_delta_log").mkdir(parents=True)
    (warehouse.folder / "_delta_log" / f"{0:020}.json").write_text(text)
    refusals = []
    for reader in (embedded_backend(spark, warehouse.addressing.warehouse).reader, warehouse.by_spark):
        with pytest.raises(CatalogReadError) as caught:
            reader.snapshot([bare_model(TABLE)])
        error = caught.value.__cause__
        assert isinstance(error, StatementError)
        refusals.append((str(caught.value), error.error_class, error.sql))
    assert refusals[0] == refusals[1]


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.long] if kind in SLOW else []) for kind in KINDS],
)
def test_both_readers_agree(warehouse: Warehouse, kind: str) -> None:
    warehouse.make(*KINDS[kind])
    warehouse.assert_readers_agree()


def test_every_known_feature_means_the_same_to_both(spark: SparkSession, tmp_path: Path) -> None:
    """Clustering cannot be switched on alone; it has kinds of its own."""
    for feature in sorted(KNOWN_FEATURES - {"clustering"}):
        warehouse = Warehouse(spark, tmp_path / feature)
        warehouse.make(
            "CREATE TABLE {t} (a INT) USING delta "
            f"TBLPROPERTIES ('delta.feature.{feature}' = 'supported', {MAPPED})"
        )
        warehouse.assert_readers_agree()


@pytest.mark.parametrize("kind", ONLY_SPARK)
def test_tables_that_only_spark_understands_are_left_to_it(warehouse: Warehouse, kind: str) -> None:
    warehouse.make(*ONLY_SPARK[kind])
    assert warehouse.log.describe(TABLE) is None
    assert warehouse.log.commits(TABLE) is None
    assert warehouse.state_by_spark().exists


def test_generated_and_identity_columns(spark: SparkSession, warehouse: Warehouse) -> None:
    """Only the builder makes them on open-source Spark."""
    from delta.tables import DeltaTable, IdentityGenerator

    (
        DeltaTable.create(spark)
        .location(str(warehouse.folder))
        .addColumn("a", "bigint", generatedAlwaysAs=IdentityGenerator(start=1, step=1))
        .addColumn("b", "int")
        .addColumn("c", "int", generatedAlwaysAs="b + 1")
        .addColumn("d", "bigint", generatedByDefaultAs=IdentityGenerator(start=-4, step=-2))
        .execute()
    )
    warehouse.assert_readers_agree()
    counted, _, computed, counted_by_default = warehouse.state_by_spark().columns
    assert counted.identity == Identity(start=1, step=1)
    assert computed.generated_as == "b + 1"
    assert counted_by_default.identity == Identity(start=-4, step=-2, always=False)


def test_a_log_without_its_first_commits(warehouse: Warehouse) -> None:
    warehouse.make(*KINDS["checkpoints"])
    for version in range(3):
        (warehouse.folder / "_delta_log" / f"{version:020}.json").unlink()
    warehouse.assert_readers_agree()


def test_clustering_columns_whose_commit_is_gone_are_left_to_spark(warehouse: Warehouse) -> None:
    warehouse.make(
        "CREATE TABLE {t} (a INT) USING delta CLUSTER BY (a) TBLPROPERTIES ('delta.checkpointInterval' = '2')",
        *MANY_COMMITS,
    )
    warehouse.assert_readers_agree()
    (warehouse.folder / "_delta_log" / f"{0:020}.json").unlink()
    assert warehouse.log.describe(TABLE) is None
    assert warehouse.state_by_spark().cluster_by == ("a",)


def test_files_of_one_time_are_commits_in_order(warehouse: Warehouse) -> None:
    """A copied folder: Spark gives each commit a later time than the one before."""
    warehouse.make(*KINDS["checkpoints"])
    for commit in (warehouse.folder / "_delta_log").glob("*.json"):
        os.utime(commit, (1_700_000_000, 1_700_000_000))
    warehouse.assert_readers_agree()


def test_a_folder_that_deltalake_would_mistake_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    """It decodes `%20` in paths."""
    beside, meant = Warehouse(spark, tmp_path / "a b"), Warehouse(spark, tmp_path / "a%20b")
    beside.make(*KINDS["plain"])
    meant.make(*KINDS["partitions"])
    assert meant.log.describe(TABLE) is None
    assert meant.state_by_spark().partitioned_by
    beside.assert_readers_agree()


def test_awkward_folders(spark: SparkSession, tmp_path: Path) -> None:
    plain = Warehouse(spark, tmp_path / "plain")
    plain.make(*KINDS["plain"])
    for name in ("it's a folder", "a#b", "a?b", "a+b", "ü", "a:b", "a[b]*", "s3:", "file:x"):
        awkward = Warehouse(spark, tmp_path / name)
        shutil.copytree(plain.folder, awkward.folder)
        assert awkward.state_by_log() == plain.state_by_spark()
