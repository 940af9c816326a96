"""The lock for local files: the operating system's own, which ends with its process.

The lock file is never removed: two processes that lock two files of one name would both hold the lock. It is never
truncated: a record next to it names the holder. Breaking a lock replaces the file, which the holder detects.
"""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from delta_engine.config.whole_files import write_atomically
from delta_engine.deployment.errors import LockHeld, LockLost, UnreadableLockError
from delta_engine.deployment.local_files import store_errors
from delta_engine.deployment.locks.records import decode_lock_record, encode_lock_record, unlocked_record
from delta_engine.deployment.ports import LockLease
from delta_engine.deployment.stored import LockHolder, LockRecord
from delta_engine.telemetry.context import new_id, utc_now

_PAUSE_SECONDS = 0.1


class FileLock:
    """The lock of an environment with a local deployment state. Clock and pause count seconds."""

    def __init__(
        self,
        folder: Path,
        environment: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path = folder / f"{environment}.lock"
        self._record_path = folder / f"{environment}.lock.json"
        self._monotonic = monotonic
        self._pause = pause

    @property
    def location(self) -> str:
        """The lock file's path."""
        return str(self._path)

    def acquire(
        self,
        holder: LockHolder,
        *,
        timeout_seconds: float,
        on_wait: Callable[[LockHolder], None] = lambda _holder: None,
    ) -> LockLease:
        """Acquire the lock within the timeout; see `StateLock.acquire`."""
        deadline = self._monotonic() + timeout_seconds
        has_waited = False
        with store_errors(self._path, "locked"):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            while True:
                descriptor = self._try_lock(self._path)
                if descriptor is not None:
                    with _closed_on_error(descriptor):
                        return self._taken(descriptor, holder)
                current = self._recorded_holder()
                if not has_waited and current is not None:
                    on_wait(current)
                    has_waited = True
                if self._monotonic() >= deadline:
                    raise LockHeld(self.location, current)
                self._pause(_PAUSE_SECONDS)

    def holder(self) -> LockHolder | None:
        """Return the current holder; None if the lock is free, or its last holder died."""
        with store_errors(self._path, "locked"):
            if not self._path.exists():
                return None
            descriptor = self._try_lock(self._path)
        if descriptor is None:
            return self._recorded_holder()
        os.close(descriptor)
        return None

    def break_lock(self) -> LockHolder | None:
        """Replace a held lock file; return its holder, None if the lock was free."""
        holder = self.holder()
        if holder is None:
            return None
        with store_errors(self._path, "replaced"):
            fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
            descriptor = self._try_lock(fresh)
            fresh.replace(self._path)
            self._mark_released()
            if descriptor is not None:
                os.close(descriptor)
        return holder

    def _try_lock(self, path: Path) -> int | None:
        """Lock the file of this name; None if another process holds it, or has just replaced it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if not _is_file(descriptor, path):
            os.close(descriptor)
            return None
        return descriptor

    def _taken(self, descriptor: int, holder: LockHolder) -> LockLease:
        last = self._record()
        record = LockRecord(
            lock_id=new_id(),
            fence=last.fence + 1 if last else 1,
            beat=0,
            lease_seconds=0,
            released=False,
            holder=holder,
        )
        write_atomically(self._record_path, encode_lock_record(record))
        dead = last.holder if last and not last.released else None
        return _FileLease(self._path, descriptor, record.fence, dead, self._mark_released)

    def _record(self) -> LockRecord | None:
        """Return the last record; a damaged one is harmless, because the file itself is the lock."""
        try:
            data = self._record_path.read_bytes()
            return decode_lock_record(data, where=str(self._record_path), token="")
        except FileNotFoundError:
            return None
        except UnreadableLockError:
            return unlocked_record(utc_now())

    def _recorded_holder(self) -> LockHolder | None:
        record = self._record()
        return None if record is None or record.released else record.holder

    def _mark_released(self) -> None:
        record = self._record()
        if record is not None:
            write_atomically(self._record_path, encode_lock_record(record.with_values(released=True)))


class _FileLease:
    def __init__(
        self,
        path: Path,
        descriptor: int,
        fence: int,
        taken_over_from: LockHolder | None,
        mark_released: Callable[[], None],
    ) -> None:
        self.fence = fence
        self.taken_over_from = taken_over_from
        self._path = path
        self._descriptor: int | None = descriptor
        self._mark_released = mark_released
        _HELD.add(self)

    def check(self) -> None:
        """Raise `LockLost` if the lock was broken, released or is the parent's; read the file's status alone."""
        if self._descriptor is None:
            raise LockLost(str(self._path), "the lock is not held by this process")
        if not _is_file(self._descriptor, self._path):
            raise LockLost(str(self._path), "the lock was lost: it was broken by force")

    def release(self) -> None:
        """Release the lock, if this lease still holds it."""
        if self._descriptor is None:
            return
        try:
            with store_errors(self._path, "released"):
                if _is_file(self._descriptor, self._path):
                    self._mark_released()
        finally:
            self.forget()

    def forget(self) -> None:
        """Close this process's descriptor; in a forked child, the parent keeps the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


_HELD: weakref.WeakSet[_FileLease] = weakref.WeakSet()


def _forget_in_child() -> None:
    """Close a child's descriptors, which would keep the lock after the parent's death."""
    for lease in list(_HELD):
        lease.forget()


os.register_at_fork(after_in_child=_forget_in_child)


@contextmanager
def _closed_on_error(descriptor: int) -> Iterator[None]:
    try:
        yield
    except OSError:
        os.close(descriptor)
        raise


def _is_file(descriptor: int, path: Path) -> bool:
    opened = os.fstat(descriptor)
    try:
        named = path.stat()
    except FileNotFoundError:
        return False
    return (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino)
