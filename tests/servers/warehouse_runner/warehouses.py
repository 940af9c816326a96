"""What the tests of the warehouse's runner say to it, and the clock that it goes by."""

from __future__ import annotations

import pytest

from delta_engine.backends.warehouse.calls import Calls
from delta_engine.backends.warehouse_sql_runner import WarehouseSqlRunner
from delta_engine.errors import StatementError
from tests.servers.fake_workspace import Answer, FakeWorkspace, open_runner

CHANGE = "ALTER TABLE dev.silver.orders ADD COLUMNS (a INT)"
ONE = Answer([("one", "INT")], [["1"]])


class Time:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def impatient(workspace: FakeWorkspace, time: Time, timeout_seconds: float) -> WarehouseSqlRunner:
    calls = Calls(pause=time.pause, clock=time)
    return open_runner(workspace, timeout_seconds=timeout_seconds, calls=calls)


def refused(runner: WarehouseSqlRunner, sql: str) -> StatementError:
    with pytest.raises(StatementError) as caught:
        runner.run(sql)
    assert caught.value.sql == sql
    return caught.value
