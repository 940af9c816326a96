"""Values that differ each time, such as uuid(): a killed run gives none twice, and an undo takes all of them back."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from delta_engine.models import Column, Table, Using
from tests.builders.worlds import Kill
from tests.integration.changed_warehouse import Warehouse
from tests.integration.data_changes import KilledRunner


def test_a_value_that_was_given_is_never_given_again(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, tmp_path, Random(1), tables=1)
    before = (Column("id", "bigint"), Column("amount", "string"), Column("region", "string"))
    after = (
        before[0],
        Column("amount", "double", using=Using("cast(amount AS int) + rand()", deterministic=False)),
        Column("region", "string", is_nullable=False, using="'unknown'"),
        Column("token", "string", is_nullable=False, using=Using("uuid()", deterministic=False)),
    )
    old, new = (Table("dev", "silver", "given", columns) for columns in (before, after))
    address = warehouse.backend.addressing.table(new.qualified_name)
    warehouse.sync([old])
    warehouse.backend.runner.run(
        f"INSERT INTO {address} SELECT id, string(id), if(id < 3, NULL, 'south') FROM range(7)"
    )
    formerly = warehouse.rows(old)
    given: dict[object, set[object]] = {}
    for kill_at, is_after in ((3, True), (4, False), (5, True), (None, False)):
        runner = warehouse.backend.runner
        killed = runner if kill_at is None else KilledRunner(runner, kill_at, is_after, warehouse.life)
        with suppress(Kill):
            warehouse.sync([new], killed)
        for row in warehouse.rows(new):
            for name in ("token", "delta_engine_new_amount"):
                given.setdefault((row["id"], name), set()).add(row.get(name))
            if "delta_engine_new_amount" not in row and not isinstance(row["amount"], str):
                given.setdefault((row["id"], "delta_engine_new_amount"), set()).add(row["amount"])

    rows = warehouse.rows(new)
    assert all(len(values - {None}) == 1 for values in given.values())
    assert len({row["token"] for row in rows}) == len({row["amount"] for row in rows}) == 7
    assert [int(float(str(row["amount"]))) for row in rows] == [row["id"] for row in rows]
    assert not warehouse.changes([new])
    warehouse.undo()
    assert warehouse.rows(old) == formerly
