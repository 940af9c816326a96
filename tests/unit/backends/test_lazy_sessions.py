"""A lazy session opens once, for the first statement, whichever thread runs it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from delta_engine.backends.spark_sql_runner import LazySparkSqlRunner
from delta_engine.errors import MissingDependencyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session() -> SparkSession:
    """Return a session that answers every statement with no rows, and every address with its own text."""
    return cast(
        "SparkSession",
        SimpleNamespace(
            sql=lambda _sql: SimpleNamespace(collect=list),
            table=lambda address: SimpleNamespace(schema=address),
        ),
    )


class Opening:
    """Opens sessions, and counts them; the first `failures` times without success."""

    def __init__(self, failures: int = 0) -> None:
        self.times = 0
        self._failures = failures

    def __call__(self) -> SparkSession:
        self.times += 1
        if self.times <= self._failures:
            raise MissingDependencyError("no Java")
        return session()


def test_nothing_opens_before_the_first_statement() -> None:
    opening = Opening()
    runner = LazySparkSqlRunner(opening)
    assert opening.times == 0
    assert list(runner.run("SELECT 1")) == []
    assert runner.schema("`t`")[0] == cast("object", "`t`")
    runner.start()
    assert opening.times == 1


def test_statements_of_several_threads_share_one_session() -> None:
    opening, ready = Opening(), threading.Barrier(4)
    runner = LazySparkSqlRunner(opening)

    def run(_number: int) -> object:
        ready.wait(10)
        return runner.run("SELECT 1")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    assert opening.times == 1


def test_a_session_that_did_not_open_is_tried_again() -> None:
    opening = Opening(failures=1)
    runner = LazySparkSqlRunner(opening)
    with pytest.raises(MissingDependencyError, match="no Java"):
        runner.run("SELECT 1")
    assert list(runner.run("SELECT 1")) == []
