"""Ctrl-C while Spark starts for the first statement of a sync: nothing began, and the next sync does all of it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from delta_engine.backends.local_jars import java
from tests.faults.killed_sync import CONFIG, models

pytestmark = pytest.mark.integration

PATIENCE_SECONDS = 240


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conf" / "models").mkdir(parents=True)
    (tmp_path / "conf" / "local.yml").write_text(CONFIG)
    (tmp_path / "conf" / "models" / "tables.yml").write_text(models(0))
    return tmp_path


def test_an_interrupted_start_of_spark(folder: Path) -> None:
    started = folder / "started"
    program = folder / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\ntouch "{started}"\nexec "{java()}" "$@"\n')
    program.chmod(0o755)
    sync = subprocess.Popen(
        [str(Path(sys.executable).with_name("delta-engine")), "-e", "local", "sync", "--yes"],
        cwd=folder,
        env={**os.environ, "JAVA_HOME": str(program.parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as a terminal's foreground group: Ctrl-C goes to the JVM too
    )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(sync.pid, signal.SIGINT)
    # a Java that was left running would hold the pipes open
    _, errors = sync.communicate(timeout=PATIENCE_SECONDS)
    assert sync.returncode == 130, errors
    assert errors.endswith("stopped: nothing was changed\n")
    assert "created" not in errors
    state = folder / ".delta-engine" / "state"
    assert not any((state / "local.journal").glob("*"))
    assert not (folder / ".delta-engine" / "warehouse").exists()
