"""Ctrl-C and a cancelled job, on a real process: exit code, lock, document, and the run after it."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from delta_engine.deployment.stores.local import LocalJournalStore, LocalStateStore
from delta_engine.ownership.recorded import Status
from tests.builders.deployment import repository_over
from tests.faults.slow_sync import MODELS

PATIENCE_SECONDS = 60


@contextmanager
def started(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a sync, and end it if a test breaks off."""
    command = [sys.executable, "-m", "tests.faults.slow_sync", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(process: subprocess.Popen[str], folder: Path, begun: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (folder / f"{begun}.begun").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


def read_line(process: subprocess.Popen[str], text: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"{text!r} was never said")


def healthy_tables(folder: Path) -> set[str]:
    loaded = repository_over(LocalStateStore(folder / "state", "test"), folder).load()
    assert loaded is not None
    resources = loaded.state.resources.items()
    healthy = {key for key, resource in resources if resource.status is Status.HEALTHY}
    return {key.removeprefix("table.") for key in healthy if key.startswith("table.")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sync_records_what_it_did_and_frees_the_lock(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "hold").touch()
    with started(tmp_path) as process:
        wait_for(process, tmp_path, 1)  # both threads have one
        process.send_signal(number)
        assert "waiting for 2 running statements" in read_line(process, "stopping")
        process.send_signal(number)
        read_line(process, "still waiting")
        read_line(process, "  dev.silver.t")  # a running one; "stopped dev.silver.t…" may come first
        (tmp_path / "hold").unlink()
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 130, errors
    assert "stopped: 2 of 40 tables were done, 0 in part, 38 not begun." in errors
    done = {path.name for path in tmp_path.glob("dev.silver.*")}
    assert len(done) == 2
    assert healthy_tables(tmp_path) == done
    assert not LocalJournalStore(tmp_path / "state", "test").read()
    with started(tmp_path) as process:  # which needs the lock
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, errors
    assert healthy_tables(tmp_path) == {model.qualified_name.key for model in MODELS}
