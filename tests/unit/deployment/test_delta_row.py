"""The row of a Delta table, without Delta: what it makes of a table that is not seen yet."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from delta_engine.deployment.databricks.delta_row import DeltaRow
from delta_engine.deployment.errors import StoreError
from delta_engine.errors import StatementError
from delta_engine.sql_runner import Row


class LateTable:
    """Says of a table that was just made that it is not there, so many times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.statements: list[str] = []

    def run(self, sql: str) -> Sequence[Row]:
        verb = sql.split()[0]
        self.statements.append(verb)
        if verb == "CREATE":
            return []
        if self.times:
            self.times -= 1
            raise StatementError("it does not exist", sql=sql, error_class="DELTA_TABLE_NOT_FOUND")
        return [{"num_affected_rows": 1}]


def row_over(runner: LateTable) -> DeltaRow:
    return DeltaRow(runner, "dev.ops.locks", "prod", {"fence": int}, "locks")


def test_a_table_that_somebody_else_makes_as_well_is_seen_in_a_moment() -> None:
    runner = LateTable(times=2)
    row_over(runner).replace({"fence": 1}, expected=None)
    assert runner.statements == ["CREATE", "MERGE", "MERGE", "MERGE"]


def test_a_table_that_stays_away_is_an_error() -> None:
    runner = LateTable(times=9)
    with pytest.raises(StoreError, match="it does not exist"):
        row_over(runner).replace({"fence": 1}, expected=None)
    assert runner.statements == ["CREATE", "MERGE", "MERGE", "MERGE"]


def test_a_row_that_was_there_is_not_asked_for_again() -> None:
    runner = LateTable(times=1)
    with pytest.raises(StoreError):
        row_over(runner).replace({"fence": 2}, expected={"fence": 1})
    assert runner.statements == ["UPDATE"]
