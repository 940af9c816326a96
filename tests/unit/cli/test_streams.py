"""Commands whose output goes where nobody reads it any more, where there is no room, or where few characters fit."""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.faults.slow_sync import MODELS

DELTA_ENGINE = [sys.executable, "-m", "delta_engine"]


def sync(folder: Path, *, stdout: int | IO[str], stderr: int | IO[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.faults.slow_sync", str(folder)]
    return subprocess.Popen(command, text=True, stdout=stdout, stderr=stderr)


def applied(folder: Path) -> int:
    return len(list(folder.glob("dev.silver.*")))


def test_a_run_goes_on_when_nobody_listens_any_more(tmp_path: Path) -> None:
    process = sync(tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    process.stderr.close()  # as `2>&1 | head` does
    stdout, _ = process.communicate(timeout=120)
    assert (process.returncode, applied(tmp_path)) == (0, len(MODELS))
    assert stdout.startswith(f"applied: {len(MODELS)} tables")


def test_results_that_cannot_be_written_are_told_of_and_end_no_run(tmp_path: Path) -> None:
    with Path(os.devnull).open() as stdout:  # for reading alone
        process = sync(tmp_path, stdout=stdout, stderr=subprocess.PIPE)
        _, stderr = process.communicate(timeout=120)
    assert (process.returncode, applied(tmp_path)) == (1, len(MODELS))
    assert stderr.endswith("\nfailed: input or output failed: Bad file descriptor\n")
    assert "Traceback" not in stderr


@pytest.mark.parametrize("arguments", [["--help"], ["rules"]])
def test_what_an_encoding_lacks_is_spelled_out(arguments: list[str]) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    result = subprocess.run(
        [*DELTA_ENGINE, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.isascii()
