"""The design guide's worked example (§12) on real Delta, by folders and by names in a catalog."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from chispa import assert_df_equality
from chispa.schema_comparer import assert_schema_equality
from pyspark.sql import SparkSession

from delta_engine.aspects.columns import ColumnAdd
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.primary_key import PrimaryKeyAdd
from delta_engine.models import Column, PrimaryKey, Table
from delta_engine.orchestrate.backend import Backend, catalog_backend, embedded_backend
from tests.builders.engines import engine_over
from tests.builders.models import WORKED_MODEL


@pytest.fixture(params=["path", "catalog"])
def place(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> tuple[Backend, Table]:
    """Return each backend, with the model as that backend names it."""
    if request.param == "path":
        (tmp_path / "dev" / "silver").mkdir(parents=True)
        return embedded_backend(spark, tmp_path), WORKED_MODEL
    spark.sql("DROP SCHEMA IF EXISTS spark_catalog.silver CASCADE")
    spark.sql("CREATE SCHEMA spark_catalog.silver")
    return catalog_backend(spark), replace(WORKED_MODEL, catalog_name="spark_catalog")


def test_the_worked_example_converges_and_its_rows_stay(
    spark: SparkSession, place: tuple[Backend, Table]
) -> None:
    backend, model = place
    address = backend.addressing.table(model.qualified_name)
    spark.sql(f"CREATE TABLE {address} (id BIGINT, created_ts TIMESTAMP) USING delta")
    spark.sql(f"INSERT INTO {address} VALUES (1, TIMESTAMP '2026-01-01'), (2, NULL)")
    before = spark.table(address).selectExpr("*", "CAST(NULL AS DECIMAL(18,2)) AS amount")
    expected = spark.createDataFrame(before.collect(), before.schema)
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
    assert (state.columns, state.table_comment) == (model.columns, "Orders table")
    assert state.table_properties["delta.autoOptimize.optimizeWrite"] == "true"
    assert state.primary_key == PrimaryKey(("id",), key_name)

    with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        spark.sql(f"INSERT INTO {address} VALUES (NULL, current_timestamp(), 2.5)")
    assert_df_equality(
        spark.table(address), expected, ignore_nullable=True, ignore_metadata=True, ignore_row_order=True
    )


def test_a_created_table_has_the_declared_schema_and_needs_nothing_more(
    spark: SparkSession, place: tuple[Backend, Table]
) -> None:
    from pyspark.sql import types as T  # noqa: N812 - the guide's spelling

    backend, model = place
    engine = engine_over(backend)
    (outcome,) = engine.sync_tables([model])
    assert (outcome.kind.value, outcome.statements) == ("created", 1)
    assert engine.sync_tables([model]) == ()
    expected = T.StructType(
        [
            T.StructField("id", T.LongType(), nullable=False),
            T.StructField("created_ts", T.TimestampType()),
            T.StructField("amount", T.DecimalType(18, 2)),
        ]
    )
    schema = spark.table(backend.addressing.table(model.qualified_name)).schema
    assert_schema_equality(schema, expected, ignore_metadata=True)
