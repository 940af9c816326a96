"""How many statements work takes, and that Spark's parser accepts each of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from delta_engine.actions import CreateTable, TablePlan
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.errors import StatementError
from delta_engine.models import Column, PrimaryKey, Table
from delta_engine.orchestrate.backend import databricks_backend, embedded_backend
from delta_engine.orchestrate.importing import as_model
from tests.golden_cases import GoldenCase, golden_cases
from tests.integration.counting import CountingSqlRunner
from tests.integration.test_worked_example import engine_over
from tests.integration.unity_catalog import MiniatureUnityCatalog
from tests.planning import statements_of
from tests.statement_kinds import (
    PAGE,
    emitted_statements,
    kinds_of,
    spark_answers,
    statements_by_kind,
    statements_in,
    statements_page,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

COLUMNS = 21


def wide_tables(count: int, wording: str = "column") -> list[Table]:
    """Return models with commented columns, properties and keys."""
    return [
        Table(
            "dev",
            "silver",
            f"t{n}",
            [Column("id", "bigint", is_nullable=False, comment="key")]
            + [Column(f"c{i}", "string", comment=f"{wording} {i}") for i in range(1, COLUMNS)],
            comment=f"table {n}",
            table_properties={"team": "retail"},
            primary_key=["id"],
        )
        for n in range(count)
    ]


def test_n_tables_take_n_statements_and_20_comments_take_one(spark: SparkSession, tmp_path: Path) -> None:
    runner = CountingSqlRunner(spark)
    backend = replace(embedded_backend(spark, tmp_path), runner=runner)
    (tmp_path / "dev" / "silver").mkdir(parents=True)
    engine = engine_over(backend)

    engine.sync_tables(wide_tables(5))
    assert len(runner.changes) == 5

    engine.sync_tables(wide_tables(5))
    assert len(runner.changes) == 5

    engine.sync_tables(wide_tables(5, "changed"))
    assert len(runner.changes) == 10
    assert runner.changes[-1].count("COMMENT") == COLUMNS - 1


def test_n_tables_take_n_statements_on_databricks(unity_catalog: MiniatureUnityCatalog) -> None:
    engine = engine_over(databricks_backend(unity_catalog))
    engine.sync_tables(wide_tables(3))
    changes = [sql for sql in unity_catalog.statements if sql.startswith(("CREATE", "ALTER"))]
    assert len(changes) == 3
    unity_catalog.statements.clear()

    engine.sync_tables(wide_tables(3))
    assert len(unity_catalog.statements) == 13 + 3  # views in bulk, then table by table


def test_sparks_parser_accepts_every_golden_statement_for_open_source_spark(spark: SparkSession) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    statements = emitted_statements("oss")
    assert len(statements) > 50
    for sql in statements:
        parser.parsePlan(sql)


def test_spark_judges_the_statements_for_databricks_as_the_docs_say(
    spark: SparkSession, unity_catalog: MiniatureUnityCatalog, request: pytest.FixtureRequest
) -> None:
    """Spark's reference catalog runs each golden case as far as it can, over the table that the case starts from."""
    accepted = {kind for sql in emitted_statements() if is_accepted_by(spark, sql) for kind in kinds_of(sql)}
    run = {kind for case in golden_cases() for sql in statements_run(spark, case) for kind in kinds_of(sql)}
    answers = {
        kind: "runs it" if kind in run else "parses it" if kind in accepted else "no"
        for kind in statements_by_kind(emitted_statements())
    }
    if request.config.getoption("--rewrite-golden"):
        PAGE.write_text(statements_page(answers), "utf-8")
    assert spark_answers(PAGE.read_text("utf-8")) == answers, "rewrite docs/statements.md"


def is_accepted_by(spark: SparkSession, sql: str) -> bool:
    """Whether Spark's parser takes a statement."""
    from pyspark.errors import ParseException

    try:
        spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    except ParseException:
        return False
    return True


def statements_run(spark: SparkSession, case: GoldenCase) -> list[str]:
    """Return those of a case's statements for Databricks that the reference catalog runs."""
    path = case.folder / "plan.databricks.sql"
    if not path.exists():
        return []
    runner = SparkSqlRunner(spark)
    runner.run("DROP SCHEMA IF EXISTS dev.silver CASCADE")
    runner.run("CREATE SCHEMA dev.silver")
    for model in case.models:
        state = case.state.table(model.qualified_name)
        if state.exists:
            create, *_ = create_statements(as_model(model.qualified_name, state))
            runner.run(create)
    return [sql for sql in statements_in(path) if does_run(runner, sql)]


def create_statements(model: Table) -> list[str]:
    """Return what creates a table for the reference catalog, which knows only some of Unity Catalog's parts."""
    columns = [
        Column(one.name, one.data_type, one.is_nullable, one.comment, default=one.default)
        for one in model.columns
    ]
    plain = Table(
        model.catalog_name,
        model.schema_name,
        model.table_name,
        columns,
        table_properties=model.table_properties,
        primary_key=model.primary_key,
        checks=model.checks,
    )
    return statements_of(TablePlan(create_tables=(CreateTable(plain),)))


def does_run(runner: SparkSqlRunner, sql: str) -> bool:
    """Whether a statement ends well."""
    try:
        runner.run(sql)
    except StatementError:
        return False
    return True


def test_the_platform_spells_keys_its_own_way(unity_catalog: MiniatureUnityCatalog) -> None:
    """`key_column_usage` gives other case than the table: joined without case, nothing is planned."""
    model = Table(
        "dev",
        "silver",
        "mixed",
        [Column("B", "int", is_nullable=False), Column("a", "int", is_nullable=False)],
        primary_key=PrimaryKey(["B", "a"], "my_key"),
    )
    backend = databricks_backend(unity_catalog)
    engine_over(backend).sync_tables([model])
    state = backend.reader.snapshot([model]).table(model.qualified_name)
    assert state.primary_key == PrimaryKey(("B", "a"), "my_key")
    assert not engine_over(backend).plan_tables([model])
