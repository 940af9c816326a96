"""Runs only the statements that somebody has reviewed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from threading import Lock

from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import DeltaEngineError, StatementError
from delta_engine.sql import sql_current_user

_ASKS = frozenset([sql_current_user()])
"""What executors ask besides, for messages; it changes nothing."""


class UnreviewedStatementError(DeltaEngineError):
    """A statement that is not in the reviewed script, or not as often: it did not run.

    Args:
        sql: the statement.
    """

    def __init__(self, sql: str) -> None:
        self.sql = sql
        super().__init__(
            f"a statement that is not in the reviewed plan was stopped before it ran: {sql}\n"
            "What ran before it is in the journal, which the next run takes in. This is an error of the engine: "
            "please report it."
        )


class ReviewedSqlRunner:
    """Lets each statement of a script through as often as it is in there; one that failed may be tried again.

    Args:
        runner: what the statements go to.
        script: the statements.
    """

    def __init__(self, runner: SqlRunner, script: Iterable[str]) -> None:
        self._runner = runner
        self._left = Counter(script)
        self._lock = Lock()

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement of the script; see `SqlRunner.run`.

        Raises:
            UnreviewedStatementError: it is not in there, or ran already.
        """
        if sql in _ASKS:
            return self._runner.run(sql)
        self._take(sql)
        try:
            return self._runner.run(sql)
        except StatementError:
            self._give_back(sql)
            raise

    def _take(self, sql: str) -> None:
        with self._lock:
            if not self._left[sql]:
                raise UnreviewedStatementError(sql)
            self._left[sql] -= 1

    def _give_back(self, sql: str) -> None:
        with self._lock:
            self._left[sql] += 1
