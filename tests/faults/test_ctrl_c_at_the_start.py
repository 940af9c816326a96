"""Ctrl-C while Spark starts: it is heard when Java is under control, so that none is left running."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

PATIENCE_SECONDS = 120

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


@pytest.mark.parametrize("moment", ["launching", pytest.param("asking", marks=pytest.mark.long)])
def test_spark_is_started_whole(tmp_path: Path, moment: str) -> None:
    """Right after Java was launched, and while the main thread waits for an answer of Java's."""
    # a Java that was left running would hold stdout open, and this would not end
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), moment],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.stdout == "interrupted, Spark is up: True\n", done.stderr


@pytest.mark.long
def test_pysparks_handler_is_in_force_afterwards(tmp_path: Path) -> None:
    program = PROGRAM.split("def launch_java")[0] + (
        "for _ in range(2):\n"
        "    open_local_session({}, scratch=Path(sys.argv[1]))\n"
        "    print(signal.getsignal(signal.SIGINT).__module__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.stdout == "pyspark.core.context\n" * 2, done.stderr
