"""A workspace that misbehaves on demand, and the runner of its warehouse: real databricks-sdk over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from delta_engine.backends.warehouse.calls import Calls
from delta_engine.backends.warehouse_sql_runner import WarehouseSqlRunner
from tests.servers.fake_workspace import FakeWorkspace, open_runner, serving
from tests.servers.warehouse_runner.warehouses import ONE, Time


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def workspace() -> Iterator[FakeWorkspace]:
    with serving(FakeWorkspace(run=lambda _sql: ONE)) as running:
        yield running


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def runner(workspace: FakeWorkspace, time: Time, notes: list[str]) -> WarehouseSqlRunner:
    return open_runner(workspace, notify=notes.append, calls=Calls(pause=time.pause, clock=time))
