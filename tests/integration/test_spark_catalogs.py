"""What `names: catalog` can do and folders cannot, walked on real Delta in Spark's session catalog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from pyspark.sql import SparkSession

from delta_engine.actions import Adoption
from delta_engine.actions.policy import Policy
from delta_engine.backends.capabilities import OPEN_SOURCE, OPEN_SOURCE_CATALOG, Feature
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import UnsafePlanError
from delta_engine.models import CheckConstraint, Column, PrimaryKey, Table
from delta_engine.orchestrate.backend import catalog_backend
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.state.catalog_reader import readable_snapshot
from delta_engine.validation.capability_rules import SupportedChanges
from tests.builders.deployment import deployment_over
from tests.cases.capability_walks import WALKS, engine_over, orders, walk_steps
from tests.fakes.recording_sql_runner import RecordingSqlRunner

CATALOG = "spark_catalog"
OF_NO_TABLE = (Feature.FUNCTIONS, Feature.VIEWS, Feature.VIEW_COLUMN_COMMENTS)
"""`test_session_functions` and `test_session_views` walk through them."""

ONLY_BY_NAME = [
    feature for feature in OPEN_SOURCE.refused if feature not in (*OPEN_SOURCE_CATALOG.refused, *OF_NO_TABLE)
]


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """Return a schema of the session catalog that is not there yet; it goes afterwards."""
    yield "silver"
    spark.sql(f"DROP SCHEMA IF EXISTS {CATALOG}.silver CASCADE")


@pytest.mark.usefixtures("schema")
@pytest.mark.parametrize(
    "feature",
    [*ONLY_BY_NAME, pytest.param(Feature.COLUMN_RENAMES, marks=pytest.mark.long)],
    ids=lambda feature: feature.name,
)
def test_names_in_a_catalog(feature: Feature, spark: SparkSession, tmp_path: Path) -> None:
    def here(model: Table) -> Table:
        folder = str(tmp_path / "orders") if model.location else None
        return replace(model, catalog_name=CATALOG, location=folder)

    steps = [[*map(here, models)] for models in WALKS[feature].steps]
    walk_steps(engine_over(catalog_backend(spark), deployment_over(tmp_path)), feature, steps)


@pytest.mark.usefixtures("schema")
def test_an_external_table_is_read_with_its_location(spark: SparkSession, tmp_path: Path) -> None:
    backend = catalog_backend(spark)
    spark.sql(f"CREATE SCHEMA {CATALOG}.silver")
    spark.sql(f"CREATE TABLE {CATALOG}.silver.orders (id BIGINT) USING delta LOCATION '{tmp_path}/orders'")
    model = replace(orders(), catalog_name=CATALOG)
    state = backend.reader.snapshot([model]).table(model.qualified_name)
    assert state.location == f"file:{tmp_path}/orders"
    engine = engine_over(backend, deployment_over(tmp_path))
    planned = plan_unlocked(engine, [replace(model, columns=state.columns)])
    (refusal,) = SupportedChanges(backend.capabilities).check(planned.plan, Policy())
    assert isinstance(refusal, UnsafePlanError)
    assert "it would become a managed table" in str(refusal)


@pytest.mark.usefixtures("schema")
def test_a_registered_table_without_files_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Delta answers as for a table by path that is not there; the catalog still lists the name."""
    reader = catalog_backend(spark).reader
    spark.sql(f"CREATE SCHEMA {CATALOG}.silver")
    for name in ("orders", "lines"):
        folder = tmp_path / name
        spark.sql(f"CREATE TABLE {CATALOG}.silver.{name} (id BIGINT) USING delta LOCATION '{folder}'")
    rmtree(tmp_path / "orders")
    spark.catalog.clearCache()
    model = replace(orders(), catalog_name=CATALOG)
    observed, (refusal,) = readable_snapshot(reader, [model, replace(model, table_name="lines")])
    assert refusal.table == f"{CATALOG}.silver.orders"
    assert "DELTA_PATH_DOES_NOT_EXIST" in refusal.reason
    assert "Its files are missing" in refusal.way_out
    assert [*observed.tables] == [f"{CATALOG}.silver.lines"]


FULL: dict[str, Any] = {
    "columns": (Column("id", "bigint", is_nullable=False, comment="Key"), Column("day", "date")),
    "comment": "Orders",
    "primary_key": PrimaryKey(["id"]),
    "checks": (CheckConstraint("positive", "id > 0"),),
    "table_properties": {"kept": "yes", "delta.columnMapping.mode": "name"},
}


@pytest.mark.usefixtures("schema")
@pytest.mark.parametrize("layout", [{"cluster_by": ("id",)}, {"partitioned_by": ("day",)}])
def test_a_dropped_external_table_comes_back_with_its_rows(
    layout: dict[str, Any], spark: SparkSession, tmp_path: Path
) -> None:
    backend = catalog_backend(spark)
    location = str(tmp_path / "it's here")
    model = replace(orders(), **FULL, **layout, location=location, catalog_name=CATALOG)
    engine = replace(engine_over(backend, Deployment.unrecorded()), locations=backend.locations)
    name = f"{CATALOG}.silver.orders"
    engine.sync_tables([model])
    spark.sql(f"INSERT INTO {name} VALUES (1, DATE'2026-01-02')")
    spark.sql(f"DROP TABLE {name}")
    engine = replace(engine, deployment=Deployment.unrecorded())

    other = replace(model, checks=(CheckConstraint("positive", "id > 1"),), comment="Others")
    refusals = str(plan_unlocked(engine, [other]).refusals)
    assert f"a Delta table lies at its location {location}, and it differs: " in refusals
    assert "table comment is 'Orders', the model has 'Others'" in refusals

    planned = plan_unlocked(engine, [model])
    (create,) = planned.plan.create_tables
    assert create.adoption == Adoption()  # the files hold everything, keys included
    engine.sync_tables([model])
    assert [tuple(row) for row in spark.table(name).collect()] == [(1, date(2026, 1, 2))]
    assert not plan_unlocked(engine, [model]).plan


@pytest.mark.usefixtures("schema")
def test_an_empty_location_holds_no_table(spark: SparkSession, tmp_path: Path) -> None:
    backend = catalog_backend(spark)
    assert backend.locations is not None
    model = replace(orders(location=str(tmp_path / "nothing")), catalog_name=CATALOG)
    assert backend.locations.at_location(model.qualified_name, str(model.location)) is None
    (tmp_path / "nothing").mkdir()
    assert backend.locations.at_location(model.qualified_name, str(model.location)) is None


@pytest.mark.usefixtures("schema")
def test_a_replaced_table_is_known_by_its_id_at_no_extra_statement(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's catalogs show no creation times; the read of a table shows its id."""
    runners: list[RecordingSqlRunner] = []

    def decorate(runner: SqlRunner) -> SqlRunner:
        runners.append(RecordingSqlRunner(runner.run))
        return runners[-1]

    backend = catalog_backend(spark, decorate=decorate)
    engine = replace(engine_over(backend, deployment_over(tmp_path)), versions=backend.versions)
    model = replace(orders(), catalog_name=CATALOG)
    engine.sync_tables([model])
    (create,) = [sql for sql in runners[0].statements if sql.startswith("CREATE TABLE")]
    runners[0].statements.clear()
    assert not plan_unlocked(engine, [model]).replaced
    assert not [sql for sql in runners[0].statements if "HISTORY" in sql or "DETAIL" in sql]
    spark.sql(f"DROP TABLE {CATALOG}.silver.orders")
    spark.sql(create)
    assert plan_unlocked(engine, [model]).replaced == (model.qualified_name,)


def test_catalogs_are_known_by_their_class(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.Unity", "io.unitycatalog.spark.UCSingleCatalog")
    session.conf.set("spark.sql.catalog.Unity.uri", "http://localhost:8080")
    capabilities = catalog_backend(session).capabilities
    assert capabilities.refused_in.keys() == {"unity"}
    assert capabilities.refusal(Feature.COLUMN_RENAMES, "UNITY")
    assert capabilities.refusal(Feature.COLUMN_RENAMES, CATALOG) is None


def test_jars_of_the_user_stand_first_on_the_class_path(spark: SparkSession) -> None:
    assert spark.sparkContext._jvm is not None
    loader = spark.sparkContext._jvm.Thread.currentThread().getContextClassLoader()
    jars = [str(url).rsplit("/", 1)[1] for url in loader.getURLs()]
    assert jars[0] == "of-the-user.jar"
    assert any(jar.startswith("delta-spark_") for jar in jars[1:])
