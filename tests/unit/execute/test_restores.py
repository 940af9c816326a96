"""RESTORE beside writers: no row is lost, and a table that was restored already is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from delta_engine.actions import Phase
from delta_engine.aspects.restores import RestoreTable
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.compiled_plan import Statement
from delta_engine.errors import StatementError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.restore_runner import restore as run_restore
from delta_engine.execute.statement_runner import StatementRunner
from delta_engine.state.table_queries import commit_of
from tests.builders.models import ORDERS

RESTORE = RestoreTable(version=1, until=3)
STATEMENT = Statement(sql="RESTORE TABLE t TO VERSION AS OF 1", actions=(RESTORE,), phase=Phase.RESTORE_TABLE)
RUN = ("CREATE TABLE", "WRITE", "ADD COLUMNS", "DROP COLUMNS")


@dataclass
class Log:
    """A table whose rows are what was written; writers come right before the numbered RESTORE."""

    commits: list[tuple[str, str]] = field(default_factory=lambda: [(operation, "") for operation in RUN])
    states: list[list[str]] = field(default_factory=lambda: [[], ["first"], ["first"], ["first"]])
    writers: dict[int, str] = field(default_factory=dict)
    failures: list[Exception] = field(default_factory=list)
    restores: int = 0

    def write(self, row: str) -> None:
        self.commits.append(("WRITE", ""))
        self.states.append([*self.states[-1], row])

    def run(self, sql: str) -> Sequence[Row]:
        if sql.startswith("DESCRIBE HISTORY"):
            rows = [
                {"version": version, "operation": operation, "operationParameters": {"version": restored}}
                for version, (operation, restored) in enumerate(self.commits)
            ]
            return rows[::-1]
        self.restores += 1
        if self.restores in self.writers:
            self.write(self.writers[self.restores])
        version = int(sql.rpartition(" ")[2])
        self.commits.append(("RESTORE", str(version)))
        self.states.append(self.states[version])
        if self.failures:
            raise self.failures.pop()
        return ()


def restore(log: Log) -> None:
    control = ApplyControl(wait=lambda _seconds: None)
    run_restore(StatementRunner(runner=log, name=ORDERS, control=control, address="t"), STATEMENT)


def test_the_version_comes_back_in_one_commit() -> None:
    log = Log()
    restore(log)
    assert (log.commits[-1], len(log.commits)) == (("RESTORE", "1"), 5)


def test_a_restored_table_is_left_alone() -> None:
    log = Log()
    restore(log)
    restore(log)
    assert log.restores == 1


def test_rows_that_were_written_before_stop_it() -> None:
    log = Log()
    log.write("theirs")
    with pytest.raises(StatementError, match=r"other writers added versions \(4\)"):
        restore(log)
    assert (log.restores, log.states[-1]) == (0, ["first", "theirs"])


def test_rows_that_were_written_in_between_come_back() -> None:
    log = Log(writers={1: "theirs"})
    with pytest.raises(StatementError, match=r"\(4\), which RESTORE would undo. The table did not change"):
        restore(log)
    assert log.states[-1] == ["first", "theirs"]


def test_rows_that_were_written_twice_in_between_are_named() -> None:
    log = Log(writers={1: "theirs", 2: "again"})
    with pytest.raises(
        StatementError, match="those of versions 6 are no longer in the table, but in its history"
    ):
        restore(log)
    assert log.states[6] == ["first", "again"]


def test_rows_that_were_written_after_a_lost_answer_stay() -> None:
    lost = StatementError("lost", sql="", error_class="DELTA_METADATA_CHANGED")

    class Busy(Log):
        def run(self, sql: str) -> Sequence[Row]:
            try:
                return super().run(sql)
            except StatementError:
                self.write("theirs")
                raise

    log = Busy(failures=[lost])
    restore(log)
    assert (log.restores, log.states[-1]) == (1, ["first", "theirs"])


def test_a_lost_answer_is_looked_up() -> None:
    log = Log(failures=[ConnectionError("lost")])
    with pytest.raises(StatementError, match="no answer"):
        restore(log)
    restore(log)
    assert (log.restores, log.commits[-1]) == (1, ("RESTORE", "1"))


@pytest.mark.parametrize(
    ("operation", "predicate", "is_lost"),
    [
        ("UPDATE", '["((id#1L >= 3) AND (region#2 IS NULL))"]', False),
        ("MERGE", '["((id#1L >= 3) AND (region#2 IS NULL))"]', False),  # a range of a fill
        ("MERGE", '["((id#1L >= 3) AND (id#1L < 9) AND (region#2 IS NULL))"]', False),
        ("MERGE", '["(region#2 = s.region#4)"]', True),
        ("MERGE", '["((id#1L >= 3) AND (id#1L IS NULL))"]', True),
    ],
)
def test_the_fills_of_a_run_are_its_own(operation: str, predicate: str, is_lost: bool) -> None:
    parameters = {"predicate": predicate, "notMatchedPredicates": "[]"}
    commit = commit_of({"version": 2, "operation": operation, "operationParameters": parameters})
    assert bool(list(replace(RESTORE, filled=("region",)).lost([commit]))) is is_lost


def test_the_fill_of_a_column_with_quotes_is_its_own() -> None:
    predicate = '["(`a``\\"b`#2 IS NULL)"]'
    commit = commit_of({"version": 2, "operation": "UPDATE", "operationParameters": {"predicate": predicate}})
    assert not list(replace(RESTORE, filled=('a`"b',)).lost([commit]))
