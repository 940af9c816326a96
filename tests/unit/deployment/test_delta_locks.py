"""The lock in a Delta table: a refusal ends the wait at once, and the last cause is quoted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event, Thread

import pytest

from delta_engine.backends.cancellation import Stop
from delta_engine.backends.error_conditions import statement_error
from delta_engine.backends.retries import past_throttling
from delta_engine.backends.sql_runner import Row
from delta_engine.deployment.errors import LockLost, StoreError
from delta_engine.deployment.locks.lease import LeaseLock
from delta_engine.deployment.stores.databricks import DeltaLockRecords
from delta_engine.errors import StatementError
from tests.builders.deployment import HOLDER
from tests.builders.error_forms import FORMS
from tests.fakes.warehouse_sql import SmallTables


class StateSchema:
    """A schema without tables in which CREATE TABLE fails in a given way."""

    def __init__(self, error: StatementError) -> None:
        self.error = error
        self.statements: list[str] = []

    def run(self, sql: str) -> Sequence[Row]:
        self.statements.append(sql)
        if sql.startswith("SELECT current_user"):
            return [{"current_user()": "ci@example.com"}]
        if sql.startswith("SELECT"):
            raise statement_error("[TABLE_OR_VIEW_NOT_FOUND] no", sql=sql)
        raise self.error


class Clock:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


def acquire(schema: StateSchema, clock: Clock) -> StoreError:
    records = DeltaLockRecords(schema, "`dev`.`ops`.`deployment_locks`", "prod")
    lock = LeaseLock(records, lease_seconds=120, monotonic=clock, pause=clock.pause)
    with pytest.raises(StoreError) as raised:
        lock.acquire(HOLDER, timeout_seconds=180)
    return raised.value


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_right_ends_the_wait_at_once_in_each_form(form: str) -> None:
    words = FORMS[form]("PERMISSION_DENIED", "User does not have CREATE TABLE on Schema 'dev.ops'.")
    schema, clock = StateSchema(statement_error(words, sql="CREATE")), Clock()
    message = str(acquire(schema, clock))
    assert words.removesuffix(".") in message
    assert (
        "GRANT USE SCHEMA, CREATE TABLE, SELECT, MODIFY ON SCHEMA `dev`.`ops` TO `ci@example.com`;" in message
    )
    assert [sql.split()[0] for sql in schema.statements] == ["SELECT", "CREATE", "SELECT"]
    assert clock.now == 0


def test_a_lock_that_no_answer_ever_gives_quotes_the_last_cause() -> None:
    schema = StateSchema(statement_error("The connection is gone.", sql="CREATE", is_outcome_unknown=True))
    message = str(acquire(schema, Clock()))
    assert "the lock is free, and cannot be taken. The last attempt:" in message
    assert message.endswith("The connection is gone. Run again.")


class ThrottledTables:
    """Turns updates away for too many requests, until the platform is free again."""

    def __init__(self, is_free: Stop) -> None:
        self._tables = SmallTables()
        self._is_free = is_free
        self.is_turned_away = Event()

    def run(self, sql: str) -> Sequence[Row]:
        return past_throttling(lambda: self._run(sql), sql)

    def _run(self, sql: str) -> Sequence[Row]:
        if sql.startswith("UPDATE") and not self._is_free.is_requested():
            self.is_turned_away.set()
            raise statement_error("[RESOURCE_EXHAUSTED] Later.", sql=sql)
        return self._tables.run(sql)


@pytest.fixture
def is_free() -> Iterator[Stop]:
    """Ends the throttling with the test, so that no thread outlives it for long."""
    stop = Stop()
    yield stop
    stop.request()


def is_over_soon(thread: Thread) -> bool:
    thread.start()
    thread.join(timeout=10)
    return not thread.is_alive()


def test_a_release_waits_neither_for_a_throttled_beat_nor_long_for_its_own_write(is_free: Stop) -> None:
    tables = ThrottledTables(is_free)
    records = DeltaLockRecords(tables, "`dev`.`ops`.`deployment_locks`", "prod")
    lock = LeaseLock(records, lease_seconds=0.6)
    lease = lock.acquire(HOLDER, timeout_seconds=0)
    assert tables.is_turned_away.wait(timeout=10)
    assert is_over_soon(Thread(target=lease.release, daemon=True))
    assert lock.holder() == HOLDER  # until its lease runs out


def test_a_beat_is_given_up_when_the_lease_runs_out(is_free: Stop) -> None:
    tables = ThrottledTables(is_free)
    records = DeltaLockRecords(tables, "`dev`.`ops`.`deployment_locks`", "prod")
    lease = LeaseLock(records, lease_seconds=0.6).acquire(HOLDER, timeout_seconds=0)
    assert tables.is_turned_away.wait(timeout=10)
    lost: list[LockLost] = []

    def check() -> None:
        try:
            while True:
                lease.check()
        except LockLost as error:
            lost.append(error)

    assert is_over_soon(Thread(target=check, daemon=True))
    assert "could not be renewed" in str(lost[0])


def test_a_release_is_not_cut_short_by_the_stop_that_the_run_ended_with(is_free: Stop) -> None:
    tables, ended = ThrottledTables(is_free), Stop()
    records = DeltaLockRecords(tables, "`dev`.`ops`.`deployment_locks`", "prod")
    lock = LeaseLock(records, lease_seconds=3600)
    lease = lock.acquire(HOLDER, timeout_seconds=0)
    ended.request()

    def release() -> None:
        with ended.as_current():
            lease.release()

    thread = Thread(target=release, daemon=True)
    thread.start()
    assert tables.is_turned_away.wait(timeout=10)
    is_free.request()
    thread.join(timeout=10)
    assert lock.holder() is None
