"""A SQL runner that records statements, and answers them as a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeAlias

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError

Run: TypeAlias = Callable[[str], Sequence[Row]]
Answer: TypeAlias = Sequence[Row] | Exception


class RecordingSqlRunner:
    """Keeps every statement, in the order it came; `answer` runs it. By default, it returns no rows."""

    def __init__(self, answer: Run = lambda _sql: ()) -> None:
        self.statements: list[str] = []
        self._answer = answer

    def run(self, sql: str) -> Sequence[Row]:
        self.statements.append(sql)
        return self._answer(sql)

    @property
    def verbs(self) -> list[str]:
        return [sql.split()[0] for sql in self.statements]


class ScriptedSqlRunner(RecordingSqlRunner):
    """Answers a statement by the first text of a script that it contains; `otherwise` runs the others."""

    def __init__(self, script: Mapping[str, Answer], otherwise: Run = lambda _sql: ()) -> None:
        def answer(sql: str) -> Sequence[Row]:
            for text, rows in script.items():
                if text in sql:
                    if isinstance(rows, Exception):
                        raise rows
                    return rows
            return otherwise(sql)

        super().__init__(answer)


class FailingSqlRunner(RecordingSqlRunner):
    """Refuses every statement that contains a text, and records all others."""

    def __init__(self, text: str, error_class: str | None = "SOME_CLASS") -> None:
        super().__init__()
        self._text = text
        self._error_class = error_class

    def run(self, sql: str) -> Sequence[Row]:
        return refuse(sql, self._error_class) if self._text in sql else super().run(sql)


def refuse(sql: str, error_class: str | None, message: str = "no") -> NoReturn:
    """Refuse a statement, as a platform does."""
    raise StatementError(message, sql=sql, error_class=error_class)
