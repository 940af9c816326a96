"""The Databricks store on real Delta: what a commit must do for heads and locks.

`tests/servers/test_databricks_store.py` covers the rest without Spark.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.deployment.errors import ConflictError, StaleStateError, StoreError, UncertainWriteError
from delta_engine.deployment.locks.lease import LeaseLock
from delta_engine.deployment.stores.databricks import DatabricksStateStore, DeltaLockRecords
from delta_engine.deployment.stores.delta_row import DeltaRow
from tests.builders.deployment import HOLDER, deployment_state
from tests.cases.store_contract import check_lock_records, check_state_store
from tests.fakes.files_api import FakeFilesApi, fake_files_api
from tests.fakes.workspace import FakeWorkspace, answer_of, open_runner, serving
from tests.integration.counter_increments import increment, repository, volume_files

ROOT = Path(__file__).parents[2]


@pytest.fixture
def api() -> Iterator[FakeFilesApi]:
    with fake_files_api() as running:
        yield running


@pytest.fixture
def runner(spark: SparkSession) -> SparkSqlRunner:
    return SparkSqlRunner(spark)


@pytest.fixture
def warehouse(runner: SparkSqlRunner) -> Iterator[SqlRunner]:
    """Return a runner of a SQL warehouse: statements over HTTP, run by Spark."""
    with serving(FakeWorkspace(run=lambda sql: answer_of(runner.run(sql)))) as workspace:
        yield open_runner(workspace)


@pytest.mark.long
@pytest.mark.parametrize("name", ["runner", "warehouse"])
def test_it_keeps_the_contract(
    name: str, request: pytest.FixtureRequest, api: FakeFilesApi, tmp_path: Path
) -> None:
    sql: SqlRunner = request.getfixturevalue(name)
    environment, heads = "it's `test`", f"delta.`{tmp_path / 'heads'}`"
    files = volume_files(api.host, environment)
    check_state_store(lambda: DatabricksStateStore(sql, files, heads=heads, environment=environment))
    check_lock_records(lambda: DeltaLockRecords(sql, f"delta.`{tmp_path / 'locks'}`", environment))


@pytest.mark.long
def test_its_lock_counts_up_in_one_row(runner: SparkSqlRunner, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path / 'locks'}`"
    lock = LeaseLock(DeltaLockRecords(runner, table, "lease"), lease_seconds=120)
    lease = lock.acquire(HOLDER, timeout_seconds=0)
    assert lock.holder() == HOLDER
    (row,) = runner.run(f"SELECT who, operation, fence, released FROM {table} WHERE environment = 'lease'")
    assert dict(row) == {"who": HOLDER.who, "operation": "sync", "fence": 1, "released": False}
    lease.release()
    assert lock.acquire(HOLDER, timeout_seconds=0).fence == 2


def test_of_two_first_saves_one_wins(runner: SparkSqlRunner, tmp_path: Path) -> None:
    def first(number: int) -> bool:
        row = DeltaRow(
            runner, f"delta.`{tmp_path / 'heads'}`", "test", {"by": int}, "heads", one_of_several=""
        )
        try:
            row.replace({"by": number}, None)
        except (ConflictError, StoreError):
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(first, range(2))) == 1
    (row,) = runner.run(f"SELECT count(*) AS rows FROM delta.`{tmp_path / 'heads'}`")
    assert row["rows"] == 1


@pytest.mark.long
def test_two_processes_lose_nothing(runner: SparkSqlRunner, api: FakeFilesApi, tmp_path: Path) -> None:
    documents = repository(runner, tmp_path, api.host)
    module = "tests.integration.counter_increments"
    command = [sys.executable, "-m", module, "them", "6", str(tmp_path), api.host]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        for _ in range(3):
            increment(documents, "us")
        assert other.wait() == 0
    loaded = documents.load()
    assert loaded is not None
    assert loaded.state.environment.variables == {"catalog": "dev", "us": "3", "them": "6"}
    assert loaded.state.serial == 9


def test_zero_affected_rows_are_a_conflict(runner: SparkSqlRunner, api: FakeFilesApi, tmp_path: Path) -> None:
    documents = repository(runner, tmp_path, api.host)
    base = documents.save(deployment_state(serial=0), None)
    documents.save(base.state, base)
    with pytest.raises(StaleStateError):
        documents.save(base.state, base)
    blobs = [path for path in api.files if "/documents/" in path]
    assert len(blobs) == 2  # the loser's is removed


def test_delta_says_which_condition_a_conflict_is(runner: SparkSqlRunner, tmp_path: Path) -> None:
    row = DeltaRow(runner, f"delta.`{tmp_path / 'heads'}`", "test", {"by": int}, "heads", one_of_several="")
    row.replace({"by": 0}, None)
    errors: list[Exception] = []

    def race(number: int) -> None:
        try:
            row.replace({"by": number}, {"by": 0})
        except (ConflictError, UncertainWriteError) as error:
            errors.append(error)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(race, range(1, 5)))
    assert [type(error) for error in errors] == [ConflictError] * 3
