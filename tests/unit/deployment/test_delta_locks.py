"""The lock in a Delta table: a refusal ends the wait at once, and the last cause is quoted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from delta_engine.deployment.errors import StoreError
from delta_engine.deployment.locks.delta_records import DeltaLockRecords
from delta_engine.deployment.locks.lease import LeaseLock
from delta_engine.error_conditions import statement_error
from delta_engine.errors import StatementError
from delta_engine.sql_runner import Row
from tests.deployment_builders import HOLDER
from tests.error_forms import FORMS


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
