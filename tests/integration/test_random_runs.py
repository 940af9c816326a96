"""Random runs on real Delta that change rows: killed, continued, verified, undone, with writers of other sessions.

`Writer` keeps its own account of the rows, and an undo has to bring back rows and definitions, or to refuse.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from delta_engine.execute.action_runner import ApplyFailedError
from tests.builders.worlds import Kill
from tests.integration.changed_warehouse import Tables, Warehouse
from tests.proofs import examples

RUNS = range(examples(8, 500))


@pytest.fixture(autouse=True)
def readers_agree() -> None:
    """Read tables in one way here: other tests hold both readers against each other, which takes long."""


@pytest.mark.parametrize("seed", RUNS)
def test_no_row_is_lost_on_the_way_and_back(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    warehouse = Warehouse(spark, tmp_path, random, tables=random.choice([1, 1, 1, 2]))
    before, written = warehouse.tables(), warehouse.written()
    has_writers = random.random() < 0.4
    kills = random.choice([0, 1])
    for _ in range(kills):
        kill(warehouse, has_writers=has_writers)
    is_finished = not kills or random.random() < 0.8
    if is_finished:
        finish(warehouse, has_writers=has_writers)
    if has_writers:
        warehouse.writer.append(random.choice([*warehouse.shapes.values()]))
    undo(warehouse, before, written, is_redone=is_finished)


def kill(warehouse: Warehouse, *, has_writers: bool) -> None:
    """Kill a sync before or after one of its statements."""
    runner = warehouse.killed(warehouse.changes(warehouse.after))
    with suppress(Kill, ApplyFailedError):
        warehouse.sync(warehouse.after, warehouse.disturbed(runner) if has_writers else runner)


def finish(warehouse: Warehouse, *, has_writers: bool) -> None:
    """Continue, and hold all rows against those that the writers meant."""
    if has_writers:
        with suppress(ApplyFailedError):  # a writer may add a row without a value right before NOT NULL
            warehouse.sync(warehouse.after, warehouse.disturbed(warehouse.backend.runner))
    warehouse.sync(warehouse.after)
    warehouse.require_all_rows()
    assert not warehouse.changes(warehouse.after)
    warehouse.require_no_drift()


def undo(warehouse: Warehouse, before: Tables, written: dict[str, int], *, is_redone: bool) -> None:
    """Undo the last run, perhaps killed in between: a table is as before, or refused because of later rows."""
    random, after = warehouse.random, warehouse.tables()
    later = {key for key, rows in warehouse.written().items() if rows > written[key]}
    brought_back, refused = warehouse.judged()
    assert not brought_back & later
    assert refused == (brought_back | refused) & later
    former = {key: (before if key in brought_back else after)[key] for key in before}
    is_killed = random.random() < 0.3
    try:
        warehouse.undo(warehouse.killed(3) if is_killed else None)
        is_killed = False
    except Kill:
        if warehouse.tables() != former:
            warehouse.undo()
    assert warehouse.tables() == former
    warehouse.require_no_drift()
    if is_redone and not is_killed and not refused and random.random() < 0.3:
        redone, _ = warehouse.judged()
        warehouse.undo()
        assert warehouse.tables() == {key: (after if key in redone else former)[key] for key in before}
