"""A SQL warehouse that misbehaves on demand, and its runner: real databricks-sdk over real HTTP."""

from collections.abc import Iterator

import pytest

from tests.fakes.workspace import FakeWorkspace, serving
from tests.servers.warehouse_runner.warehouses import ONE, Warehouse


@pytest.fixture
def warehouse() -> Iterator[Warehouse]:
    with serving(FakeWorkspace(run=lambda _sql: ONE)) as workspace:
        yield Warehouse(workspace)
