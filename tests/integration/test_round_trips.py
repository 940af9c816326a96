"""What is declared is what is read back: types, texts, and whole models, on real Delta."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.sql import SparkSession

from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError, InvalidModelError, StatementError
from delta_engine.models import Column, Table
from delta_engine.models.type_forms import to_data_type
from delta_engine.models.type_text import parse_data_type
from delta_engine.models.types import first_unsupported
from delta_engine.orchestrate.backend import Backend, catalog_backend, embedded_backend
from delta_engine.orchestrate.importing import import_tables
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.sql.text import sql_data_type
from delta_engine.state.spark_delta_reader import SparkDeltaReader
from tests.builders.engines import apply_anyway, engine_over
from tests.builders.models import orders
from tests.builders.strategies import successive_models

EVERY_TYPE = [
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(38,18)", "string"),
    *("char(3)", "varchar(40)", "binary", "date", "timestamp", "timestamp_ntz"),
    "variant",
    "array<varchar(3)>",
    "map<string,array<decimal(3,1)>>",
    "struct<a: int NOT NULL COMMENT 'it\\'s', b: array<struct<c: date, d: timestamp_ntz>>>",
    "array<struct<a: char(2), b: map<varchar(3),int>>>",
]

AWKWARD = [
    "it's",
    "a \\ b \\n \\' \\\\",
    "line\nline\r\ttab",
    "${x} $\\{y} $${z}",
    "🎉 ünï",
    '"q" `b` -- /* */ ;',
    "%_\\%",
]


def test_every_type_round_trips(backend: Backend) -> None:
    model = orders(*(Column(f"c{n}", text) for n, text in enumerate(EVERY_TYPE)))
    engine_over(backend).sync_tables([model])
    assert backend.reader.snapshot([model]).table(model.qualified_name).columns == model.columns
    assert not engine_over(backend).plan_tables([model])


def test_pyspark_types_and_sql_types_are_the_same(spark: SparkSession) -> None:
    from pyspark.sql.types import DataType as SparkType
    from pyspark.sql.types import StringType

    for text in (*EVERY_TYPE, "void"):
        if "char" not in text:
            spark_type = SparkType.fromDDL(sql_data_type(parse_data_type(text)))
            assert to_data_type(spark_type) == parse_data_type(text)
    assert first_unsupported(to_data_type(StringType("UTF8_LCASE")))


@pytest.fixture(params=["false", "true"])
def substitution(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """Serverless does not let variable substitution be switched off: the literals must stand it."""
    spark.conf.set("spark.sql.variable.substitute", request.param)
    yield
    spark.conf.set("spark.sql.variable.substitute", "false")


@pytest.mark.usefixtures("substitution")
def test_awkward_texts_round_trip_everywhere(spark: SparkSession, backend: Backend) -> None:
    model = Table(
        "dev",
        "silver",
        "awkward",
        [Column(f"c{n}", "int", comment=text) for n, text in enumerate(AWKWARD)],
        comment=" | ".join(AWKWARD),
        table_properties={f"k{text}": text for text in AWKWARD},
    )
    engine = engine_over(backend)
    spark.sql(f"CREATE TABLE {backend.addressing.table(model.qualified_name)} (c0 int) USING delta")
    engine.sync_tables([model])  # through ALTER
    assert not engine.plan_tables([model])
    created = Table("dev", "silver", "awkward2", model.columns, model.comment, model.table_properties)
    engine.sync_tables([created])  # through CREATE
    for table in (model, created):
        state = backend.reader.snapshot([table]).table(table.qualified_name)
        assert [column.comment for column in state.columns] == AWKWARD
        assert state.table_comment == model.comment
        assert {f"k{text}": text for text in AWKWARD}.items() <= dict(state.table_properties).items()


def test_awkward_column_names_need_column_mapping_and_then_work(backend: Backend) -> None:
    columns = [Column(name, "int", is_nullable=False) for name in ("a b", "c.d", "e`f", "g,h;{}()=")]
    mapped = {"delta.columnMapping.mode": "name"}
    plain = Table("dev", "silver", "names", [Column("x", "int")], table_properties=mapped)
    model = Table("dev", "silver", "names", columns, table_properties=mapped, primary_key=["c.d", "e`f"])
    engine = engine_over(backend)
    with pytest.raises(InvalidModelError, match="only with column mapping"):
        engine.sync_tables([Table("dev", "silver", "names", columns)])
    engine.sync_tables([model])
    assert not engine.plan_tables([model])
    loosened = Table(
        "dev", "silver", "names", [Column(c.name, "int") for c in columns], table_properties=mapped
    )
    engine.sync_tables([loosened])
    assert not engine.plan_tables([loosened])
    engine.sync_tables([model])  # tightened again, now by CHECK
    assert not engine.plan_tables([model])
    apply_anyway(engine, plain)
    assert not engine.plan_tables([plain])


def test_a_dropped_column_that_a_check_tightened(backend: Backend) -> None:
    engine = engine_over(backend)

    def table(*columns: Column) -> Table:
        return Table("dev", "silver", "t", columns)

    engine.sync_tables([table(Column("a", "int"), Column("b", "int"))])
    engine.sync_tables([table(Column("a", "int"), Column("b", "int", is_nullable=False))])
    apply_anyway(engine, table(Column("a", "int")))
    assert not engine.plan_tables([table(Column("a", "int"))])


_numbers = itertools.count()


ON_A_PLATFORM = (Phase.explicit, Phase.generate)
"""Shrinking a failure would run for minutes; the laws without a platform find small examples."""


@pytest.mark.long
@settings(
    max_examples=15,
    phases=ON_A_PLATFORM,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(successive_models())
def test_any_two_models_converge_on_real_delta(
    spark: SparkSession, tmp_path: Path, both: tuple[Table, Table]
) -> None:
    folder = tmp_path / str(next(_numbers))
    (folder / "dev" / "silver").mkdir(parents=True)
    converge(embedded_backend(spark, folder), *both)


def converge(backend: Backend, first: Table, second: Table) -> None:
    """Create one model and change it into another, new columns nullable first, as the rules want it."""
    engine = engine_over(backend)
    engine.sync_tables([first])
    assert not engine.plan_tables([first])
    present = {column.key for column in first.columns}
    columns = tuple(replace(c, is_nullable=c.is_nullable or c.key not in present) for c in second.columns)
    without_keys = replace(second, columns=columns, primary_key=None, foreign_keys=())
    for step in (without_keys, second):
        if any(
            "NOT NULL fields inside" in refusal.reason for refusal in plan_unlocked(engine, [step]).refusals
        ):
            return
        apply_anyway(engine, step)
        assert not engine.plan_tables([step])


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE VIEW {t} AS SELECT 1 AS id", "it is a view or a table of another format"),
        ("CREATE TABLE {t} (id INT) USING parquet", "it is a view or a table of another format"),
        (
            "CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES ('delta_engine.constraint.x' = 'nonsense')",
            "holds no constraint that the engine has written: 'nonsense'. Unset that property",
        ),
    ],
)
def test_what_is_no_manageable_table_is_refused(spark: SparkSession, statement: str, message: str) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS spark_catalog.refused")
    try:
        spark.sql(statement.format(t="spark_catalog.refused.t"))
        model = Table("spark_catalog", "refused", "t", [Column("id", "int")])
        with pytest.raises(CatalogReadError) as caught:
            engine_over(catalog_backend(spark)).plan_tables([model])
        assert message in str(caught.value)
    finally:
        spark.sql("DROP SCHEMA spark_catalog.refused CASCADE")


def test_a_table_that_goes_while_it_is_read_is_refused_with_the_error_of_the_platform(
    backend: Backend, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = orders()
    engine_over(backend).sync_tables([model])
    run = SparkSqlRunner.run

    def dropping(self: SparkSqlRunner, sql: str) -> Sequence[Row]:
        rows = run(self, sql)
        shutil.rmtree(tmp_path / "dev" / "silver" / "orders")
        return rows

    monkeypatch.setattr(SparkSqlRunner, "run", dropping)
    reader = SparkDeltaReader(backend.runner, SparkSqlRunner(spark).schema, PathAddressing(tmp_path))
    with pytest.raises(CatalogReadError) as caught:
        reader.snapshot([model])
    assert isinstance(caught.value.__cause__, StatementError)
    assert "SELECT * FROM delta.`" in caught.value.__cause__.sql


def test_a_schema_by_name_is_created_when_allowed(spark: SparkSession) -> None:
    model = Table("spark_catalog", "made", "t", [Column("id", "int")], comment="first")
    engine = engine_over(catalog_backend(spark))
    (refusal,) = plan_unlocked(engine, [model]).refusals
    assert (refusal.securable, refusal.location) == ("schema spark_catalog.made", model.declared_at)
    assert refusal.message == (
        "it does not exist or is not visible to you. Create it, correct the models, or set policy.create_schemas: true."
    )
    try:
        apply_anyway(engine, model)
        assert not engine.plan_tables([model])
        changed = Table("spark_catalog", "made", "t", [Column("id", "int")], comment="second")
        engine.sync_tables([changed])  # Delta's comment counts, not the one of Spark's catalog
        assert not engine.plan_tables([changed])
    finally:
        spark.sql("DROP SCHEMA spark_catalog.made CASCADE")


def test_a_catalog_that_does_not_exist(spark: SparkSession) -> None:
    with pytest.raises(CatalogReadError, match="catalog 'nowhere'"):
        engine_over(catalog_backend(spark)).plan_tables(
            [Table("nowhere", "silver", "t", [Column("id", "int")])]
        )


def test_clustering_does_not_stumble_over_text_beyond_the_basic_plane(backend: Backend) -> None:
    engine = engine_over(backend)
    columns = (Column("a", "int", comment="🎉 twice 🎉"), Column("🎉", "date"))
    for cluster_by in (["🎉", "a"], ["a"], []):
        model = orders(*columns, comment="🎉", cluster_by=cluster_by)
        engine.sync_tables([model])
        assert not engine.plan_tables([model])


def test_an_external_table_is_imported_with_its_place_and_tables_of_other_formats_are_left_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS spark_catalog.places")
    try:
        spark.sql(
            f"CREATE TABLE spark_catalog.places.outside (id INT) USING delta LOCATION '{tmp_path}/outside'"
        )
        spark.sql("CREATE TABLE spark_catalog.places.inside (id INT) USING delta")
        spark.sql("CREATE TABLE spark_catalog.places.files (id INT) USING parquet")
        imported = import_tables(catalog_backend(spark), "spark_catalog.places")
        locations = {model.table_name: model.location for model in imported.tables}
        assert locations == {"inside": None, "outside": f"file:{tmp_path}/outside"}
        assert imported.refusals == ()
        assert [note.split(": ")[1] for note in imported.notes] == [
            "spark_catalog.places.files is no Delta table"
        ]
    finally:
        spark.sql("DROP SCHEMA spark_catalog.places CASCADE")
