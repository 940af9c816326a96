"""Runs SQL through a Spark session: classic, Databricks or Spark Connect. SQL only, nothing of the JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from delta_engine.errors import StatementError
from delta_engine.sql_runner import Row

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class SparkSqlRunner:
    """Runs statements in a session.

    Args:
        spark: the session; several threads may use it.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement and return its rows; see `SqlRunner.run`."""
        with _statement_errors(sql):
            return [row.asDict(recursive=True) for row in self._spark.sql(sql).collect()]

    def schema(self, address: str) -> StructType:
        """Return the schema of what an address leads to, without running anything.

        Raises:
            StatementError: there is nothing, or it cannot be read.
        """
        with _statement_errors(f"SELECT * FROM {address}"):
            return self._spark.table(address).schema


@contextmanager
def _statement_errors(sql: str) -> Iterator[None]:
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise StatementError(_without_plan(str(error)), sql=sql, error_class=_condition(error)) from error
    except _java_errors() as error:
        raise StatementError(
            _without_plan(str(error)), sql=sql, error_class=_java_condition(error)
        ) from error


def _java_errors() -> tuple[type[Exception], ...]:
    """Return what Java exceptions come as for which pyspark has no class; nothing where there is no JVM."""
    try:
        from py4j.protocol import Py4JError
    except ImportError:
        return ()
    return (Py4JError,)


def _condition(error: PySparkException) -> str | None:
    """Return the error condition, by the method's name of Spark 4 or of Spark 3."""
    get: Callable[[], str | None] = getattr(error, "getCondition", None) or error.getErrorClass
    return get()


def _java_condition(error: Exception) -> str | None:
    """Return the error condition of a Java exception that has one, such as Delta's for conflicting commits."""
    exception = getattr(error, "java_exception", None)
    try:
        return None if exception is None else str(exception.getErrorClass())
    except _java_errors():  # it has no such method, or the connection is gone
        return None


def _without_plan(message: str) -> str:
    """Return Spark's words without the query plan and the JVM's stack that it may append."""
    return message.split(";\n", 1)[0].split("\n\tat ", 1)[0].strip()
