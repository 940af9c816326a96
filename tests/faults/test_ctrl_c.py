"""Ctrl-C on the real command, with real Spark: what runs is finished and recorded, and the next run does the rest."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.killed_sync import CONFIG, TABLES, models

pytestmark = pytest.mark.integration

PATIENCE_SECONDS = 240


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conf" / "models").mkdir(parents=True)
    (tmp_path / "conf" / "local.yml").write_text(CONFIG)
    (tmp_path / "conf" / "models" / "tables.yml").write_text(models(0))
    return tmp_path


def command(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("delta-engine")), "-e", "local", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as a terminal's foreground group: Ctrl-C goes to the JVM too
    )


@pytest.mark.long
def test_ctrl_c_in_the_middle(folder: Path) -> None:
    sync = command(folder, "sync", "--yes")
    assert sync.stderr is not None
    first = next(line for line in sync.stderr if line.startswith("created dev.silver."))
    os.killpg(sync.pid, signal.SIGINT)
    # `communicate` would lose the lines that came together with the first
    errors = first + sync.stderr.read()
    assert sync.wait(PATIENCE_SECONDS) == 130, errors
    done = errors.count("created dev.silver.")
    assert 0 < done < TABLES
    assert f"stopped: {done} of {TABLES} tables were done, 0 in part, " in errors
    assert not any((folder / ".delta-engine" / "state" / "local.journal").glob("*"))
    further = command(folder, "sync", "--yes")
    output, errors = further.communicate(timeout=PATIENCE_SECONDS)
    assert further.returncode == 0, errors
    assert f"applied: {TABLES - done} tables, " in output
