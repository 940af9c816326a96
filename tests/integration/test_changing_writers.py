"""Writers of other sessions that change rows while a column is converted: no change of theirs is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.models import Column, FillBy, Table, Using
from tests.integration.changed_warehouse import Warehouse

NAME = 'a`m"t'
BEFORE = Table(
    "dev",
    "silver",
    "beside",
    [Column("id", "bigint"), Column(NAME, "string"), Column("note", "string")],
    table_properties={"delta.columnMapping.mode": "name"},
)
AFTER = Table(
    "dev",
    "silver",
    "beside",
    [
        Column("id", "bigint"),
        Column(NAME, "int", using='cast(`a``m"t` AS int)'),
        Column("note", "string", is_nullable=False, using=Using("uuid()", deterministic=False)),
    ],
    table_properties={"delta.columnMapping.mode": "name"},
    fill_by=FillBy("id", ["2"]),
)
COMPARES = "SELECT CASE WHEN one.n"


@dataclass
class Beside:
    """Runs statements, and once, before the first one with these words, what another session writes."""

    runner: SqlRunner
    words: str
    write: Callable[[], object]
    statements: list[str] = field(default_factory=list)
    is_done: bool = False

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement; see `SqlRunner.run`."""
        if self.words in sql and not self.is_done:
            self.is_done = True
            self.write()
        self.statements.append(sql)
        return self.runner.run(sql)


def test_a_changed_value_is_converted_or_kept(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, tmp_path, Random(1), tables=1)
    run = warehouse.backend.runner.run
    address = warehouse.backend.addressing.table(BEFORE.qualified_name)
    warehouse.sync([BEFORE])
    run(f"INSERT INTO {address} SELECT id, string(id), if(id = 3, NULL, 'x') FROM range(5)")

    def write(value: str) -> Callable[[], object]:
        return lambda: run(f"UPDATE {address} SET `a``m\"t` = '{value}' WHERE id = 1")

    during = Beside(warehouse.backend.runner, COMPARES, write("100"))
    warehouse.sync([AFTER], during)
    values_by_id = {row["id"]: row[NAME] for row in warehouse.rows(AFTER)}
    assert values_by_id == {0: 0, 1: 100, 2: 2, 3: 3, 4: 4}
    assert len([sql for sql in during.statements if sql.startswith(COMPARES)]) == 2
    assert not warehouse.changes([AFTER])
    _, amount, note = AFTER.columns
    amount = replace(amount, data_type=BEFORE.columns[1].data_type, using=Using('string(`a``m"t`)'))
    again = replace(AFTER, columns=(*AFTER.columns[:1], amount, note, Column("more", "int")))
    warehouse.sync([again])  # the versions of the first conversion lack the new column
    assert {row["id"]: row[NAME] for row in warehouse.rows(again)} == {
        key: str(n) for key, n in values_by_id.items()
    }


def test_a_value_that_is_changed_right_before_the_swap_is_reported(
    spark: SparkSession, tmp_path: Path
) -> None:
    warehouse = Warehouse(spark, tmp_path, Random(1), tables=1)
    run = warehouse.backend.runner.run
    address = warehouse.backend.addressing.table(BEFORE.qualified_name)
    warehouse.sync([BEFORE])
    run(f"INSERT INTO {address} SELECT id, string(id), 'x' FROM range(5)")
    late = Beside(
        warehouse.backend.runner,
        'TO `delta_engine_old_a``m"t`',
        lambda: run(f"UPDATE {address} SET `a``m\"t` = '100' WHERE id = 1"),
    )
    with pytest.raises(ApplyFailedError, match="1 rows had another value"):
        warehouse.sync([AFTER], late)
    assert {row[f"delta_engine_old_{NAME}"] for row in warehouse.rows(AFTER)} == {"0", "100", "2", "3", "4"}
