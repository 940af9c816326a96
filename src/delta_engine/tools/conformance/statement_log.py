"""The log of a run's statements: a decorator of the runner that records them and limits their number and time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from types import MappingProxyType
from typing import Final

from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import StatementError
from delta_engine.tools.conformance.report import ErrorForm, StatementReport

MOST_STATEMENTS: Final = 549
"""A run sends fewer than 550 statements."""

KEPT_FOR_DROPS: Final = 50
"""How many of them are reserved for the clean-up: one for each scratch object, and some for retries."""

MOST_SECONDS: Final = 600.0
"""Later, only the clean-up sends statements, so that a run ends within 15 minutes."""

LIMIT_REACHED: Final = "CONFORMANCE_LIMIT_REACHED"
"""The error condition of a statement that the run may not send any more."""

_LONGEST_MESSAGE: Final = 4000
_NO_PLACES: Final[Mapping[str, str]] = MappingProxyType({})


class StatementLog:
    """The statements of a run in the order of their answers; `seconds` is a monotonic clock."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self.seconds = seconds
        self._ends_at = seconds() + MOST_SECONDS
        self._most = MOST_STATEMENTS - KEPT_FOR_DROPS
        self._reports: list[StatementReport] = []
        self._place = ""
        self._places = _NO_PLACES
        self._sent = 0
        self._lock = Lock()

    @property
    def limit_reached(self) -> str:
        """Why the run may send no further statement; empty if it may."""
        if self.seconds() > self._ends_at:
            return f"the {MOST_SECONDS / 60:.0f} minutes of the run have passed"
        return f"the {self._most} statements of the run were used up" if self._sent >= self._most else ""

    def through(self, runner: SqlRunner) -> SqlRunner:
        """Return a runner that records and limits what it runs."""
        return _LoggedSqlRunner(self, runner)

    @contextmanager
    def at(self, place: str, places: Mapping[str, str] = _NO_PLACES) -> Iterator[None]:
        """Record the statements inside under a step or probe, in every thread.

        Args:
            places: other steps, for statements that contain the key.
        """
        before = self._place, self._places
        self._place, self._places = place, places
        try:
            yield
        finally:
            self._place, self._places = before

    def release_kept(self) -> None:
        """Let the clean-up send the statements that were reserved for it, without a limit of time."""
        self._most, self._ends_at = MOST_STATEMENTS, math.inf

    def reports(self) -> tuple[StatementReport, ...]:
        """Return the statements, numbered."""
        return tuple(replace(report, number=number) for number, report in enumerate(self._reports, start=1))

    def begin(self, sql: str) -> str:
        """Count a statement and return the place that sends it; raises StatementError at the limit."""
        with self._lock:
            if reason := self.limit_reached:
                raise StatementError(reason, sql=sql, error_class=LIMIT_REACHED)
            self._sent += 1
        return next((place for name, place in self._places.items() if name in sql), self._place)

    def end(self, report: StatementReport) -> None:
        """Record the answer of a statement."""
        with self._lock:
            self._reports.append(report)


@dataclass(frozen=True, slots=True)
class _LoggedSqlRunner:
    log: StatementLog
    runner: SqlRunner

    def run(self, sql: str) -> Sequence[Row]:
        place = self.log.begin(sql)
        started = self.log.seconds()
        rows: int | None = None
        error: ErrorForm | None = ErrorForm(condition=None, sql_state=None, message="no answer")
        try:
            answer = self.runner.run(sql)
            rows, error = len(answer), None
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
        return answer


def error_form(error: StatementError) -> ErrorForm:
    """Return a refusal in the form of the report."""
    message = error.message.strip() or "no message"
    return ErrorForm(
        condition=error.error_class, sql_state=error.sql_state, message=message[:_LONGEST_MESSAGE]
    )
