"""One Spark session for the whole run: local Delta, and beside it the reference catalog `dev`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from delta_engine.backends.local_jars import cached_jars
from delta_engine.backends.spark_sessions import open_local_session
from tests.integration.unity_catalog import MiniatureUnityCatalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFERENCE_CATALOG = "org.apache.spark.sql.connector.catalog.InMemoryTableCatalog"

_IVY_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="delta-engine" module="tests"/>
  <dependencies>
    <dependency org="org.apache.spark" name="spark-catalyst_2.13" rev="4.1.1" transitive="false">
      <artifact name="spark-catalyst_2.13" type="jar" m:classifier="tests" ext="jar"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start Spark once. It has Delta, and Spark's own reference catalog for Unity Catalog's SQL."""
    module = tmp_path_factory.mktemp("ivy") / "ivy.xml"
    module.write_text(_IVY_MODULE)
    (catalog_jar,) = cached_jars("spark-catalyst-tests-4.1.1", ["-ivy", str(module)])
    session = open_local_session(
        {
            "spark.jars": str(catalog_jar),
            "spark.sql.catalog.dev": REFERENCE_CATALOG,
            "spark.driver.memory": "2g",
        },
        scratch=tmp_path_factory.mktemp("it's a spark"),
    )
    yield session
    session.stop()


@pytest.fixture
def unity_catalog(spark: SparkSession) -> Iterator[MiniatureUnityCatalog]:
    """Return an empty Unity Catalog in miniature, with the schema dev.silver."""
    catalog = MiniatureUnityCatalog(spark, "dev")
    catalog.run("CREATE SCHEMA dev.silver")
    catalog.statements.clear()
    yield catalog
    catalog.clear()
