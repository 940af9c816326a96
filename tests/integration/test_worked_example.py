"""The design guide's worked example (§12), for real, on every backend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chispa import assert_df_equality
from chispa.schema_comparer import assert_schema_equality

from delta_engine.aspects.columns import ColumnAdd
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.primary_key import PrimaryKeyAdd
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.models import Column, PrimaryKey, Table
from delta_engine.orchestrate.backend import Backend, catalog_backend, databricks_backend, embedded_backend
from delta_engine.orchestrate.orchestrator import Orchestrator
from tests.builders import WORKED_MODEL
from tests.integration.unity_catalog import MiniatureUnityCatalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration


def engine_over(backend: Backend) -> Orchestrator:
    """Return the pipeline over a backend."""
    runner = ActionRunner(backend.runner, backend.addressing, backend.capabilities)
    return Orchestrator(reader=backend.reader, action_runner=runner)


def apply_anyway(engine: Orchestrator, *models: Table) -> None:
    """Bring the catalog to the models without asking the plan rules."""
    with engine.run("test") as run:
        run.apply(run.plan(models))


@pytest.fixture(params=["path", "catalog", "databricks"])
def make_backend(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> Callable[[], tuple[Backend, Table]]:
    """Return a maker of each backend, with the model as that backend names it."""

    def make() -> tuple[Backend, Table]:
        match request.param:
            case "path":
                (tmp_path / "dev" / "silver").mkdir(parents=True)
                return embedded_backend(spark, tmp_path), WORKED_MODEL
            case "catalog":
                spark.sql("DROP SCHEMA IF EXISTS spark_catalog.silver CASCADE")
                spark.sql("CREATE SCHEMA spark_catalog.silver")
                return catalog_backend(spark), _in_catalog(WORKED_MODEL, "spark_catalog")
        catalog: MiniatureUnityCatalog = request.getfixturevalue("unity_catalog")
        return databricks_backend(catalog), WORKED_MODEL

    return make


def test_the_worked_example_converges(make_backend: Callable[[], tuple[Backend, Table]]) -> None:
    backend, model = make_backend()
    address = backend.addressing.table(model.qualified_name)
    backend.runner.run(f"CREATE TABLE {address} (id BIGINT, created_ts TIMESTAMP) USING delta")
    engine = engine_over(backend)

    (align,) = engine.plan_tables([model]).align_tables
    assert align.of_type(ColumnAdd) == (ColumnAdd(Column("amount", "decimal(18,2)", comment="Order total")),)
    assert align.of_type(ColumnNullabilityChange) == (ColumnNullabilityChange("id", make_nullable=False),)
    name = model.qualified_name
    key_name = f"pk_{name.catalog}_{name.schema}_{name.table}__id"
    assert align.of_type(PrimaryKeyAdd) == (PrimaryKeyAdd(key_name, ("id",)),)

    (outcome,) = engine.sync_tables([model])
    assert outcome.statements == 6
    assert not engine.plan_tables([model])

    state = backend.reader.snapshot([model]).table(name)
    assert state.columns == model.columns
    assert state.table_comment == "Orders table"
    assert state.table_properties["delta.autoOptimize.optimizeWrite"] == "true"
    assert state.primary_key == PrimaryKey(("id",), key_name)


def test_a_created_table_needs_nothing_more(
    make_backend: Callable[[], tuple[Backend, Table]],
) -> None:
    backend, model = make_backend()
    engine = engine_over(backend)
    (outcome,) = engine.sync_tables([model])
    assert (outcome.kind.value, outcome.statements) == ("created", 1)
    assert not engine.plan_tables([model])
    assert engine.sync_tables([model]) == ()


def test_not_null_is_enforced_after_tightening(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "dev" / "silver").mkdir(parents=True)
    backend = embedded_backend(spark, tmp_path)
    address = backend.addressing.table(WORKED_MODEL.qualified_name)
    spark.sql(f"CREATE TABLE {address} (id BIGINT, created_ts TIMESTAMP) USING delta")
    engine_over(backend).sync_tables([WORKED_MODEL])

    spark.sql(f"INSERT INTO {address} VALUES (1, current_timestamp(), 2.5)")
    with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        spark.sql(f"INSERT INTO {address} VALUES (NULL, current_timestamp(), 2.5)")
    assert spark.table(address).count() == 1


def test_the_rows_stay(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "dev" / "silver").mkdir(parents=True)
    backend = embedded_backend(spark, tmp_path)
    address = backend.addressing.table(WORKED_MODEL.qualified_name)
    spark.sql(f"CREATE TABLE {address} (id BIGINT, created_ts TIMESTAMP) USING delta")
    spark.sql(f"INSERT INTO {address} VALUES (1, TIMESTAMP '2026-01-01'), (2, NULL)")
    before = spark.table(address).selectExpr("*", "CAST(NULL AS DECIMAL(18,2)) AS amount")
    expected = spark.createDataFrame(before.collect(), before.schema)
    engine_over(backend).sync_tables([WORKED_MODEL])
    assert_df_equality(
        spark.table(address), expected, ignore_nullable=True, ignore_metadata=True, ignore_row_order=True
    )


def test_the_schema_is_the_one_declared(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import types as T  # noqa: N812 - the guide's spelling

    (tmp_path / "dev" / "silver").mkdir(parents=True)
    backend = embedded_backend(spark, tmp_path)
    engine_over(backend).sync_tables([WORKED_MODEL])
    expected = T.StructType(
        [
            T.StructField("id", T.LongType(), nullable=False),
            T.StructField("created_ts", T.TimestampType()),
            T.StructField("amount", T.DecimalType(18, 2)),
        ]
    )
    found = spark.table(backend.addressing.table(WORKED_MODEL.qualified_name)).schema
    assert_schema_equality(found, expected, ignore_metadata=True)


def _in_catalog(model: Table, catalog: str) -> Table:
    from dataclasses import replace

    return replace(model, catalog_name=catalog)
