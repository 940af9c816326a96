"""The lease protocol, over any store that can compare and swap one small record.

A holder renews its lease by counting beats. A waiter takes over after it has seen the same beat of the same holder
for one whole lease, by its own monotonic clock: clocks of two machines are never compared. The record is
overwritten, never deleted, so that the fence survives.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from delta_engine.backends.cancellation import Stop, current_stop
from delta_engine.deployment.errors import (
    ConflictError,
    LockHeld,
    LockLost,
    StoreError,
    UncertainWriteError,
    UnreadableLockError,
)
from delta_engine.deployment.locks.records import unlocked_record
from delta_engine.deployment.ports import LockLease, LockRecords
from delta_engine.deployment.stored import LockHolder, LockRecord
from delta_engine.telemetry.context import new_id, utc_now

_BEATS_PER_LEASE = 3
_BEAT_PATIENCE = 2 / 3
"""The share of a lease after which a beat is abandoned, since the lease has expired by then."""
_RELEASE_SECONDS = 20.0
"""The most seconds that the released marker may take; without it, the lease expires."""
_LONGEST_PAUSE_SECONDS = 2.0
_MOST_RACES = 10
"""The attempts to acquire a free lock after the timeout, while other runs are faster or the store refuses."""


Repeat: TypeAlias = Callable[[float, Callable[[], bool]], Callable[[], None]]
"""Calls something at an interval in the background while it returns True; returns what ends that."""


def repeat_in_thread(seconds: float, action: Callable[[], bool]) -> Callable[[], None]:
    """Repeat an action in a thread; a `Repeat`. The end cancels a running call and waits for it."""
    stop, is_over = Stop(), threading.Event()

    def repeat() -> None:
        stop.make_current()
        while not is_over.wait(seconds) and action():
            pass

    thread = threading.Thread(target=repeat, name="lease", daemon=True)
    thread.start()

    def end() -> None:
        stop.request()
        is_over.set()
        thread.join()

    return end


class LeaseLock:
    """A lock with a lease, the time after which another run takes over from a silent holder.

    Clock and pause count seconds; the clock is monotonic. `repeat` renews a held lease in the background.
    """

    def __init__(
        self,
        records: LockRecords,
        *,
        lease_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        repeat: Repeat = repeat_in_thread,
    ) -> None:
        self._records = records
        self._lease_seconds = lease_seconds
        self._monotonic = monotonic
        self._pause = pause
        self._repeat = repeat

    @property
    def location(self) -> str:
        """The lock's place."""
        return self._records.location

    def acquire(
        self,
        holder: LockHolder,
        *,
        timeout_seconds: float,
        on_wait: Callable[[LockHolder], None] = lambda _holder: None,
    ) -> LockLease:
        """Acquire the lock within the timeout; see `StateLock.acquire`."""
        deadline = self._monotonic() + timeout_seconds
        watched, since, pause, races = "", 0.0, 0.1, 0
        lease: Lease | StoreError | None = None
        while True:
            stored = self._records.read()
            current = stored[0] if stored else None
            if current is None or current.released:
                lease = self._take(holder, stored, None)
            else:
                beat, now = f"{current.lock_id} {current.beat}", self._monotonic()
                if not watched:
                    on_wait(current.holder)
                if beat != watched:
                    watched, since = beat, now
                has_expired = now - since >= current.lease_seconds
                lease = self._take(holder, stored, current.holder) if has_expired else None
            if isinstance(lease, Lease):
                return lease
            if self._monotonic() >= deadline:
                if current and not current.released:
                    raise LockHeld(self.location, current.holder)
                races += 1
                if races > _MOST_RACES:
                    reason = (
                        f"{self.location}: the lock is free, and cannot be taken. The last attempt: {lease}"
                    )
                    raise StoreError(f"{reason.removesuffix('.')}. Run again.") from lease
            self._pause(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS, self._lease_seconds / 10)

    def holder(self) -> LockHolder | None:
        """Return the current holder; None if the lock is free."""
        stored = self._records.read()
        return None if stored is None or stored[0].released else stored[0].holder

    def break_lock(self) -> LockHolder | None:
        """Release the lock by force; return its holder, None if it was free."""
        while True:
            try:
                current = self._records.read()
            except UnreadableLockError as error:
                broken = unlocked_record(utc_now())
                self._records.replace(broken, error.token)
                return broken.holder
            if current is None or current[0].released:
                return None
            record, token = current
            broken = record.with_values(released=True)
            stored, _doubt = _swapped(self._records, broken, token)
            if stored is not None and stored[0] == broken:
                return record.holder  # else the holder renewed or released it, or another run acquired it

    def _take(
        self, holder: LockHolder, current: _Stored | None, taken_over_from: LockHolder | None
    ) -> Lease | StoreError:
        """Write our record; return the error if another run was faster or the store did not answer."""
        record = LockRecord(
            lock_id=new_id(),
            fence=current[0].fence + 1 if current else 1,
            beat=0,
            lease_seconds=self._lease_seconds,
            released=False,
            holder=holder,
        )
        asked_at = self._monotonic()
        stored, doubt = _swapped(self._records, record, current[1] if current else None)
        if doubt is not None and (stored is None or stored[0] != record):
            return doubt
        assert stored is not None
        lease = Lease(self._records, record, stored[1], taken_over_from, asked_at, self._monotonic)
        lease.keep_renewing(self._repeat)
        return lease


class Lease:
    """A held lease; `renewed_at` is the time of the request, not the answer."""

    def __init__(
        self,
        records: LockRecords,
        record: LockRecord,
        token: str,
        taken_over_from: LockHolder | None,
        renewed_at: float,
        monotonic: Callable[[], float],
    ) -> None:
        self.taken_over_from = taken_over_from
        self.fence = record.fence
        self._records = records
        self._record = record
        self._token = token
        self._renewed_at = renewed_at
        self._monotonic = monotonic
        self._pid = os.getpid()
        self._lost_to = ""
        self._guard = threading.Lock()
        self._end_renewals: Callable[[], None] = lambda: None

    def keep_renewing(self, repeat: Repeat) -> None:
        """Renew this lease in the background until its release or loss."""
        self._end_renewals = repeat(self._record.lease_seconds / _BEATS_PER_LEASE, self._beat)

    def check(self) -> None:
        """Verify that the lease is still held, else raise `LockLost`; reads the store only if renewals are overdue."""
        if os.getpid() != self._pid:
            raise LockLost(self._records.location, "a forked process may not use its parent's lock")
        if not self._lost_to and self._silence() > self._record.lease_seconds * 2 / _BEATS_PER_LEASE:
            self._renew()
        if self._lost_to:
            raise LockLost(self._records.location, f"the lock was lost: {self._lost_to}")
        if self._silence() > self._record.lease_seconds:
            reason = f"the lock could not be renewed for {self._silence():.0f} seconds"
            raise LockLost(self._records.location, reason)

    def release(self) -> None:
        """Write the released marker, if this lease still holds the lock and the store answers in time."""
        if os.getpid() != self._pid:
            return
        self._end_renewals()
        patience = min(_RELEASE_SECONDS, self._record.lease_seconds)
        with self._guard, Stop(seconds=patience).as_current():
            if self._lost_to:
                return
            with suppress(StoreError):  # it is written, lost or soon expired
                self._records.replace(self._record.with_values(released=True), self._token)
            self._lost_to = "it was released"

    def _silence(self) -> float:
        return self._monotonic() - self._renewed_at

    def _beat(self) -> bool:
        """Renew the lease; return whether it is still held."""
        if not self._lost_to:
            self._renew()
        return not self._lost_to

    def _renew(self) -> None:
        """Write the next beat; after no answer, the next beat tries again."""
        patience = self._record.lease_seconds * _BEAT_PATIENCE
        with self._guard, Stop(within=current_stop(), seconds=patience).as_current():
            asked_at = self._monotonic()
            beaten = self._record.with_values(beat=self._record.beat + 1)
            try:
                stored, _doubt = _swapped(self._records, beaten, self._token)
            except StoreError:
                return
            if stored is None or stored[0] not in (self._record, beaten):
                self._lost_to = _loss(stored and stored[0], self._record)
                return
            self._token = stored[1]
            if stored[0] == beaten:  # else the lock is still ours, but waiters have seen no new beat
                self._record, self._renewed_at = beaten, asked_at


_Stored = tuple[LockRecord, str]
"""A record and the token that replaces it."""


def _swapped(
    records: LockRecords, record: LockRecord, token: str | None
) -> tuple[_Stored | None, StoreError | None]:
    """Write a record and resolve a conflict or a lost answer by reading back; return the stored one and the error."""
    try:
        return (record, records.replace(record, token)), None
    except (ConflictError, UncertainWriteError) as error:
        return records.read(), error


def _loss(record: LockRecord | None, ours: LockRecord) -> str:
    if record is None:
        return "its record is gone"
    if record.lock_id == ours.lock_id:
        return "it was broken by force"
    return f"{record.holder} took it over"
