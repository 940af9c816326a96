"""A rewrite that does not hold its rows is taken back, and never a row of a writer with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from delta_engine.aspects.partitioning import VerifyRewrite
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.compiled_plan import Statement
from delta_engine.errors import StatementError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.rewrite_runner import verify_rewrite
from delta_engine.execute.statement_runner import StatementRunner
from delta_engine.models.types import AtomicType
from delta_engine.sql.backfills import sql_compare_versions
from tests.builders.models import ORDERS

COLUMNS = (("id", AtomicType("int")),)
STATEMENT = Statement(
    sql=sql_compare_versions("t", COLUMNS), actions=(VerifyRewrite(COLUMNS),), phase=VerifyRewrite.phase
)


@dataclass
class Log:
    """A table that was rewritten; a writer comes right before the statement that begins so."""

    writer_before: str = ""
    commits: list[str] = field(
        default_factory=lambda: ["CREATE TABLE", "WRITE", "CREATE OR REPLACE TABLE AS SELECT"]
    )
    restored: list[int] = field(default_factory=list)

    def run(self, sql: str) -> Sequence[Row]:
        if sql.startswith("DESCRIBE HISTORY"):
            return [
                {"version": version, "operation": operation, "operationParameters": {}}
                for version, operation in reversed([*enumerate(self.commits)])
            ]
        if self.writer_before and sql.startswith(self.writer_before):
            self.writer_before = ""
            self.commits.append("WRITE")
        if sql.startswith("RESTORE"):
            self.restored.append(int(sql.rpartition(" ")[2]))
            self.commits.append("RESTORE")
            return ()
        raise StatementError("the number of rows has changed", sql=sql, error_class="USER_RAISED_EXCEPTION")


def verify(log: Log) -> None:
    control = ApplyControl(wait=lambda _seconds: None)
    verify_rewrite(StatementRunner(runner=log, name=ORDERS, control=control, address="t"), STATEMENT)


def test_rows_that_differ_take_the_rewrite_back() -> None:
    log = Log()
    with pytest.raises(StatementError, match=r"has changed The table was restored to version 1"):
        verify(log)
    assert log.restored == [1]


def test_rows_that_are_written_during_the_verification_stay() -> None:
    log = Log(writer_before="SELECT")
    with pytest.raises(StatementError, match="the number of rows has changed"):
        verify(log)
    assert not log.restored


def test_rows_that_are_written_right_before_the_restore_come_back() -> None:
    log = Log(writer_before="RESTORE")
    with pytest.raises(
        StatementError,
        match=r"has changed; it could not be restored: other writers added versions \(3\)",
    ):
        verify(log)
    assert log.restored == [1, 3]


def test_a_rewrite_before_other_columns_is_verified_no_more() -> None:
    """A run that verified it ended before it was done, and had added a column."""

    class Changed(Log):
        def run(self, sql: str) -> Sequence[Row]:
            if sql.startswith("SELECT"):
                condition = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
                raise StatementError("no column", sql=sql, error_class=condition)
            return super().run(sql)

    log = Changed(commits=["WRITE", "CREATE OR REPLACE TABLE AS SELECT", "ADD COLUMNS"])
    verify(log)
    assert not log.restored
