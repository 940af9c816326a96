"""A fake workspace with the runner of its warehouse, and the clock that both use."""

from collections.abc import Sequence

import pytest

from delta_engine.backends.databricks_sdk import Calls
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from tests.fakes.workspace import Answer, FakeWorkspace, open_runner

CHANGE = "ALTER TABLE dev.silver.orders ADD COLUMNS (a INT)"
QUERY = "SELECT 1 AS one"
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


class Warehouse:
    """A warehouse whose workspace a test controls, and its runner."""

    def __init__(
        self, workspace: FakeWorkspace, time: Time | None = None, *, timeout_seconds: float | None = None
    ) -> None:
        self.workspace = workspace
        self.time = time or Time()
        self.notes: list[str] = []
        calls = Calls(pause=self.time.pause, clock=self.time)
        self._runner = open_runner(
            workspace, notify=self.notes.append, timeout_seconds=timeout_seconds, calls=calls
        )

    def run(self, sql: str) -> Sequence[Row]:
        return self._runner.run(sql)

    def refused(self, sql: str) -> StatementError:
        with pytest.raises(StatementError) as caught:
            self._runner.run(sql)
        assert caught.value.sql == sql
        return caught.value
