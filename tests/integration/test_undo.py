"""Undo on real Delta: rows and definitions as they were, or a refusal that keeps the rows of later writers."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from delta_engine.execute.action_runner import ApplyFailedError
from tests.integration.changed_warehouse import Warehouse
from tests.integration.data_changes import Kill, KilledRunner
from tests.proofs import examples

SEEDS = range(examples(2, 40))


@pytest.fixture(autouse=True)
def readers_agree() -> None:
    """Read tables in one way here: other tests hold both readers against each other, which takes long."""


@pytest.mark.parametrize("seed", SEEDS)
def test_an_undo_brings_everything_back_and_can_be_undone(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    warehouse = Warehouse(spark, tmp_path, random)
    shapes = [*warehouse.shapes.values()]
    models = [shape.after for shape in shapes]

    def killed(most: int) -> KilledRunner:
        return KilledRunner(warehouse.backend.runner, random.randrange(most), random.random() < 0.5)

    warehouse.sync([shape.before for shape in shapes])
    for shape in shapes:
        warehouse.writer.fill(shape)
    before = warehouse.tables()
    kills = random.choice([0, 1, 2])
    for _ in range(kills):
        with suppress(Kill):
            warehouse.sync(models, killed(30))
    is_finished = not kills or random.random() < 0.7
    if is_finished:
        warehouse.sync(models)
    after = warehouse.tables()
    brought_back, refused = warehouse.judged()  # of the last run: a killed one may have finished other tables
    assert not refused
    former = {name: (before if name in brought_back else after)[name] for name in before}

    is_half_done = False  # even with all tables as they were: the next undo continues it
    for _ in range(random.choice([0, 1, 2])):
        if warehouse.tables() != former:
            is_half_done = True
            with suppress(Kill):
                warehouse.undo(killed(3))
                is_half_done = False
    if warehouse.tables() != former:
        warehouse.undo()
        is_half_done = False
    assert warehouse.tables() == former
    if is_finished and not is_half_done:
        redone, _ = warehouse.judged()  # of the last undo
        warehouse.undo()
        assert warehouse.tables() == {name: (after if name in redone else former)[name] for name in before}


@pytest.mark.parametrize("seed", range(examples(1, 40)))
def test_an_undo_keeps_the_rows_of_later_writers(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    warehouse = Warehouse(spark, tmp_path, random)
    writer, shapes = warehouse.writer, [*warehouse.shapes.values()]
    warehouse.sync([shape.before for shape in shapes])
    for shape in shapes:
        writer.fill(shape)
    before = warehouse.tables()
    models = [shape.after for shape in shapes]
    written = {shape.name: len(writer.rows[shape.name]) for shape in shapes}
    if random.random() < 0.5:
        with suppress(ApplyFailedError):
            warehouse.sync(models, warehouse.disturbed())
    warehouse.sync(models)
    writer.append(shapes[0])
    later = {shape.before.key for shape in shapes if len(writer.rows[shape.name]) > written[shape.name]}
    after = warehouse.tables()
    brought_back, refused = warehouse.judged()
    assert not brought_back & later
    assert refused == (brought_back | refused) & later
    warehouse.undo(skips_refused=True)
    found = warehouse.tables()
    assert found == {name: (before if name in brought_back else after)[name] for name in before}
