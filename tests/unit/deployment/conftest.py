"""The platform and the deployment state that runs have here, unless a test brings its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.stores.local import LocalJournalStore, LocalStateStore
from tests.builders.deployment import deployment_over
from tests.fakes.platform import FakePlatform


@pytest.fixture
def platform() -> FakePlatform:
    return FakePlatform()


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return deployment_over(
        tmp_path, store=LocalStateStore(tmp_path, "test"), journals=LocalJournalStore(tmp_path, "test")
    )
