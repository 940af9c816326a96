"""Follows a submitted statement to its end, and cancels it when the run ends, at its timeout or at an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from delta_engine.backends.cancellation import StoppedError, current_stop
from delta_engine.backends.warehouse.calls import CallError, Calls, Failure, growing_waits
from delta_engine.errors import StatementError

if TYPE_CHECKING:
    from databricks.sdk.service.sql import StatementExecutionAPI, StatementResponse

WAIT_FOR_QUERIES: Final = 10
"""How many seconds the first request of a query waits for its result."""

TIMED_OUT: Final = "STATEMENT_TIMEOUT"

_QUERIES: Final = ("SELECT", "SHOW", "DESCRIBE")
_FIRST_WAIT_SECONDS: Final = 0.1
_LONGEST_WAIT_SECONDS: Final = 5.0
_CANCEL_SECONDS: Final = 60.0
_LAST_PATIENCE_SECONDS: Final = 15.0
"""How long to request the state of a running statement despite errors once the run is ending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedStatement:
    """A statement that the warehouse accepted.

    Args:
        timeout_seconds: how long it may run, without the wait for the warehouse; None for no limit.
        on_waiting: receives the seconds that it has waited for the warehouse.
    """

    api: StatementExecutionAPI
    calls: Calls
    statement_id: str
    sql: str
    timeout_seconds: float | None
    on_waiting: Callable[[float], None]

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Convert failed calls to StatementErrors with unknown outcome, and cancel the statement at interrupts."""
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            self._cancel()
            raise
        except CallError as error:
            if current_stop().is_requested():
                self._cancel()
            message = f"it was accepted, and then there was no usable answer: {error}"
            raise outcome_unknown(message, self.sql) from error

    def finished(self, response: StatementResponse) -> StatementResponse:
        """Poll until the statement is over; StoppedError if it was withdrawn, StatementError at its timeout."""
        stop = current_stop()
        waited, started = float(WAIT_FOR_QUERIES if is_query(self.sql) else 0), None
        for wait in growing_waits(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS):
            if _is_over(response):
                return response
            if stop.is_requested() and (is_query(self.sql) or _is_pending(response)):
                return self._withdrawn()
            if _is_pending(response):
                waited += wait
                self.on_waiting(waited)
            elif started is None:
                started = self.calls.clock()
            elif self.timeout_seconds is not None and self.calls.clock() - started > self.timeout_seconds:
                return self._timed_out()
            self.calls.pause(wait)
            response = self._polled()
        raise AssertionError("waits never end")

    def _polled(self) -> StatementResponse:
        def poll() -> StatementResponse:
            response = self.api.get_statement(self.statement_id)
            if response.status is None:
                raise CallError("the answer has no status", failure=Failure.UNKNOWN)
            return response

        return self.calls.make(poll, is_repeatable=True, last_patience_seconds=_LAST_PATIENCE_SECONDS)

    def _withdrawn(self) -> StatementResponse:
        """Cancel the statement because the run is ending; return its result if it finished first."""
        if is_query(self.sql):
            self._cancel()
            raise StoppedError(self.sql)
        response = self._cancelled()
        if not _is_over(response):
            message = "the run was stopped before it began, and it could not be cancelled"
            raise outcome_unknown(message, self.sql)
        if _is_cancelled(response):
            raise StoppedError(self.sql)
        return response

    def _timed_out(self) -> StatementResponse:
        """Cancel the statement because of its timeout; return its result if it finished first."""
        response = self._cancelled()
        limit = f"it ran for longer than backend.statement_timeout_seconds ({self.timeout_seconds:g})"
        if not _is_over(response):
            raise outcome_unknown(f"{limit}, and could not be cancelled", self.sql)
        if _is_cancelled(response):
            raise StatementError(f"{limit} and was cancelled", sql=self.sql, error_class=TIMED_OUT)
        return response

    def _cancelled(self) -> StatementResponse:
        """Cancel the statement, and poll until it is over or the patience ends."""
        self._cancel()
        deadline = self.calls.clock() + _CANCEL_SECONDS
        response = self._polled()
        for wait in growing_waits(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS):
            if _is_over(response) or self.calls.clock() > deadline:
                break
            self.calls.pause(wait)
            response = self._polled()
        return response

    def _cancel(self) -> None:
        """Request cancellation; the statement's state shows whether it worked."""
        with suppress(CallError):
            self.calls.make(lambda: self.api.cancel_execution(self.statement_id), is_repeatable=True)


def is_query(sql: str) -> bool:
    """Whether a statement only reads, so that repeating it is harmless."""
    return sql.startswith(_QUERIES)


def outcome_unknown(reason: str, sql: str) -> StatementError:
    """Return the error of a statement that may have run."""
    return StatementError(reason, sql=sql, error_class=None, is_outcome_unknown=True)


def _is_over(response: StatementResponse) -> bool:
    return _state(response) not in (None, "PENDING", "RUNNING")


def _is_pending(response: StatementResponse) -> bool:
    return _state(response) == "PENDING"


def _is_cancelled(response: StatementResponse) -> bool:
    return _state(response) == "CANCELED"


def _state(response: StatementResponse) -> str | None:
    state = response.status and response.status.state
    return state.value if state else None
