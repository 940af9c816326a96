"""A SQL runner that records statements instead of running them."""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError


class RecordingSqlRunner:
    """Keeps every statement, in the order it came; returns no rows."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def run(self, sql: str) -> Sequence[Row]:
        self.statements.append(sql)
        return ()


class FailingSqlRunner(RecordingSqlRunner):
    """Refuses every statement that contains a text, and records all others."""

    def __init__(self, text: str, error_class: str | None = "SOME_CLASS") -> None:
        super().__init__()
        self._text = text
        self._error_class = error_class

    def run(self, sql: str) -> Sequence[Row]:
        if self._text in sql:
            raise StatementError("no", sql=sql, error_class=self._error_class)
        return super().run(sql)
