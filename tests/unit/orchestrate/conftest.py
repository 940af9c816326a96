"""An engine over a catalog whose views may lag."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine.orchestrate.backend import databricks_backend
from delta_engine.orchestrate.orchestrator import Orchestrator
from tests.builders import engines
from tests.builders.deployment import deployment_over
from tests.fakes.faulty import Faulty
from tests.fakes.unity_catalog import FakeUnityCatalog


@pytest.fixture
def runner() -> Faulty:
    catalog = FakeUnityCatalog()
    catalog.describes_keys = True
    return Faulty(catalog)


@pytest.fixture
def engine(runner: Faulty, tmp_path: Path) -> Orchestrator:
    backend = databricks_backend(runner, parallelism=1)
    return engines.engine_over(backend, deployment_over(tmp_path), parallelism=1, with_histories=True)
