"""Backends: a runner, a reader, a way of addressing and the capabilities that belong together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from delta_engine.addressing import Addressing, CatalogAddressing, PathAddressing
from delta_engine.capabilities import DATABRICKS, OPEN_SOURCE, Capabilities
from delta_engine.execute.spark_sql_runner import SparkSqlRunner
from delta_engine.sql_runner import SqlRunner
from delta_engine.state.catalog_reader import CatalogReader
from delta_engine.state.spark_delta_reader import SparkDeltaReader
from delta_engine.state.unity_catalog_reader import UnityCatalogReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """What runs SQL on one platform."""

    runner: SqlRunner
    reader: CatalogReader
    addressing: Addressing
    capabilities: Capabilities


def databricks_backend(runner: SqlRunner, *, parallelism: int = 4) -> Backend:
    """Return Unity Catalog behind any runner: SQL only, so that it runs on serverless too."""
    return Backend(
        runner=runner,
        reader=UnityCatalogReader(runner, parallelism=parallelism),
        addressing=CatalogAddressing(),
        capabilities=DATABRICKS,
    )


def embedded_backend(spark: SparkSession, warehouse: Path, *, parallelism: int = 4) -> Backend:
    """Return plain Spark and Delta with tables by path, under a warehouse folder."""
    return _oss_backend(spark, PathAddressing(warehouse.absolute()), parallelism)


def catalog_backend(spark: SparkSession, *, parallelism: int = 4) -> Backend:
    """Return plain Spark and Delta with names as Spark's own catalogs resolve them."""
    return _oss_backend(spark, CatalogAddressing(), parallelism)


def _oss_backend(
    spark: SparkSession, addressing: PathAddressing | CatalogAddressing, parallelism: int
) -> Backend:
    runner = SparkSqlRunner(spark)
    return Backend(
        runner=runner,
        reader=SparkDeltaReader(spark, runner, addressing, parallelism=parallelism),
        addressing=addressing,
        capabilities=OPEN_SOURCE,
    )
