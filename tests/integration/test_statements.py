"""How many statements work takes, and that Spark's parser accepts each of them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from delta_engine.backends import databricks_backend, embedded_backend
from delta_engine.models import Column, PrimaryKey, Table
from tests.golden_cases import FOLDER
from tests.integration.counting import CountingSqlRunner
from tests.integration.test_worked_example import engine_over
from tests.integration.unity_catalog import MiniatureUnityCatalog

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
    assert len(unity_catalog.statements) == 4 + 3  # views in bulk, then properties table by table


def test_sparks_parser_accepts_every_golden_statement(spark: SparkSession) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    scripts = sorted(FOLDER.glob("*/plan.*.sql"))
    statements = [sql for path in scripts for sql in re.split(r";\n", path.read_text("utf-8")) if sql]
    assert len(statements) > 50
    for sql in statements:
        parser.parsePlan(sql)


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
