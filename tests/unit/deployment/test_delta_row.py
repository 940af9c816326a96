"""The row of a Delta table, without Delta: tables not seen yet, refusals in each form, and two that write at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from itertools import permutations
from threading import Condition

import pytest

from delta_engine.backends.cancellation import StoppedError
from delta_engine.backends.error_conditions import statement_error
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.deployment.errors import ConflictError, CorruptStateError, StoreError, UncertainWriteError
from delta_engine.deployment.stores.delta_row import DeltaRow
from delta_engine.errors import StatementError
from tests.builders.error_forms import FORMS
from tests.fakes.warehouse_sql import SmallTables


class LateTable:
    """Says of a table that was just made that it is not there, so many times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.statements: list[str] = []

    def run(self, sql: str) -> Sequence[Row]:
        verb = sql.split()[0]
        self.statements.append(verb)
        if verb == "CREATE":
            return []
        if self.times:
            self.times -= 1
            raise StatementError("it does not exist", sql=sql, error_class="DELTA_TABLE_NOT_FOUND")
        return [{"fence": 1}] if verb == "SELECT" else [{"num_affected_rows": 1}]


class Refusing:
    """Answers statements that begin with a verb with an error, and knows who asks."""

    def __init__(self, verb: str, error: StatementError) -> None:
        self.verb = verb
        self.error = error
        self.statements: list[str] = []

    def run(self, sql: str) -> Sequence[Row]:
        self.statements.append(sql)
        if sql.startswith("SELECT current_user"):
            return [{"current_user()": "ci@example.com"}]
        if sql.startswith(self.verb):
            raise self.error
        return ()


def row_over(runner: SqlRunner, pause: Callable[[float], object] = lambda _seconds: None) -> DeltaRow:
    table, columns = "`dev`.`ops`.`deployment_locks`", {"fence": int}
    return DeltaRow(runner, table, "prod", columns, "locks", one_of_several="Free it:", pause=pause)


def test_a_table_that_somebody_else_makes_as_well_is_seen_in_a_moment() -> None:
    runner = LateTable(times=2)
    row_over(runner).replace({"fence": 1}, expected=None)
    assert runner.statements == ["CREATE", "MERGE", "MERGE", "MERGE", "SELECT"]


def test_a_table_that_stays_away_is_an_error() -> None:
    runner = LateTable(times=9)
    with pytest.raises(StoreError, match="it does not exist"):
        row_over(runner).replace({"fence": 1}, expected=None)
    assert runner.statements == ["CREATE", "MERGE", "MERGE", "MERGE"]


def test_a_row_that_was_there_is_not_asked_for_again() -> None:
    runner = LateTable(times=1)
    with pytest.raises(StoreError):
        row_over(runner).replace({"fence": 2}, expected={"fence": 1})
    assert runner.statements == ["UPDATE"]


GRANTS = (
    "GRANT USE CATALOG ON CATALOG `dev` TO `ci@example.com`;\n"
    "GRANT USE SCHEMA, CREATE TABLE, SELECT, MODIFY ON SCHEMA `dev`.`ops` TO `ci@example.com`;"
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("verb", ["CREATE", "MERGE", "SELECT *"])
def test_a_missing_right_is_refused_in_each_form_with_the_grants_to_paste(form: str, verb: str) -> None:
    words = FORMS[form]("PERMISSION_DENIED", "User does not have CREATE TABLE on Schema 'dev.ops'.")
    row = row_over(Refusing(verb, statement_error(words, sql=verb)))
    with pytest.raises(StoreError) as refusal:
        row.read() if verb == "SELECT *" else row.replace({"fence": 1}, expected=None)
    assert type(refusal.value) is StoreError
    assert words.removesuffix(".") in str(refusal.value)
    assert str(refusal.value).endswith(GRANTS)
    assert ".." not in str(refusal.value)


@pytest.mark.parametrize("form", FORMS)
def test_another_refusal_is_no_doubt_about_the_outcome(form: str) -> None:
    runner = Refusing("UPDATE", statement_error(FORMS[form]("SOME_NEW_CONDITION", "No."), sql="UPDATE"))
    with pytest.raises(StoreError, match="must exist") as refusal:
        row_over(runner).replace({"fence": 2}, expected={"fence": 1})
    assert type(refusal.value) is StoreError


@pytest.mark.parametrize("form", FORMS)
def test_a_platform_that_is_unavailable_leaves_a_doubt(form: str) -> None:
    words = FORMS[form]("TEMPORARILY_UNAVAILABLE", "Later.")
    with pytest.raises(UncertainWriteError):
        row_over(Refusing("UPDATE", statement_error(words, sql=""))).replace({"fence": 2}, {"fence": 1})


def test_a_refusal_without_any_condition_is_a_refusal_and_a_lost_answer_is_a_doubt() -> None:
    def outcome(*, is_outcome_unknown: bool) -> type[Exception]:
        error = statement_error("it is off", sql="", is_outcome_unknown=is_outcome_unknown)
        with pytest.raises(StoreError) as raised:
            row_over(Refusing("UPDATE", error)).replace({"fence": 2}, {"fence": 1})
        return raised.type

    assert outcome(is_outcome_unknown=False) is StoreError
    assert outcome(is_outcome_unknown=True) is UncertainWriteError


THROTTLED = statement_error("[RESOURCE_EXHAUSTED] Later.", sql="")
LOST = statement_error("The connection is gone.", sql="", is_outcome_unknown=True)
UNAVAILABLE = statement_error("[TEMPORARILY_UNAVAILABLE] Later.", sql="")


@pytest.mark.parametrize("error", [THROTTLED, LOST, UNAVAILABLE, StoppedError("")])
@pytest.mark.parametrize("verb", ["SELECT *", "UPDATE"])
def test_an_error_that_is_no_refusal_gives_no_advice_about_rights(verb: str, error: StatementError) -> None:
    row = row_over(Refusing(verb, error))
    with pytest.raises(StoreError) as raised:
        row.read() if verb == "SELECT *" else row.replace({"fence": 2}, expected={"fence": 1})
    assert "must exist" not in str(raised.value)
    assert "GRANT" not in str(raised.value)


@dataclass
class Faulty:
    """Fails the first statements that begin with a verb, each before or after it is done."""

    runner: SqlRunner
    verb: str
    error: StatementError = LOST
    _: KW_ONLY
    times: int = 1
    is_done: bool = True
    then: Callable[[], object] = lambda: None

    def run(self, sql: str) -> Sequence[Row]:
        if not self.times or not sql.startswith(self.verb):
            return self.runner.run(sql)
        self.times -= 1
        if self.is_done:
            self.runner.run(sql)
        if not self.times:
            self.then()
        raise self.error


def fences(tables: SmallTables) -> list[object]:
    return [row["fence"] for row in tables.run("SELECT * FROM `deployment_locks`")]


@pytest.mark.parametrize("error", [LOST, THROTTLED, UNAVAILABLE, StoppedError("")])
def test_a_first_row_that_can_never_be_read_back_is_a_doubt(error: StatementError) -> None:
    tables, waits = SmallTables(), list[float]()
    row = row_over(Faulty(tables, "SELECT", error, times=99), waits.append)
    with pytest.raises(UncertainWriteError):
        row.replace({"fence": 1}, expected=None)
    assert fences(tables) == [1]
    assert waits


def test_a_first_row_is_read_back_again_after_a_lost_answer() -> None:
    tables = SmallTables()
    row_over(Faulty(tables, "SELECT")).replace({"fence": 1}, expected=None)
    assert fences(tables) == [1]


@pytest.mark.parametrize("error", [LOST, UNAVAILABLE])
def test_a_first_row_whose_answer_is_lost_is_found(error: StatementError) -> None:
    tables = SmallTables()
    row_over(Faulty(tables, "MERGE", error)).replace({"fence": 1}, expected=None)
    assert fences(tables) == [1]


def test_a_first_row_that_is_not_there_after_a_lost_answer_is_a_doubt() -> None:
    tables = SmallTables()
    with pytest.raises(UncertainWriteError):
        row_over(Faulty(tables, "MERGE", is_done=False)).replace({"fence": 1}, expected=None)
    assert fences(tables) == []


def test_a_doubt_stays_where_the_row_is_another_runs() -> None:
    tables = SmallTables(merges_at_once=True)
    other = row_over(tables)
    faulty = Faulty(tables, "MERGE", is_done=False, then=lambda: other.replace({"fence": 2}, expected=None))
    with pytest.raises(UncertainWriteError):
        row_over(faulty).replace({"fence": 1}, expected=None)
    assert fences(tables) == [2]


def test_a_second_row_whose_answer_is_lost_is_taken_back() -> None:
    tables = SmallTables(merges_at_once=True)
    row_over(tables).replace({"fence": 2}, expected=None)
    with pytest.raises(ConflictError):
        row_over(Faulty(tables, "MERGE")).replace({"fence": 1}, expected=None)
    assert fences(tables) == [2]


CONFLICT = statement_error("[DELTA_CONCURRENT_DELETE_READ] Again.", sql="")


@pytest.mark.parametrize(
    ("error", "is_done", "times"),
    [(LOST, True, 1), (LOST, False, 4), (UNAVAILABLE, False, 4), (CONFLICT, False, 4), (THROTTLED, False, 4)],
)
def test_a_row_is_taken_back_again_after_a_pause(error: StatementError, is_done: bool, times: int) -> None:
    tables, waits = SmallTables(merges_at_once=True), list[float]()
    row_over(tables).replace({"fence": 2}, expected=None)
    faulty = Faulty(tables, "DELETE", error, times=times, is_done=is_done)
    with pytest.raises(ConflictError, match="another run wrote"):
        row_over(faulty, waits.append).replace({"fence": 1}, expected=None)
    assert fences(tables) == [2]
    assert len(waits) == times


def test_a_row_that_can_never_be_taken_back_is_a_doubt() -> None:
    tables = SmallTables(merges_at_once=True)
    row_over(tables).replace({"fence": 2}, expected=None)
    faulty = Faulty(tables, "DELETE", CONFLICT, times=99, is_done=False)
    with pytest.raises(UncertainWriteError):
        row_over(faulty).replace({"fence": 1}, expected=None)


class Turns:
    """Lets the statements of several runs through, one at a time, in a given order of runs."""

    def __init__(self, order: Sequence[str]) -> None:
        self._order = list(order)
        self._over: set[str] = set()
        self._changed = Condition()

    def run(self, who: str, runner: SqlRunner, sql: str) -> Sequence[Row]:
        with self._changed:
            assert self._changed.wait_for(lambda: self._next() in (who, None), timeout=10)
            if self._order:
                self._order.pop(0)
            try:
                return runner.run(sql)
            finally:
                self._changed.notify_all()

    def leave(self, who: str) -> None:
        with self._changed:
            self._over.add(who)
            self._changed.notify_all()

    def _next(self) -> str | None:
        while self._order and self._order[0] in self._over:
            self._order.pop(0)
        return self._order[0] if self._order else None


class InTurn:
    """The runner of one of several runs."""

    def __init__(self, who: str, turns: Turns, runner: SqlRunner) -> None:
        self._who = who
        self._turns = turns
        self._runner = runner

    def run(self, sql: str) -> Sequence[Row]:
        return self._turns.run(self._who, self._runner, sql)


FENCES = {"a": 1, "b": 2}


def winners(order: Sequence[str], tables: SmallTables) -> set[int]:
    """Let two runs write the first row in one order of their statements; return who was told that it is written."""
    turns = Turns(order)

    def write(who: str) -> int | None:
        try:
            row_over(InTurn(who, turns, tables)).replace({"fence": FENCES[who]}, expected=None)
        except ConflictError:
            return None
        finally:
            turns.leave(who)
        return FENCES[who]

    with ThreadPoolExecutor(2) as pool:
        return {found for found in pool.map(write, FENCES) if found is not None}


@pytest.mark.parametrize("merges_at_once", [True, False])
def test_of_two_first_writes_at_once_at_most_one_wins_and_its_row_stays(merges_at_once: bool) -> None:
    orders = sorted(set(permutations("aaaabbbb")))
    assert len(orders) == 70
    seen = set()
    for order in orders:
        tables = SmallTables(merges_at_once=merges_at_once)
        won = winners(order, tables)
        rows = tables.run("SELECT * FROM `deployment_locks`")
        assert {row["fence"] for row in rows} == won, order
        assert len(rows) == len(won) <= 1, order
        seen.add(frozenset(won))
    assert seen >= {frozenset({1}), frozenset({2})}


def test_a_run_that_was_killed_before_it_took_its_row_back_is_told_with_a_way_out_that_works() -> None:
    tables = SmallTables(merges_at_once=True)
    row_over(tables).replace({"fence": 1}, expected=None)
    (merge,) = [sql for sql in _statements_of_a_first_row(fence=2) if sql.startswith("MERGE")]
    tables.run(merge)
    waits: list[float] = []
    with pytest.raises(CorruptStateError, match="there are 2 rows") as refusal:
        row_over(tables, waits.append).read()
    assert waits == [1.0] * 5
    way_out = re.search(r"Free it: (DELETE .+)$", refusal.value.way_out)
    assert way_out is not None
    tables.run(way_out[1])
    assert row_over(tables).read() is None


def test_a_second_row_that_goes_again_is_waited_for() -> None:
    tables = SmallTables(merges_at_once=True)
    row_over(tables).replace({"fence": 1}, expected=None)
    (merge,) = [sql for sql in _statements_of_a_first_row(fence=2) if sql.startswith("MERGE")]
    tables.run(merge)
    found = row_over(
        tables, lambda _seconds: tables.run("DELETE FROM `deployment_locks` WHERE `fence` = 2")
    ).read()
    assert found is not None
    assert found["fence"] == 1


def _statements_of_a_first_row(fence: int) -> list[str]:
    runner = LateTable(times=0)
    sent: list[str] = []

    class Noting:
        def run(self, sql: str) -> Sequence[Row]:
            sent.append(sql)
            return [{"fence": fence}] if sql.startswith("SELECT") else runner.run(sql)

    row_over(Noting()).replace({"fence": fence}, expected=None)
    return sent
