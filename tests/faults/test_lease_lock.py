"""The lease protocol over records whose store fails as it is told to, with clocks that tests turn."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import msgspec
import pytest

from delta_engine.deployment.errors import (
    ConflictError,
    LockHeld,
    LockLost,
    StoreError,
    UncertainWriteError,
    UnreadableLockError,
)
from delta_engine.deployment.locks.lease import LeaseLock
from delta_engine.deployment.ports import LockLease
from delta_engine.deployment.stored import LockHolder, LockRecord
from tests.builders.deployment import HOLDER, NOON

OTHER = msgspec.structs.replace(HOLDER, who="bo@example.com")
LEASE = 3600.0  # the renewer's real clock never comes to a beat


class Records:
    """Keeps a record in memory; the next calls fail as they are told to."""

    location = "the record"

    def __init__(self) -> None:
        self.record: LockRecord | None = None
        self.faults: list[str] = []
        self.is_down = False
        self.is_damaged = False
        self.guard = threading.Lock()

    def read(self) -> tuple[LockRecord, str] | None:
        if self.is_down:
            raise StoreError("down")
        if self.is_damaged:
            raise UnreadableLockError("not JSON", where=self.location, token="damaged")
        return None if self.record is None else (self.record, self._token())

    def replace(self, record: LockRecord, expected: str | None) -> str:
        if self.is_down:
            raise StoreError("down")
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "not done":
            raise UncertainWriteError("no answer")
        with self.guard:
            if not self.is_damaged and expected != (None if self.record is None else self._token()):
                raise ConflictError("something else is there")
            self.record = record
            self.is_damaged = False
        if fault == "lost":
            raise UncertainWriteError("no answer")
        if fault == "hidden retry":
            raise ConflictError("refused: it is there already")
        return self._token()

    def last(self) -> LockRecord:
        assert self.record is not None
        return self.record

    def _token(self) -> str:
        return f"{self.last().lock_id} {self.last().beat} {self.last().released}"


class Clock:
    """A monotonic clock that goes on only while somebody waits, or is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def records() -> Records:
    return Records()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lock_over(records: Records, clock: Clock, lease_seconds: float = LEASE) -> LeaseLock:
    return LeaseLock(records, lease_seconds=lease_seconds, monotonic=clock, pause=clock.pause)


def take(lock: LeaseLock, holder: LockHolder = HOLDER, timeout: float = 0) -> LockLease:
    return lock.acquire(holder, timeout_seconds=timeout)


def test_it_is_taken_shown_and_given_back(records: Records, clock: Clock) -> None:
    lock = lock_over(records, clock)
    assert lock.holder() is None
    lease = take(lock)
    assert (lease.fence, lease.taken_over_from, lock.holder()) == (1, None, HOLDER)
    lease.check()
    with pytest.raises(LockHeld, match="on build-7"):
        take(lock, OTHER)
    lease.release()
    assert lock.holder() is None
    assert records.last().released
    assert take(lock, OTHER).fence == 2
    lease.release()
    assert lock.holder() == OTHER
    with pytest.raises(LockLost):
        lease.check()


@pytest.mark.parametrize("skew", [timedelta(days=-400), timedelta(0), timedelta(days=400)])
def test_a_dead_holder_is_replaced_after_one_lease_whatever_its_clock_says(
    records: Records, clock: Clock, skew: timedelta
) -> None:
    dead = msgspec.structs.replace(HOLDER, since=NOON + skew)
    take(lock_over(records, Clock()), dead)
    began = clock.now
    lease = take(lock_over(records, clock), OTHER, timeout=2 * LEASE)
    assert LEASE <= clock.now - began < LEASE + 10
    assert (lease.fence, lease.taken_over_from) == (2, dead)


def test_a_holder_that_beats_is_waited_for(records: Records) -> None:
    take(lock_over(records, Clock()))

    class Beating(Clock):
        def pause(self, seconds: float) -> None:
            super().pause(seconds)
            records.record = msgspec.structs.replace(records.last(), beat=records.last().beat + 1)

    waited: list[LockHolder] = []
    clock = Beating()
    with pytest.raises(LockHeld):
        lock_over(records, clock).acquire(OTHER, timeout_seconds=3 * LEASE, on_wait=waited.append)
    assert waited == [HOLDER]


def test_who_waits_less_than_a_lease_never_takes_over(records: Records, clock: Clock) -> None:
    take(lock_over(records, Clock()))
    with pytest.raises(LockHeld):
        take(lock_over(records, clock), OTHER, timeout=LEASE / 2)


def test_a_holder_that_was_stopped_finds_out_before_its_next_statement(records: Records) -> None:
    stopped_clock, clock = Clock(), Clock()
    stopped = take(lock_over(records, stopped_clock))
    taken = take(lock_over(records, clock), OTHER, timeout=2 * LEASE)
    stopped_clock.now += 2 * LEASE  # it wakes up
    with pytest.raises(LockLost, match="bo@example"):
        stopped.check()
    stopped.release()
    assert (records.last().holder, records.last().released) == (OTHER, False)
    taken.check()


def test_a_check_renews_when_the_renewer_is_late(records: Records, clock: Clock) -> None:
    lease = take(lock_over(records, clock))
    clock.now += LEASE * 0.9
    lease.check()
    assert records.last().beat == 1
    clock.now += LEASE * 0.9
    lease.check()


def test_a_store_that_is_down_for_less_than_a_lease_is_ridden_out(records: Records, clock: Clock) -> None:
    lease = take(lock_over(records, clock))
    records.is_down = True
    clock.now += LEASE * 0.8
    lease.check()
    clock.now += LEASE * 0.3
    with pytest.raises(LockLost, match="could not be renewed"):
        lease.check()
    records.is_down = False
    lease.check()  # nobody took it over in the meantime


def test_a_beat_that_was_not_written_renews_nothing(records: Records, clock: Clock) -> None:
    lease = take(lock_over(records, clock))
    records.faults = ["not done"] * 2
    clock.now += LEASE * 0.9
    lease.check()
    clock.now += LEASE * 0.2  # who waits has seen one beat for longer than a lease
    with pytest.raises(LockLost, match="could not be renewed"):
        lease.check()
    lease.check()  # nobody took it over in the meantime


@pytest.mark.parametrize("fault", ["lost", "hidden retry"])
def test_lost_answers_are_found_by_reading_back(records: Records, clock: Clock, fault: str) -> None:
    lock = lock_over(records, clock)
    records.faults = [fault]
    lease = take(lock)
    clock.now += LEASE * 0.9
    records.faults = [fault]
    lease.check()
    clock.now += LEASE * 0.9
    records.faults = ["not done"]
    lease.check()
    clock.now += LEASE * 0.05
    lease.check()
    records.faults = [fault]
    lease.release()
    assert lock.holder() is None
    take(lock)
    records.faults = [fault]
    assert lock.break_lock() == HOLDER


def test_a_take_that_was_not_done_is_tried_again(records: Records, clock: Clock) -> None:
    records.faults = ["not done"]
    assert take(lock_over(records, clock), timeout=10).fence == 1


def test_a_broken_lock_stops_its_holder(records: Records, clock: Clock) -> None:
    lock = lock_over(records, clock)
    lease = take(lock)
    assert lock.break_lock() == HOLDER
    assert lock.break_lock() is None
    clock.now += LEASE * 0.9
    with pytest.raises(LockLost, match="broken by force"):
        lease.check()
    assert take(lock, OTHER).fence == 2


def test_a_damaged_record_is_replaced_by_force_alone(records: Records, clock: Clock) -> None:
    lock = lock_over(records, clock)
    take(lock)
    records.is_damaged = True
    with pytest.raises(UnreadableLockError, match="state unlock"):
        take(lock)
    assert lock.break_lock() is not None
    assert take(lock).fence > 1_000_000_000


def test_a_release_that_cannot_be_written_is_no_error(records: Records, clock: Clock) -> None:
    lease = take(lock_over(records, clock))
    records.is_down = True
    lease.release()
    records.is_down = False
    assert lock_over(records, clock).holder() == HOLDER  # until its lease runs out


def test_the_renewer_beats_by_itself(records: Records) -> None:
    lease = LeaseLock(records, lease_seconds=0.03).acquire(HOLDER, timeout_seconds=0)
    beaten = threading.Event()
    replace = records.replace

    def noticing(record: LockRecord, expected: str | None) -> str:
        token = replace(record, expected)
        if record.beat >= 3:
            beaten.set()
        return token

    records.replace = noticing  # type: ignore[method-assign]  # to be told of it
    assert beaten.wait(timeout=10)
    lease.release()


def test_a_free_lock_that_can_never_be_taken_is_an_error(records: Records, clock: Clock) -> None:
    records.faults = ["not done"] * 100
    with pytest.raises(StoreError, match="the lock is free, and cannot be taken"):
        take(lock_over(records, clock), timeout=10)


def test_of_eight_that_race_one_wins(records: Records) -> None:
    start = threading.Barrier(8)

    def race(number: int) -> bool:
        start.wait()
        try:
            LeaseLock(records, lease_seconds=LEASE).acquire(HOLDER, timeout_seconds=0)
        except LockHeld:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(race, range(8))) == 1
    assert records.last().fence == 1
