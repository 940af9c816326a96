"""Data changes on real Delta: random tables, writers beside the run, kills between any two statements, and the rows."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from delta_engine.execute.action_runner import ApplyFailedError
from tests.integration.changed_warehouse import Warehouse
from tests.integration.data_changes import Kill
from tests.proofs import examples

SEEDS = range(examples(2, 60))


@pytest.fixture(autouse=True)
def readers_agree() -> None:
    """Read tables in one way here: other tests hold both readers against each other, which takes long."""


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_is_lost_or_converted_twice(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    warehouse = Warehouse(spark, tmp_path, random)
    writer, shapes = warehouse.writer, [*warehouse.shapes.values()]
    warehouse.sync([shape.before for shape in shapes])
    for shape in shapes:
        writer.fill(shape)
    models = [shape.after for shape in shapes]

    for _ in range(random.choice([0, 1, 1, 2])):
        with suppress(Kill, ApplyFailedError):
            warehouse.sync(models, warehouse.disturbed(kill_at=random.randrange(40)))
    with suppress(
        ApplyFailedError
    ):  # a writer may add a row without a value before the column becomes NOT NULL
        warehouse.sync(models, warehouse.disturbed())
    warehouse.sync(models)

    for shape in shapes:
        assert writer.found(shape) == [shape.expected(row) for row in writer.rows[shape.name]]
    assert not warehouse.has_changes(models)
