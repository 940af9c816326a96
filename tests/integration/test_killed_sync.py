"""A sync that is killed with -9 leaves the truth behind, and the next one converges.

`python -m benchmarks.killed_sync` does the same twenty times.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.faults.killed_sync import Victim

pytestmark = pytest.mark.long


def test_killed_syncs_are_survived(spark: SparkSession, tmp_path: Path) -> None:
    kills = list(Victim(tmp_path / "project", spark, seed=7).kill_syncs(2))
    assert [kill for kill in kills if not kill.is_survived] == []
    assert kills[0].phase == "while applying"
    assert "did not end" in kills[0].notes
