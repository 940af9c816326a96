"""Two syncs of one environment at once, with real Spark, each a process of its own."""

import json
from pathlib import Path

import pytest

from tests.projects.processes import started

pytestmark = [pytest.mark.integration, pytest.mark.long]


def test_both_end_well_and_nothing_is_lost(project: Path) -> None:
    syncs = [started("sync", "--yes") for _ in range(2)]
    outputs = [sync.communicate() for sync in syncs]
    assert [sync.returncode for sync in syncs] == [0, 0], outputs
    texts = sorted(output for output, _ in outputs)
    assert any("applied: 1 schema, 1 table" in text for text in texts)
    assert any("no changes (1 model)" in text for text in texts)
    document = json.loads((project / ".delta-engine" / "state" / "local.state.json").read_bytes())
    assert document["serial"] == 2
    assert document["resources"]["table.dev.silver.orders"]["status"] == "healthy"
