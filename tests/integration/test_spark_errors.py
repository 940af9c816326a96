"""What real Spark raises: causes are shown, and pyspark prints nothing of what the engine handles."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.orchestrate.histories import HistoryTable
from delta_engine.state.table_finders import CatalogFinder


@pytest.fixture
def runner(spark: SparkSession) -> SparkSqlRunner:
    return SparkSqlRunner(spark)


@pytest.fixture
def printed() -> Iterator[list[str]]:
    """Return what pyspark's logger of statements with errors lets through."""
    seen: list[str] = []

    class Noting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.getMessage())

    logger, handler = PySparkLogger.getLogger("SQLQueryContextLogger"), Noting()
    logger.addHandler(handler)
    yield seen
    logger.removeHandler(handler)


def test_a_missing_connector_is_named_with_what_mends_it(spark: SparkSession, runner: SparkSqlRunner) -> None:
    spark.conf.set("spark.sql.catalog.absent", "does.not.Exist")
    with pytest.raises(CatalogReadError) as caught:
        CatalogFinder(runner).missing_schemas({("absent", "silver")})
    assert str(caught.value) == (
        "catalog 'absent' cannot be listed: org.apache.spark.SparkException: Cannot find catalog plugin class for "
        "catalog 'absent': does.not.Exist. Add the connector's jar to backend.spark (spark.jars or "
        "spark.jars.packages), or correct spark.sql.catalog.absent."
    )


def test_an_unknown_catalog_is_named_as_such(runner: SparkSqlRunner) -> None:
    with pytest.raises(CatalogReadError, match=r"`nowhere` cannot be found.* Correct the catalog's name"):
        CatalogFinder(runner).missing_schemas({("nowhere", "silver")})


def test_a_history_table_that_is_made_prints_nothing(
    spark: SparkSession, runner: SparkSqlRunner, tmp_path: Path, printed: list[str]
) -> None:
    history = HistoryTable(
        runner, f"delta.`{tmp_path / 'history'}`", columns={"a": ("string", "")}, comment="a history"
    )
    history.append([{"a": "x"}])
    with pytest.raises(StatementError):
        runner.run("SELECT nothing FROM nowhere")
    assert printed == []
    with pytest.raises(AnalysisException):
        spark.sql("SELECT nothing FROM nowhere")
    assert len(printed) == 1


def test_delta_tells_its_condition_and_sql_state_as_data(runner: SparkSqlRunner, tmp_path: Path) -> None:
    with pytest.raises(StatementError) as caught:
        runner.run(f"DESCRIBE HISTORY delta.`{tmp_path / 'nothing'}`")
    assert caught.value.error_class == "DELTA_TABLE_ONLY_OPERATION"
    assert caught.value.sql_state
    assert not caught.value.is_outcome_unknown
