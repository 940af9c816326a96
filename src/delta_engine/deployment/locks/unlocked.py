"""The lock of a deployment state that nobody shares: always free."""

from __future__ import annotations

from collections.abc import Callable

from delta_engine.deployment.lock_record import LockHolder
from delta_engine.deployment.ports import LockLease


class NoLock:
    """Lets everybody in."""

    location = "memory"

    def acquire(
        self,
        holder: LockHolder,
        *,
        timeout_seconds: float,
        on_wait: Callable[[LockHolder], None] = lambda _holder: None,
    ) -> LockLease:
        """Return a lease that holds for ever."""
        return _NoLease()

    def holder(self) -> LockHolder | None:
        """Return None."""
        return None

    def break_lock(self) -> LockHolder | None:
        """Return None."""
        return None


class _NoLease:
    fence = 1
    taken_over_from = None

    def check(self) -> None:
        """Hold."""

    def release(self) -> None:
        """Do nothing."""
