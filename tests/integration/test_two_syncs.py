"""Two syncs of one environment at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from delta_engine.deployment.locks.file import FileLock
from tests.commandline import CommandLine
from tests.deployment_builders import HOLDER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration


def test_both_end_well_and_nothing_is_lost(project: Path) -> None:
    command = [str(Path(sys.executable).with_name("delta-engine")), "-e", "local", "sync"]
    syncs = [
        subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [sync.communicate() for sync in syncs]
    assert [sync.returncode for sync in syncs] == [0, 0], outputs
    texts = sorted(output for output, _ in outputs)
    assert any("applied: 1 schema, 1 table" in text for text in texts)
    assert any("no changes (1 model)" in text for text in texts)
    document = json.loads((project / ".delta-engine" / "state" / "local.state.json").read_bytes())
    assert document["serial"] == 2
    assert document["resources"]["table.dev.silver.orders"]["status"] == "healthy"


def test_a_locked_environment_is_left_alone_after_a_while(
    spark: SparkSession, delta_engine: CommandLine, project: Path
) -> None:
    config = project / "conf" / "local.yml"
    config.write_text(config.read_text() + "state_backend: {type: local, lock: {timeout_seconds: 0}}\n")
    lease = FileLock(project / ".delta-engine" / "state", "local").acquire(HOLDER, timeout_seconds=0)
    refused = delta_engine("-e", "local", "sync")
    assert refused.code == 4
    assert "note: waiting for the lock: held by ana@example.com on build-7" in refused.stderr
    assert "locked: " in refused.stderr
    assert not (project / ".delta-engine" / "warehouse").exists()
    assert delta_engine("-e", "local", "plan").code == 0  # looking takes no lock
    lease.release()
    assert delta_engine("-e", "local", "sync").code == 0
