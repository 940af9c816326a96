"""Runs rendered SQL, one statement at a time, and knows where it stands."""

from __future__ import annotations

from collections.abc import Iterable

from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.errors import StatementError
from delta_engine.sql import sql_current_user


class DeltaDDL:
    """Runs data definition statements.

    Args:
        runner: what the statements go to.
    """

    def __init__(self, runner: SqlRunner) -> None:
        self._runner = runner

    def run(self, statements: Iterable[str | None]) -> int:
        """Run statements in order, and stop at the first that fails.

        Returns:
            How many ran.

        Raises:
            InterruptedStatementsError: one failed; says which, and how many had run before.
        """
        done = 0
        for sql in statements:
            try:
                done += self._run(sql)
            except StatementError as error:
                raise InterruptedStatementsError(error, done) from error
        return done

    def current_user(self) -> str:
        """Return who runs the statements, for messages."""
        try:
            rows = self._runner.run(sql_current_user())
        except StatementError:
            rows = ()
        return next((str(value) for row in rows for value in row.values()), "whoever runs this")

    def _run(self, sql: str | None) -> int:
        """Run one statement, or nothing for None; return how many statements that was."""
        if sql is None:
            return 0
        self._runner.run(sql)
        return 1


class InterruptedStatementsError(StatementError):
    """A statement failed after others of the same table had run."""

    def __init__(self, cause: StatementError, statements_done: int) -> None:
        super().__init__(cause.message, sql=cause.sql, **cause.facts)
        self.cause = cause
        self.statements_done = statements_done
