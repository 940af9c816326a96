"""Runs SQL only while something holds, such as a lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delta_engine.backends.sql_runner import Row, SqlRunner


class GuardedSqlRunner:
    """Makes a check before every statement.

    Args:
        runner: what the statements go to.
        check: raises if no more statements may run.
    """

    def __init__(self, runner: SqlRunner, check: Callable[[], None]) -> None:
        self._runner = runner
        self._check = check

    def run(self, sql: str) -> Sequence[Row]:
        """Check, then run one statement; see `SqlRunner.run`."""
        self._check()
        return self._runner.run(sql)
