"""Every yes of docs/backends.md for `oss`, walked on real Delta."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.backends.capabilities import OPEN_SOURCE, Feature
from delta_engine.orchestrate.backend import embedded_backend
from tests.builders.deployment import deployment_over
from tests.cases.capability_walks import engine_over, walk

PROVED_ELSEWHERE = {
    Feature.CHECKS,  # test_constraints.py
    Feature.CLUSTERING,  # test_round_trips.py
    Feature.COLUMN_ORDER,  # test_table_contract.py
    Feature.COLUMN_RENAMES,  # test_table_contract.py
    Feature.COMMENTS,  # test_round_trips.py
    Feature.DEFAULTS,  # test_table_contract.py
    Feature.FOREIGN_KEYS,  # test_constraints.py
    Feature.NOT_NULL,  # test_worked_example.py
    Feature.PARTITIONING,  # test_table_contract.py
    Feature.PRIMARY_KEYS,  # test_constraints.py
    Feature.REPARTITIONING,  # test_rewrites.py
    Feature.TYPE_WIDENING,  # test_type_widening.py
}
"""Features that other tests of a short run change on real Delta."""

FEATURES = [
    pytest.param(feature, marks=[pytest.mark.long] if feature in PROVED_ELSEWHERE else [])
    for feature in Feature
    if feature not in OPEN_SOURCE.refused
]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_oss(feature: Feature, spark: SparkSession, tmp_path: Path) -> None:
    backend = embedded_backend(spark, tmp_path / "warehouse")
    walk(engine_over(backend, deployment_over(tmp_path)), feature)
