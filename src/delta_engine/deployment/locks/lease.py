"""The lease protocol, over any store that can compare and swap one small record.

A holder renews its lease by counting beats. A waiter takes over when it has seen the same beat of the same
holder for one whole lease, on its own monotonic clock: the clocks of two machines are never compared. The
record is overwritten, never deleted, so that the fence survives.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from delta_engine.backends.cancellation import Stop, current_stop
from delta_engine.deployment.errors import (
    ConflictError,
    LockHeld,
    LockLost,
    StoreError,
    UncertainWriteError,
)
from delta_engine.deployment.lock_record import (
    LockHolder,
    LockRecord,
    UnreadableLockError,
    released_anew,
)
from delta_engine.deployment.ports import LockLease, LockRecords
from delta_engine.deployment.stamps import new_id, utc_now
from delta_engine.telemetry.context import command

_BEATS_PER_LEASE = 3
_BEAT_PATIENCE = 2 / 3
"""The share of a lease after which a beat is given up: then the lease has run out."""
_RELEASE_SECONDS = 20.0
"""How long the released marker may take at most. Without it, the lease runs out."""
_LONGEST_PAUSE_SECONDS = 2.0
_MOST_RACES = 10
"""How often a free lock is tried after the timeout: somebody else was always faster, or the store always refuses."""


class LeaseLock:
    """A lock with a lease.

    Args:
        records: where its record is.
        lease_seconds: how long a holder may be silent before others take over.
        monotonic: this process's monotonic clock, in seconds.
        pause: waits a number of seconds.
    """

    def __init__(
        self,
        records: LockRecords,
        *,
        lease_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._records = records
        self._lease_seconds = lease_seconds
        self._monotonic = monotonic
        self._pause = pause

    @property
    def location(self) -> str:
        """Where the lock is."""
        return self._records.location

    def acquire(
        self,
        holder: LockHolder,
        *,
        timeout_seconds: float,
        on_wait: Callable[[LockHolder], None] = lambda _holder: None,
    ) -> LockLease:
        """Take the lock, waiting for it if need be; see `StateLock.acquire`."""
        deadline = self._monotonic() + timeout_seconds
        watched, since, pause, races = "", 0.0, 0.1, 0
        lease: Lease | StoreError | None = None
        while True:
            found = self._records.read()
            current, token = found or (None, None)
            if current is None or current.released:
                lease = self._take(holder, current, token, None)
            else:
                beat, now = f"{current.lock_id} {current.beat}", self._monotonic()
                if not watched:
                    on_wait(current.holder)
                if beat != watched:
                    watched, since = beat, now
                ran_out = now - since >= current.lease_seconds
                lease = self._take(holder, current, token, current.holder) if ran_out else None
            if isinstance(lease, Lease):
                return lease
            if self._monotonic() >= deadline:
                if current and not current.released:
                    raise LockHeld(held_message(self.location, current.holder))
                races += 1
                if races > _MOST_RACES:
                    reason = (
                        f"{self.location}: the lock is free, and cannot be taken. The last attempt: {lease}"
                    )
                    raise StoreError(f"{reason.removesuffix('.')}. Run again.") from lease
            self._pause(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS, self._lease_seconds / 10)

    def holder(self) -> LockHolder | None:
        """Return who holds it; None if nobody does."""
        found = self._records.read()
        return None if found is None or found[0].released else found[0].holder

    def break_lock(self) -> LockHolder | None:
        """Release it by force; return whose it was, None if nobody held it."""
        while True:
            try:
                found = self._records.read()
            except UnreadableLockError as error:
                broken = released_anew(utc_now())
                self._records.replace(broken, error.token)
                return broken.holder
            if found is None or found[0].released:
                return None
            record, token = found
            broken = msgspec.structs.replace(record, released=True)
            try:
                self._records.replace(broken, token)
            except (ConflictError, UncertainWriteError):
                found = self._records.read()
                if found is None or found[0] != broken:
                    continue  # it was renewed, released or taken over in this moment
            return record.holder

    def _take(
        self,
        holder: LockHolder,
        current: LockRecord | None,
        token: str | None,
        taken_over_from: LockHolder | None,
    ) -> Lease | StoreError:
        """Write our record; return why it is not there if another run was faster, or the store did not answer."""
        record = LockRecord(
            lock_id=new_id(),
            fence=current.fence + 1 if current else 1,
            beat=0,
            lease_seconds=self._lease_seconds,
            released=False,
            holder=holder,
        )
        asked_at = self._monotonic()
        try:
            new_token = self._records.replace(record, token)
        except (ConflictError, UncertainWriteError) as error:
            found = self._records.read()
            if found is None or found[0] != record:
                return error
            new_token = found[1]
        return Lease(self._records, record, new_token, taken_over_from, asked_at, self._monotonic)


class Lease:
    """A held lease: renews itself in the background until it is released or lost.

    Args:
        records: where the record is.
        record: the record as it was taken.
        token: what replaces it.
        taken_over_from: whose dead hand it was taken from.
        renewed_at: when it was asked for, on the monotonic clock.
        monotonic: that clock.
    """

    def __init__(
        self,
        records: LockRecords,
        record: LockRecord,
        token: str,
        taken_over_from: LockHolder | None,
        renewed_at: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._records = records
        self._record = record
        self._token = token
        self._taken_over_from = taken_over_from
        self._renewed_at = renewed_at
        self._monotonic = monotonic
        self._pid = os.getpid()
        self._lost_to = ""
        self._guard = threading.Lock()
        self._stop = Stop()
        self._is_over = threading.Event()
        self._renewer = threading.Thread(target=self._keep_renewing, name="lease", daemon=True)
        self._renewer.start()

    @property
    def fence(self) -> int:
        """Counts the holders of this lock."""
        return self._record.fence

    @property
    def taken_over_from(self) -> LockHolder | None:
        """Whose dead hand it was taken from, if it was not free."""
        return self._taken_over_from

    def check(self) -> None:
        """Make sure that the lease is still held; asks the store only when renewals are overdue.

        Raises:
            LockLost: it is not.
        """
        if os.getpid() != self._pid:
            raise LockLost(f"{self._records.location}: a forked process may not use its parent's lock")
        if not self._lost_to and self._silence() > self._record.lease_seconds * 2 / _BEATS_PER_LEASE:
            self._renew()
        if self._lost_to:
            raise LockLost(f"{self._records.location}: the lock was lost: {self._lost_to}")
        if self._silence() > self._record.lease_seconds:
            raise LockLost(
                f"{self._records.location}: the lock could not be renewed for {self._silence():.0f} seconds"
            )

    def release(self) -> None:
        """Write the released marker, if the lease is still ours and the store takes it soon."""
        if os.getpid() != self._pid:
            return
        self._stop.request()
        self._is_over.set()
        self._renewer.join()
        patience = min(_RELEASE_SECONDS, self._record.lease_seconds)
        with self._guard, Stop(seconds=patience).as_current():
            if self._lost_to:
                return
            released = msgspec.structs.replace(self._record, released=True)
            with suppress(StoreError):  # it is done, or lost, or will run out: there is no more to do
                self._records.replace(released, self._token)
            self._lost_to = "it was released"

    def _silence(self) -> float:
        return self._monotonic() - self._renewed_at

    def _keep_renewing(self) -> None:
        self._stop.make_current()
        while not self._is_over.wait(self._record.lease_seconds / _BEATS_PER_LEASE) and not self._lost_to:
            self._renew()

    def _renew(self) -> None:
        """Beat once. A store that does not answer is asked again at the next beat."""
        patience = self._record.lease_seconds * _BEAT_PATIENCE
        with self._guard, Stop(within=current_stop(), seconds=patience).as_current():
            asked_at = self._monotonic()
            beaten = msgspec.structs.replace(self._record, beat=self._record.beat + 1)
            try:
                try:
                    token = self._records.replace(beaten, self._token)
                except (ConflictError, UncertainWriteError):
                    found = self._records.read()
                    if found is None or found[0] not in (self._record, beaten):
                        self._lost_to = _loser_words(found and found[0], self._record)
                        return
                    token = found[1]
                    if found[0] != beaten:  # still ours, but who waits has seen no new beat
                        self._token = token
                        return
            except StoreError:
                return
            self._record, self._token, self._renewed_at = beaten, token, asked_at


def held_message(where: str, holder: LockHolder) -> str:
    """Return what `LockHeld` says."""
    return (
        f"{where}: the environment is locked by {holder}. Wait for it, or, if you are sure that it is gone, "
        f"{command('state unlock')}."
    )


def _loser_words(found: LockRecord | None, ours: LockRecord) -> str:
    if found is None:
        return "its record is gone"
    if found.lock_id == ours.lock_id:
        return "it was broken by force"
    return f"{found.holder} took it over"
