"""Records statements instead of running them: for dry runs, SQL scripts and tests."""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine.backends.sql_runner import Row


class RecordingSqlRunner:
    """Keeps every statement, in the order it came; returns no rows."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def run(self, sql: str) -> Sequence[Row]:
        """Record one statement."""
        self.statements.append(sql)
        return ()
