"""Records the place, duration and answer of every statement of a conformance run, and limits their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final

from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import StatementError
from delta_engine.report.conformance_report import ErrorForm, StatementReport

MOST_STATEMENTS: Final = 399
"""A run sends fewer than 400 statements."""

KEPT_FOR_DROPS: Final = 45
"""How many of them are reserved for the clean-up: one for each scratch object, and some for retries."""

MOST_SECONDS: Final = 600.0
"""No step begins later, so that a run ends within 15 minutes."""

_LONGEST_MESSAGE: Final = 4000


class StatementLog:
    """The statements of a run in the order of their answers; `seconds` is a monotonic clock."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self.seconds = seconds
        self._started = seconds()
        self._reports: list[StatementReport] = []
        self._place = ""
        self._most = MOST_STATEMENTS - KEPT_FOR_DROPS
        self._sent = 0
        self._lock = Lock()

    def used_up(self, statements: int) -> str:
        """Return why work of so many statements may not begin; empty if it may."""
        if self.seconds() - self._started > MOST_SECONDS:
            return f"the {MOST_SECONDS / 60:.0f} minutes of the run were over"
        if not self.has_room(statements):
            return f"the {self._most} statements of the run were used up"
        return ""

    def has_room(self, statements: int) -> bool:
        """Whether the run may still send so many statements."""
        return self._sent + statements <= self._most

    def through(self, runner: SqlRunner) -> SqlRunner:
        """Return a runner that records what it runs."""
        return _RecordedSqlRunner(self, runner)

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Record the statements inside under a step or probe, in every thread."""
        before, self._place = self._place, place
        try:
            yield
        finally:
            self._place = before

    def release_kept(self) -> None:
        """Let the clean-up send the statements that were reserved for it."""
        self._most = MOST_STATEMENTS

    def reports(self) -> tuple[StatementReport, ...]:
        """Return the statements, numbered."""
        return tuple(replace(one, number=number) for number, one in enumerate(self._reports, start=1))

    def begin(self, sql: str) -> str:
        """Count a statement and return the place that sends it; raises StatementError at the limit."""
        with self._lock:
            if self._sent >= self._most:
                message = f"the conformance run may not send more than {self._most} statements"
                raise StatementError(message, sql=sql, error_class=None)
            self._sent += 1
            return self._place

    def end(self, report: StatementReport) -> None:
        """Record the answer of a statement."""
        with self._lock:
            self._reports.append(report)


@dataclass(frozen=True, slots=True)
class _RecordedSqlRunner:
    log: StatementLog
    runner: SqlRunner

    def run(self, sql: str) -> Sequence[Row]:
        place = self.log.begin(sql)
        started = self.log.seconds()
        rows: int | None = None
        error: ErrorForm | None = ErrorForm(condition=None, sql_state=None, message="no answer")
        try:
            found = self.runner.run(sql)
            rows, error = len(found), None
        except StatementError as refusal:
            error = error_form(refusal)
            raise
        except OSError as failure:
            message = f"no answer: {type(failure).__name__}: {failure}"
            error = ErrorForm(condition=None, sql_state=None, message=message)
            raise
        finally:
            seconds = round(self.log.seconds() - started, 3)
            self.log.end(
                StatementReport(number=0, place=place, sql=sql, seconds=seconds, rows=rows, error=error)
            )
        return found


def error_form(error: StatementError) -> ErrorForm:
    """Return a refusal in the form of the report."""
    message = error.message.strip() or "no message"
    return ErrorForm(
        condition=error.error_class, sql_state=error.sql_state, message=message[:_LONGEST_MESSAGE]
    )
