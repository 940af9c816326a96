"""The file lock: what the obvious one does wrong, and what becomes of forks, kills, breaks and strangers."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec
import pytest

from delta_engine.deployment.errors import LockHeld, LockLost
from delta_engine.deployment.locks.file import FileLock
from delta_engine.deployment.ports import LockLease
from delta_engine.deployment.stored import LockHolder
from tests.builders.deployment import HOLDER

ROOT = Path(__file__).parents[2]

OTHER = msgspec.structs.replace(HOLDER, who="bo@example.com", operation="state rm")

HOLD = """
import sys
from pathlib import Path
from delta_engine.deployment.locks.file import FileLock
from tests.builders.deployment import HOLDER
lease = FileLock(Path(sys.argv[1]), "test").acquire(HOLDER, timeout_seconds=0)
print(lease.fence, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path: Path) -> FileLock:
    return FileLock(tmp_path, "test")


@pytest.fixture
def holder_process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that holds the lock until its input ends."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        yield process
        process.kill()


def take(lock: FileLock, holder: LockHolder = HOLDER) -> LockLease:
    return lock.acquire(holder, timeout_seconds=0)


class ObviousLock:
    """A file lock as one would write it first: opened with `w`, removed on release."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: IO[str] | None = None

    def open(self) -> None:
        self.file = self.path.open("w")

    def try_lock(self) -> bool:
        assert self.file is not None
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self.file.write("me")
        self.file.flush()
        return True

    def release(self) -> None:
        assert self.file is not None
        self.file.close()
        self.path.unlink(missing_ok=True)


def test_the_obvious_lock_loses_its_holders_name_and_ours_does_not(tmp_path: Path, lock: FileLock) -> None:
    obvious = [ObviousLock(tmp_path / "obvious") for _ in range(2)]
    obvious[0].open()
    assert obvious[0].try_lock()
    obvious[1].open()  # a waiter that only looks
    assert not obvious[1].try_lock()
    assert obvious[0].path.read_text() == ""

    take(lock)
    with pytest.raises(LockHeld, match="ana@example"):
        take(FileLock(tmp_path, "test"), OTHER)
    assert lock.holder() == HOLDER


def test_the_obvious_lock_has_two_holders_and_ours_has_one(tmp_path: Path, lock: FileLock) -> None:
    first, waiter, third = (ObviousLock(tmp_path / "obvious") for _ in range(3))
    first.open()
    assert first.try_lock()
    waiter.open()
    first.release()  # removes the file that the waiter has open
    third.open()
    assert (waiter.try_lock(), third.try_lock()) == (True, True)

    lease = take(lock)
    descriptor = os.open(tmp_path / "test.lock", os.O_RDWR)  # a waiter that has the file open
    lease.release()
    again = take(FileLock(tmp_path, "test"), OTHER)
    with pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    again.check()


def test_the_fence_survives_releases_breaks_and_deaths(
    lock: FileLock, holder_process: subprocess.Popen[str]
) -> None:
    holder_process.kill()
    holder_process.wait()
    fences = []
    for _ in range(3):
        lease = take(lock)
        fences.append(lease.fence)
        lease.release()
    take(lock)
    lock.break_lock()
    fences.append(take(lock).fence)
    assert fences == [2, 3, 4, 6]


def test_who_was_killed_is_named_and_does_not_hold_up_the_next(
    lock: FileLock, holder_process: subprocess.Popen[str]
) -> None:
    with pytest.raises(LockHeld):
        take(lock)
    holder_process.send_signal(signal.SIGKILL)
    holder_process.wait()
    assert lock.holder() is None
    lease = take(lock, OTHER)
    assert lease.taken_over_from == HOLDER
    lease.release()
    assert take(lock).taken_over_from is None


def test_a_stopped_holder_keeps_its_lock(lock: FileLock, holder_process: subprocess.Popen[str]) -> None:
    holder_process.send_signal(signal.SIGSTOP)
    with pytest.raises(LockHeld):
        take(lock)
    holder_process.send_signal(signal.SIGCONT)


def test_locked_says_everything_about_the_holder(tmp_path: Path, lock: FileLock) -> None:
    take(lock)
    waited: list[LockHolder] = []
    pauses: list[float] = []
    ticks = iter(range(100))
    waiter = FileLock(tmp_path, "test", monotonic=lambda: float(next(ticks)), pause=pauses.append)
    with pytest.raises(LockHeld) as caught:
        waiter.acquire(OTHER, timeout_seconds=5, on_wait=waited.append)
    for part in (
        "ana@example.com",
        "build-7",
        "4711",
        "sync",
        "2026-03-01 12:00:00 UTC",
        "https://example.com/runs/1",
    ):
        assert part in str(caught.value)
    assert "state unlock" in str(caught.value)
    assert waited == [HOLDER]
    assert len(pauses) == 4


def test_a_broken_lock_stops_its_holder_and_not_the_next(lock: FileLock) -> None:
    lease = take(lock)
    lease.check()
    assert lock.break_lock() == HOLDER
    with pytest.raises(LockLost, match="broken by force"):
        lease.check()
    new = take(lock, OTHER)
    lease.release()
    new.check()
    assert lock.holder() == OTHER
    lease.release()
    new.release()
    with pytest.raises(LockLost):
        new.check()
    assert lock.break_lock() is None


def test_a_forked_child_neither_keeps_nor_gives_back_its_parents_lock(tmp_path: Path, lock: FileLock) -> None:
    lease = take(lock)
    told_read, told_write = os.pipe()
    child = os.fork()
    if child == 0:  # in the child: try both, and say what came of it
        lease.release()
        try:
            lease.check()
            os.write(told_write, b"held")
        except LockLost:
            os.write(told_write, b"lost")
        os._exit(0)
    assert os.read(told_read, 4) == b"lost"
    os.waitpid(child, 0)
    lease.check()
    with pytest.raises(LockHeld):
        take(FileLock(tmp_path, "test"))
    os.close(told_read)
    os.close(told_write)


PARENT = """
import os, sys
from pathlib import Path
from delta_engine.deployment.locks.file import FileLock
from tests.builders.deployment import HOLDER
lease = FileLock(Path(sys.argv[1]), "test").acquire(HOLDER, timeout_seconds=0)
if os.fork() == 0:
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
os.wait()
"""


def test_a_lock_ends_with_its_parent_although_a_child_lives(tmp_path: Path, lock: FileLock) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        os.kill(child, 0)  # it lives
        assert take(lock).taken_over_from == HOLDER
        assert parent.stdin is not None
        parent.stdin.close()  # and now it ends


@pytest.mark.parametrize("damage", [b"", b"{", b'{"lock_id": 7}'])
def test_a_damaged_record_is_no_obstacle(tmp_path: Path, lock: FileLock, damage: bytes) -> None:
    take(lock).release()
    (tmp_path / "test.lock.json").write_bytes(damage)
    lease = take(lock)
    assert lease.fence > 1_000_000_000  # no count has ever reached it
    assert json.loads((tmp_path / "test.lock.json").read_bytes())["holder"]["who"] == HOLDER.who


def test_the_record_says_that_the_lock_does_not_expire(lock: FileLock, tmp_path: Path) -> None:
    take(lock)
    record = json.loads((tmp_path / "test.lock.json").read_bytes())
    assert (record["lease_seconds"], record["released"]) == (0, False)
