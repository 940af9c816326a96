"""The native store through a SQL warehouse: statements over HTTP, heads and locks in real Delta tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.warehouse_sql_runner import WarehouseSqlRunner
from delta_engine.deployment.errors import ConflictError
from delta_engine.deployment.stores.databricks import DatabricksStateStore, DeltaLockRecords
from tests.cases.store_contract import check_lock_records, check_state_store, document, identity
from tests.fakes.workspace import FakeWorkspace, answer_of, open_runner, serving
from tests.integration.counter_increments import volume_files


@pytest.fixture
def workspace(spark: SparkSession) -> Iterator[FakeWorkspace]:
    real = SparkSqlRunner(spark)
    with serving(FakeWorkspace(run=lambda sql: answer_of(real.run(sql)))) as running:
        yield running


@pytest.fixture
def runner(workspace: FakeWorkspace) -> WarehouseSqlRunner:
    return open_runner(workspace)


def store(runner: WarehouseSqlRunner, workspace: FakeWorkspace, folder: Path) -> DatabricksStateStore:
    return DatabricksStateStore(
        runner,
        volume_files(workspace.host, "it's `test`"),
        heads=f"delta.`{folder / 'heads'}`",
        environment="it's `test`",
    )


@pytest.mark.long
def test_it_keeps_the_contract(runner: WarehouseSqlRunner, workspace: FakeWorkspace, tmp_path: Path) -> None:
    check_state_store(lambda: store(runner, workspace, tmp_path))
    check_lock_records(lambda: DeltaLockRecords(runner, f"delta.`{tmp_path / 'locks'}`", "it's `test`"))


def test_a_save_whose_answer_is_lost_is_found_again(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, tmp_path: Path
) -> None:
    documents = store(runner, workspace, tmp_path)
    first = documents.replace(document(1), identity(1), None)
    workspace.faults = {"ask": ["lost", "500", "429"]}
    second = documents.replace(document(2), identity(2), first)
    assert documents.read() == second
    with pytest.raises(ConflictError):
        documents.replace(document(3), identity(3), first)
