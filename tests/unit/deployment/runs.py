"""What the tests of runs share: three tables, as they are first and next, a store that fails, and a lock."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass

from delta_engine.deployment.errors import LockHeld, LockLost, StoreError
from delta_engine.deployment.ports import LockLease
from delta_engine.deployment.stored import DocumentIdentity, LockHolder, StoredDocument
from delta_engine.deployment.stores.memory import MemoryStateStore, NoLock
from tests.builders.deployment import HOLDER
from tests.builders.models import orders

TABLES = tuple(orders(name=name, comment="first") for name in ("a", "b", "c"))
CHANGED = tuple(orders(name=name, comment="second") for name in ("a", "b", "c"))


class Unwritable(MemoryStateStore):
    """A store that takes a number of writes, and no more."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.writes = writes

    def replace(
        self, data: bytes, identity: DocumentIdentity, expected: StoredDocument | None
    ) -> StoredDocument:
        self.writes -= 1
        if self.writes < 0:
            raise StoreError("the store is down")
        return super().replace(data, identity, expected)


@dataclass
class FakeLock(NoLock):
    """A lock that another run holds, that is lost after some checks, or whose release is interrupted or fails."""

    is_held: bool = False
    checks: int = 99
    is_signalled: bool = False
    release_error: StoreError | None = None
    taken_over_from: LockHolder | None = None
    leases: int = 0
    fence: int = 1

    def acquire(
        self,
        holder: LockHolder,
        *,
        timeout_seconds: float,
        on_wait: Callable[[LockHolder], None] = lambda _holder: None,
    ) -> LockLease:
        if self.is_held:
            on_wait(HOLDER)
            raise LockHeld("the lock", HOLDER)
        self.leases += 1
        return self

    def check(self) -> None:
        self.checks -= 1
        if self.checks < 0:
            raise LockLost("the lock", "taken over")

    def release(self) -> None:
        if self.is_signalled:
            signal.raise_signal(signal.SIGTERM)
        self.leases -= 1
        if self.release_error is not None:
            raise self.release_error
