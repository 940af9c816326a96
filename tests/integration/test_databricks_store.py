"""The Databricks store on real Delta: what a commit must do for heads and locks.

`tests/servers/test_databricks_store.py` covers the rest without Spark.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.deployment.errors import (
    ConflictError,
    CorruptStateError,
    StaleStateError,
    StoreError,
    UncertainWriteError,
    UnsavedStateError,
)
from delta_engine.deployment.locks.lease import LeaseLock
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.stores.databricks import DatabricksStateStore, DeltaLockRecords
from delta_engine.deployment.stores.delta_row import DeltaRow
from delta_engine.errors import StatementError
from tests.builders.deployment import HOLDER, deployment_state
from tests.cases.store_contract import (
    check_lock_records,
    check_state_store,
)
from tests.fakes.files_api import FakeFilesApi, fake_files_api
from tests.integration.counter_increments import increment, repository, volume_files

ROOT = Path(__file__).parents[2]


@pytest.fixture
def api() -> Iterator[FakeFilesApi]:
    with fake_files_api() as running:
        yield running


@pytest.fixture
def runner(spark: SparkSession) -> SparkSqlRunner:
    return SparkSqlRunner(spark)


class LosingRunner:
    """Runs a statement and loses its answer, where a part of its text says so.

    Args:
        runner: runs the statements.
        part: the text.
        is_done: whether the statement is run at all.
        times: how often.
    """

    def __init__(self, runner: SqlRunner, part: str, *, is_done: bool, times: int = 1) -> None:
        self._runner = runner
        self._part = part
        self._is_done = is_done
        self._times = times

    def run(self, sql: str) -> Sequence[Row]:
        if self._part not in sql or not self._times:
            return self._runner.run(sql)
        self._times -= 1
        if self._is_done:
            self._runner.run(sql)
        raise StatementError("the connection is gone", sql=sql, error_class=None, is_outcome_unknown=True)


def store_over(
    runner: SqlRunner, api: FakeFilesApi, folder: Path, environment: str = "test"
) -> DatabricksStateStore:
    heads = f"delta.`{folder / 'heads'}`"
    return DatabricksStateStore(
        runner, volume_files(api.host, environment), heads=heads, environment=environment
    )


@pytest.mark.long
def test_it_keeps_the_contract(runner: SparkSqlRunner, api: FakeFilesApi, tmp_path: Path) -> None:
    check_state_store(lambda: store_over(runner, api, tmp_path, "it's `test`"))


@pytest.mark.long
def test_its_lock_keeps_the_contract(runner: SparkSqlRunner, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path / 'locks'}`"
    check_lock_records(lambda: DeltaLockRecords(runner, table, "it's `test`"))
    lock = LeaseLock(DeltaLockRecords(runner, table, "lease"), lease_seconds=120)
    lease = lock.acquire(HOLDER, timeout_seconds=0)
    assert lock.holder() == HOLDER
    (row,) = runner.run(f"SELECT who, operation, fence, released FROM {table} WHERE environment = 'lease'")
    assert dict(row) == {"who": HOLDER.who, "operation": "sync", "fence": 1, "released": False}
    lease.release()
    assert lock.acquire(HOLDER, timeout_seconds=0).fence == 2


def test_a_save_costs_one_statement_and_a_load_one(
    runner: SparkSqlRunner, api: FakeFilesApi, tmp_path: Path
) -> None:
    class Counting:
        def __init__(self) -> None:
            self.statements: list[str] = []

        def run(self, sql: str) -> Sequence[Row]:
            self.statements.append(sql.split()[0])
            return runner.run(sql)

    counting = Counting()
    documents = StateRepository(store_over(counting, api, tmp_path), "test", errored_dir=tmp_path)
    base = documents.save(deployment_state(serial=0), None)
    assert counting.statements == ["CREATE", "MERGE", "SELECT"]
    counting.statements.clear()
    documents.save(base.state, base)
    assert counting.statements == ["UPDATE"]
    counting.statements.clear()
    assert documents.load() is not None
    assert counting.statements == ["SELECT"]


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
    command = [
        sys.executable,
        "-m",
        "tests.integration.counter_increments",
        "them",
        "6",
        str(tmp_path),
        api.host,
    ]
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


@pytest.mark.parametrize("is_done", [True, False])
def test_a_lost_answer_of_the_head_is_found_by_reading_back(
    runner: SparkSqlRunner, api: FakeFilesApi, tmp_path: Path, is_done: bool
) -> None:
    base = repository(runner, tmp_path, api.host).save(deployment_state(serial=0), None)
    losing = LosingRunner(runner, "UPDATE", is_done=is_done)
    saved = repository(losing, tmp_path, api.host).save(base.state, base)
    assert repository(runner, tmp_path, api.host).load() == saved
    down = LosingRunner(runner, "UPDATE", is_done=False, times=9)
    with pytest.raises(UnsavedStateError):
        repository(down, tmp_path, api.host).save(saved.state, saved)


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


def test_several_rows_for_one_environment_are_refused(
    runner: SparkSqlRunner, api: FakeFilesApi, tmp_path: Path
) -> None:
    documents = repository(runner, tmp_path, api.host)
    documents.save(deployment_state(serial=0), None)
    heads = f"delta.`{tmp_path / 'heads'}`"
    runner.run(f"INSERT INTO {heads} SELECT * FROM {heads}")
    with pytest.raises(CorruptStateError, match="there are 2 rows for one environment"):
        documents.load()
