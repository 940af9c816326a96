"""Disks that are full or cannot be written: nothing is lost, and the message says where to look."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from delta_engine.config.whole_files import write_atomically
from delta_engine.deployment.errors import StoreError, UnsavedStateError
from delta_engine.deployment.locks.file import FileLock
from delta_engine.deployment.stores.local import LocalJournalStore, LocalStateStore
from tests.builders.deployment import HOLDER, deployment_state, repository_over
from tests.builders.models import orders

ROOT = Path(__file__).parents[2]

SAVE_ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from delta_engine.deployment.errors import UnsavedStateError
from delta_engine.deployment.stores.local import LocalJournalStore, LocalStateStore
from tests.builders.models import orders
from tests.builders.deployment import deployment_state, repository_over

folder = Path(sys.argv[1])
repository = repository_over(LocalStateStore(folder, "test"), folder)
base = repository.load()
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))  # what a full disk does, to root as well
try:
    repository.save(deployment_state(*(orders(name=f"t{n}") for n in range(200))), base)
except UnsavedStateError as error:
    print(error)
journals = LocalJournalStore(folder, "test")
try:
    for position in range(100):
        journals.append("run", position, b"x" * 1000)
except Exception as error:
    print(type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journals.append("run", 100, b"after it")
"""


def test_a_full_disk_leaves_the_old_document(tmp_path: Path) -> None:
    repository = repository_over(LocalStateStore(tmp_path, "test"), tmp_path)
    base = repository.save(deployment_state(orders(), serial=0), None)
    command = [sys.executable, "-c", SAVE_ON_A_FULL_DISK, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    message, *_, journal = done.stdout.splitlines()
    assert "cannot be written: File too large" in message
    assert "Make room" in message
    assert journal == "StoreError"
    assert repository.load() == base
    lines = LocalJournalStore(tmp_path, "test").read()["run"]
    assert (set(lines), lines[-1]) == ({b"x" * 1000, b"after it"}, b"after it")  # none is torn
    assert not list(tmp_path.glob(".*.tmp"))
    assert "nor written to" in done.stdout
    assert not list(tmp_path.glob("errored-*"))
    repository.save(base.state, base)


@pytest.fixture
def blocked(tmp_path: Path) -> Path:
    """Return a folder that not even root can make: a file is in its place."""
    (tmp_path / "a file").write_text("")
    return tmp_path / "a file"


def test_a_folder_that_cannot_be_written(blocked: Path, tmp_path: Path) -> None:
    repository = repository_over(LocalStateStore(blocked, "test"), tmp_path / "run")
    with pytest.raises(UnsavedStateError, match=r"It lies in .*errored-1\.json"):
        repository.save(deployment_state(orders(), serial=0), None)
    errored = tmp_path / "run" / "errored-1.json"
    assert repository.decode(errored.read_bytes(), where=str(errored)).resources
    with pytest.raises(StoreError, match="cannot be locked"):
        FileLock(blocked, "test").acquire(HOLDER, timeout_seconds=0)
    with pytest.raises(StoreError, match="cannot be written"):
        LocalJournalStore(blocked, "test").append("run", 0, b"{}")


def test_a_lock_whose_record_cannot_be_written_is_free_all_the_same(tmp_path: Path) -> None:
    lease = FileLock(tmp_path, "test").acquire(HOLDER, timeout_seconds=0)
    temporary = tmp_path / f".test.lock.json.{os.getpid()}.tmp"
    temporary.mkdir()
    with pytest.raises(StoreError, match="cannot be released"):
        lease.release()
    temporary.rmdir()
    FileLock(tmp_path, "test").acquire(HOLDER, timeout_seconds=0).release()


def test_a_temporary_file_that_cannot_be_removed_hides_no_error(tmp_path: Path) -> None:
    path = tmp_path / "document"
    (tmp_path / f".document.{os.getpid()}.tmp").mkdir()
    with pytest.raises(IsADirectoryError) as raised:
        write_atomically(path, b"data")
    assert raised.value.__context__ is None


def test_stray_files_of_killed_writers_are_collected(tmp_path: Path) -> None:
    stray = tmp_path / ".test.state.json.4711.tmp"
    stray.write_bytes(b"half a docu")
    repository_over(LocalStateStore(tmp_path, "test"), tmp_path).save(deployment_state(serial=0), None)
    assert not stray.exists()
