"""Spark checks the SQL: its parser the statements, its engine the reader's queries; and work takes few statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import Row
from delta_engine.models import Column, Table
from delta_engine.orchestrate.backend import Backend
from delta_engine.sql.text import sql_literal
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.builders.engines import engine_over
from tests.cases.capability_walks import WALKS, walked_in_memory
from tests.cases.statement_kinds import (
    PAGE,
    emitted_statements,
    kinds_of,
    spark_answers,
    statements_by_kind,
    with_kinds,
)
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.example import catalog_of_everything
from tests.fakes.unity_catalog.views import VIEWS

COLUMNS = 21
IS_MEMBER = (
    "CREATE OR REPLACE TEMPORARY FUNCTION is_account_group_member(name STRING) RETURNS BOOLEAN RETURN false"
)


def wide_tables(count: int, wording: str = "column") -> list[Table]:
    """Return models with commented columns, properties and keys."""
    key = Column("id", "bigint", is_nullable=False, comment="key")
    columns = [key, *(Column(f"c{i}", "string", comment=f"{wording} {i}") for i in range(1, COLUMNS))]
    properties = {"team": "retail"}
    return [
        Table("dev", "silver", f"t{n}", columns, f"table {n}", properties, primary_key=["id"])
        for n in range(count)
    ]


def test_n_tables_take_n_statements_and_20_comments_take_one(backend: Backend, changes: list[str]) -> None:
    engine = engine_over(backend)
    for models, statements in ((wide_tables(3), 3), (wide_tables(3), 3), (wide_tables(3, "changed"), 6)):
        engine.sync_tables(models)
        assert len(changes) == statements
    assert changes[-1].count("COMMENT") == COLUMNS - 1


def test_sparks_parser_accepts_every_golden_statement_for_open_source_spark(spark: SparkSession) -> None:
    statements = emitted_statements("oss")
    assert len(statements) > 50
    assert [sql for sql in statements if not is_accepted_by(spark, sql)] == []


def test_sparks_parser_judges_the_statements_for_databricks_as_the_docs_say(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """It accepts every statement of the golden cases and of a walk over all features, but for Unity Catalog's own."""
    statements = emitted_statements()
    walks = [
        sql for feature in WALKS for sql in walked_in_memory(feature, tmp_path / feature.name).statements
    ]
    accepted = {sql for sql in {*statements, *walks} if is_accepted_by(spark, sql)}
    of_accepted = {kind for sql in accepted for kind in kinds_of(sql)}
    answers = {kind: "yes" if kind in of_accepted else "no" for kind in statements_by_kind(statements)}
    if request.config.getoption("--rewrite-golden"):
        PAGE.write_text(with_kinds(PAGE.read_text("utf-8"), answers), "utf-8")
    assert spark_answers(PAGE.read_text("utf-8")) == answers, "rewrite docs/statements.md"
    for sql in {*statements, *walks} - accepted:
        is_of_unity_catalog = not of_accepted.issuperset(kinds_of(sql)) or " MASK " in sql
        assert is_of_unity_catalog, sql


def is_accepted_by(spark: SparkSession, sql: str) -> bool:
    from pyspark.errors import ParseException

    try:
        spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    except ParseException:
        return False
    return True


@pytest.fixture
def catalog(spark: SparkSession) -> Iterator[FakeUnityCatalog]:
    """Return a catalog with one of everything, whose views Spark has too."""
    fake, runner = catalog_of_everything(), SparkSqlRunner(spark)
    for view, columns in VIEWS.items():
        rows = [*fake.run(f"SELECT * FROM dev.information_schema.{view}"), {}]
        values = ", ".join(
            f"({', '.join(as_literal(row.get(column)) for column in columns)})" for row in rows
        )
        runner.run(
            f"CREATE OR REPLACE TEMPORARY VIEW {view} AS "
            f"SELECT * FROM VALUES {values} AS v({', '.join(columns)}) WHERE {columns[0]} IS NOT NULL"
        )
    runner.run(IS_MEMBER)
    fake.questions.clear()
    yield fake
    for view in VIEWS:
        runner.run(f"DROP VIEW {view}")


def as_literal(value: object) -> str:
    return "NULL" if value is None else str(value) if isinstance(value, int) else sql_literal(str(value))


def test_spark_answers_the_readers_queries_of_the_views_as_the_fake_does(
    spark: SparkSession, catalog: FakeUnityCatalog
) -> None:
    UnityCatalogReader(catalog).snapshot(
        [Table("dev", "silver", "orders", []), Table("dev", "gold", "lines", [])]
    )
    queries = [sql for sql in catalog.questions if "information_schema" in sql]
    assert len(queries) == 13
    for sql in queries:
        rows = SparkSqlRunner(spark).run(sql.replace("`dev`.information_schema.", ""))
        assert rows_of(rows) == rows_of(catalog.run(sql)), sql


def rows_of(rows: Iterable[Row]) -> list[list[str]]:
    return sorted([str(value) for value in row.values()] for row in rows)
