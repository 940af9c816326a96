"""Every yes of docs/capabilities.md for `oss`, walked on real Delta."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from delta_engine.backends.capabilities import OPEN_SOURCE, Feature
from delta_engine.orchestrate.backend import embedded_backend
from tests.capability_walks import engine_over, walk
from tests.deployment_builders import deployment_over

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    "feature", [one for one in Feature if one not in OPEN_SOURCE.refused], ids=lambda feature: feature.name
)
def test_oss(feature: Feature, spark: SparkSession, tmp_path: Path) -> None:
    backend = embedded_backend(spark, tmp_path / "warehouse")
    walk(engine_over(backend, deployment_over(tmp_path)), feature)
