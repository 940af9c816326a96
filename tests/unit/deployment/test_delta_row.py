"""The row of a Delta table, without Delta: tables not seen yet, refusals in each form, and two that write at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
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
from tests.fakes.recording_sql_runner import RecordingSqlRunner
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


@pytest.mark.parametrize(
    ("times", "expected", "statements"),
    [
        (2, None, ["CREATE", "MERGE", "MERGE", "MERGE", "SELECT"]),
        (9, None, ["CREATE", "MERGE", "MERGE", "MERGE"]),
        (1, {"fence": 1}, ["UPDATE"]),
    ],
    ids=["seen in a moment", "never seen", "a row that was there"],
)
def test_late_tables(times: int, expected: dict[str, int] | None, statements: list[str]) -> None:
    runner = LateTable(times)
    with nullcontext() if times == 2 else pytest.raises(StoreError, match="it does not exist"):
        row_over(runner).replace({"fence": 1}, expected)
    assert runner.statements == statements


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


def outcome_of(error: StatementError) -> type[BaseException]:
    with pytest.raises(StoreError) as raised:
        row_over(Refusing("UPDATE", error)).replace({"fence": 2}, {"fence": 1})
    assert ("must exist" in str(raised.value)) == (raised.type is StoreError)
    return raised.type


@pytest.mark.parametrize("form", FORMS)
def test_a_refusal_leaves_no_doubt_and_an_unavailable_platform_does(form: str) -> None:
    refused, unavailable = (
        statement_error(FORMS[form](condition, "No."), sql="UPDATE")
        for condition in ("SOME_NEW_CONDITION", "TEMPORARILY_UNAVAILABLE")
    )
    assert (outcome_of(refused), outcome_of(unavailable)) == (StoreError, UncertainWriteError)


def test_a_refusal_without_any_condition_is_a_refusal_and_a_lost_answer_is_a_doubt() -> None:
    assert outcome_of(statement_error("it is off", sql="")) is StoreError
    assert outcome_of(statement_error("it is off", sql="", is_outcome_unknown=True)) is UncertainWriteError


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


@pytest.mark.parametrize(("verb", "error"), [("SELECT", LOST), ("MERGE", LOST), ("MERGE", UNAVAILABLE)])
def test_a_first_row_is_found_after_a_lost_answer(verb: str, error: StatementError) -> None:
    tables = SmallTables()
    row_over(Faulty(tables, verb, error)).replace({"fence": 1}, expected=None)
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


@dataclass
class _InTurn:
    """The runner of one of several runs."""

    who: str
    turns: Turns
    runner: SqlRunner

    def run(self, sql: str) -> Sequence[Row]:
        return self.turns.run(self.who, self.runner, sql)


FENCES = {"a": 1, "b": 2}


def winners(order: Sequence[str], tables: SmallTables) -> set[int]:
    """Let two runs write the first row in one order of their statements; return who was told that it is written."""
    turns = Turns(order)

    def write(who: str) -> int | None:
        try:
            row_over(_InTurn(who, turns, tables)).replace({"fence": FENCES[who]}, expected=None)
        except ConflictError:
            return None
        finally:
            turns.leave(who)
        return FENCES[who]

    with ThreadPoolExecutor(2) as pool:
        return {fence for fence in pool.map(write, FENCES) if fence is not None}


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


@pytest.fixture
def two_rows() -> SmallTables:
    """Tables with the rows of two runs, the second of which was killed before it removed its own."""
    tables, sent = SmallTables(merges_at_once=True), RecordingSqlRunner()
    row_over(tables).replace({"fence": 1}, expected=None)
    with suppress(StoreError):
        row_over(sent).replace({"fence": 2}, expected=None)
    tables.run(next(sql for sql in sent.statements if sql.startswith("MERGE")))
    return tables


def test_a_killed_first_write_is_reported_with_a_way_out_that_works(two_rows: SmallTables) -> None:
    waits: list[float] = []
    with pytest.raises(CorruptStateError, match="there are 2 rows") as refusal:
        row_over(two_rows, waits.append).read()
    assert waits == [1.0] * 5
    way_out = re.search(r"Free it: (DELETE .+)$", refusal.value.way_out)
    assert way_out is not None
    two_rows.run(way_out[1])
    assert row_over(two_rows).read() is None


def test_a_second_row_that_goes_again_is_waited_for(two_rows: SmallTables) -> None:
    delete = "DELETE FROM `deployment_locks` WHERE `fence` = 2"
    row = row_over(two_rows, lambda _seconds: two_rows.run(delete)).read()
    assert row is not None
    assert row["fence"] == 1
