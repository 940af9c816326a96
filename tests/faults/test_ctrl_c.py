"""Ctrl-C on the real command, with real Spark: what runs is finished and recorded, and the next run does the rest.

While Spark starts, it is heard when Java is under control, so that none is left running.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from delta_engine.backends.local_jars import java
from tests.faults.killed_sync import CONFIG, TABLES, models
from tests.projects.processes import started

pytestmark = pytest.mark.integration

PATIENCE_SECONDS = 240

PROGRAM = """
import os, signal, sys
from pathlib import Path
from threading import Timer

import pyspark.java_gateway
from pyspark import SparkContext

from delta_engine.backends.spark_sessions import open_local_session


def launch_java(*arguments, **options):
    java = start(*arguments, **options)
    os.kill(os.getpid(), signal.SIGINT)
    return java


def set_log_level(context, level):
    Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    context._jvm.java.lang.Thread.sleep(2000)


if sys.argv[2] == "launching":
    start, pyspark.java_gateway.Popen = pyspark.java_gateway.Popen, launch_java
else:
    SparkContext.setLogLevel = set_log_level
try:
    open_local_session({}, scratch=Path(sys.argv[1]))
except KeyboardInterrupt:
    print("interrupted, Spark is up:", SparkContext._active_spark_context is not None)
"""


def printed_by(program: str, *arguments: str) -> str:
    """Return what a program prints. A Java that was left running would hold stdout open, and this would not end."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS, check=False
    ).stdout


@pytest.mark.parametrize("moment", ["launching", pytest.param("asking", marks=pytest.mark.long)])
def test_spark_is_started_whole(tmp_path: Path, moment: str) -> None:
    """Right after Java was launched, and while the main thread waits for an answer of Java's."""
    assert printed_by(PROGRAM, str(tmp_path), moment) == "interrupted, Spark is up: True\n"


@pytest.mark.long
def test_pysparks_handler_is_in_force_afterwards(tmp_path: Path) -> None:
    program = PROGRAM.split("def launch_java")[0] + (
        "for _ in range(2):\n"
        "    open_local_session({}, scratch=Path(sys.argv[1]))\n"
        "    print(signal.getsignal(signal.SIGINT).__module__)\n"
    )
    assert printed_by(program, str(tmp_path)) == "pyspark.core.context\n" * 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conf" / "models").mkdir(parents=True)
    (tmp_path / "conf" / "local.yml").write_text(CONFIG)
    (tmp_path / "conf" / "models" / "tables.yml").write_text(models(0))
    return tmp_path


def test_an_interrupted_start_of_spark(folder: Path) -> None:
    """Nothing began, and the next sync does all of it."""
    java_started = folder / "started"
    program = folder / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\ntouch "{java_started}"\nexec "{java()}" "$@"\n')
    program.chmod(0o755)
    sync = started("sync", "--yes", folder=folder, JAVA_HOME=str(program.parents[1]))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not java_started.exists() and time.monotonic() < deadline:
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


@pytest.mark.long
def test_ctrl_c_in_the_middle(folder: Path) -> None:
    sync = started("sync", "--yes", folder=folder)
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
    further = started("sync", "--yes", folder=folder)
    output, errors = further.communicate(timeout=PATIENCE_SECONDS)
    assert further.returncode == 0, errors
    assert f"applied: {TABLES - done} tables, " in output
