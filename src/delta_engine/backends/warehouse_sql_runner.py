"""Runs SQL on a SQL warehouse with databricks-sdk's statement execution: for CI and laptops without Spark.

The first request of a query (SELECT, SHOW, DESCRIBE) waits for its result: one round trip for most. A change is
submitted and then polled, so that its id is known from the start: a broken connection costs one more poll, and an
interrupt can cancel it.

At a stop, a query is abandoned, and a change that waits for the warehouse is withdrawn. A running change continues to
its end, because half of it is useless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Final

from delta_engine.backends.cancellation import StoppedError, current_stop
from delta_engine.backends.databricks_sdk import CallError, CallFailure, Calls, growing_waits
from delta_engine.backends.error_conditions import UNAUTHENTICATED, WAREHOUSE_UNREACHABLE, statement_error
from delta_engine.backends.retries import past_throttling
from delta_engine.backends.sql_runner import Row
from delta_engine.backends.warehouse_results import incomplete, rows_of
from delta_engine.errors import ConfigError, StatementError

if TYPE_CHECKING:
    from databricks.sdk.service.sql import (
        Disposition,
        StatementExecutionAPI,
        StatementResponse,
        StatementStatus,
    )

_NOTIFY_AFTER_SECONDS: Final = 5.0
_LARGEST_STATEMENT: Final = 16 * 1024 * 1024  # bytes; the API's limit

_CANCELED: Final = "STATEMENT_CANCELED"
_TOO_LARGE: Final = "STATEMENT_TOO_LARGE"
_WITHOUT_CONDITION: Final = ("BAD_REQUEST", "RESOURCE_EXHAUSTED")

_WAIT_FOR_QUERIES: Final = 10
"""How many seconds the first request of a query waits for its result."""

_TIMED_OUT: Final = "STATEMENT_TIMEOUT"

_QUERIES: Final = ("SELECT", "SHOW", "DESCRIBE")
_FIRST_WAIT_SECONDS: Final = 0.1
_LONGEST_WAIT_SECONDS: Final = 5.0
_CANCEL_SECONDS: Final = 60.0
_LAST_PATIENCE_SECONDS: Final = 15.0
"""How long to request the state of a running statement despite errors once the run is ending."""


@dataclass(slots=True)
class WarehouseSqlRunner:
    """Runs statements on one warehouse; several threads may use it.

    Args:
        api: the SDK's statement execution, of a client that retries no call.
        timeout_seconds: how long a statement may run, without the wait for the warehouse; None for the warehouse's
            limit.
        notify: receives one message when statements wait for the warehouse.
    """

    api: StatementExecutionAPI
    warehouse_id: str
    _: KW_ONLY
    timeout_seconds: float | None = None
    notify: Callable[[str], None] = lambda _note: None
    calls: Calls = field(default_factory=Calls)
    _is_known_to_work: bool = field(default=False, init=False)
    _has_notified: bool = field(default=False, init=False)

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement; see `SqlRunner.run`. ConfigError if the warehouse rejects the first one outright."""
        size = len(sql.encode())
        if size > _LARGEST_STATEMENT:
            raise StatementError(
                f"the statement has {size:,} bytes, but a warehouse accepts at most {_LARGEST_STATEMENT:,}",
                sql=sql,
                error_class=_TOO_LARGE,
            )
        return past_throttling(lambda: self._answer(sql), sql, pause=self.calls.pause, clock=self.calls.clock)

    def _answer(self, sql: str) -> Sequence[Row]:
        from databricks.sdk.service.sql import Disposition

        try:
            return self._run(sql, Disposition.INLINE)
        except StatementError as error:
            if not (_is_query(sql) and _may_be_too_large(error)):
                raise
            return self._run(sql, Disposition.EXTERNAL_LINKS)

    def _run(self, sql: str, disposition: Disposition) -> Sequence[Row]:
        response = self._submitted(sql, disposition)
        if not response.statement_id:
            raise _outcome_unknown("the warehouse accepted it without an id", sql)
        statement = _SubmittedStatement(
            api=self.api,
            calls=self.calls,
            statement_id=response.statement_id,
            sql=sql,
            timeout_seconds=self.timeout_seconds,
            on_waiting=self._notify_of_waiting,
        )
        with statement.followed():
            return self._rows(statement.finished(response), sql)

    def _submitted(self, sql: str, disposition: Disposition) -> StatementResponse:
        """Submit a statement; ConfigError if this warehouse accepts none."""
        from databricks.sdk.service.sql import ExecuteStatementRequestOnWaitTimeout, Format

        waits = _is_query(sql)
        try:
            response = self.calls.make(
                lambda: self.api.execute_statement(
                    sql,
                    self.warehouse_id,
                    disposition=disposition,
                    format=Format.JSON_ARRAY,
                    wait_timeout=f"{_WAIT_FOR_QUERIES if waits else 0}s",
                    on_wait_timeout=ExecuteStatementRequestOnWaitTimeout.CONTINUE if waits else None,
                ),
                is_repeatable=waits,
                has_answered_before=self._is_known_to_work,
            )
        except CallError as error:
            if (
                error.failure in (CallFailure.THROTTLED, CallFailure.UNREACHED)
                and current_stop().is_requested()
            ):
                raise StoppedError(sql) from error
            if error.failure in (CallFailure.REFUSED, CallFailure.UNREACHED) and not self._is_known_to_work:
                raise self._unusable(error) from error
            if error.failure is CallFailure.UNKNOWN:
                raise _outcome_unknown(f"no answer came, and it may have run: {error}", sql) from error
            raise statement_error(
                str(error), sql=sql, condition=error.code, code=WAREHOUSE_UNREACHABLE
            ) from error
        self._is_known_to_work = True
        return response

    def _rows(self, response: StatementResponse, sql: str) -> Sequence[Row]:
        from databricks.sdk.service.sql import StatementState

        assert response.status is not None
        match response.status.state:
            case StatementState.SUCCEEDED:
                if _is_query(sql) and (response.manifest is None or response.manifest.schema is None):
                    raise incomplete("it has no columns", sql)
                return rows_of(response, sql, self.api, self.calls)
            case StatementState.CLOSED if _is_query(sql):
                raise incomplete("the statement was closed before its rows were fetched", sql)
            case StatementState.CLOSED:
                return ()
            case StatementState.CANCELED:
                raise StatementError("another client cancelled it", sql=sql, error_class=_CANCELED)
        raise _failed(response.status, sql)

    def _notify_of_waiting(self, waited: float) -> None:
        if self._has_notified or waited < _NOTIFY_AFTER_SECONDS:
            return
        self._has_notified = True
        self.notify(f"waiting for SQL warehouse {self.warehouse_id}: it is starting, or has a queue …")

    def _unusable(self, error: CallError) -> ConfigError:
        reason = str(error).rstrip(".")
        if error.failure is CallFailure.UNREACHED:
            return ConfigError(
                f"the host of SQL warehouse {self.warehouse_id!r} is unreachable: {reason}",
                way_out="Correct DATABRICKS_HOST or the profile's host, or check the network.",
            )
        if error.code == UNAUTHENTICATED:
            return ConfigError(
                f"the workspace of SQL warehouse {self.warehouse_id!r} does not accept the token: {reason}",
                way_out="Log in again (`databricks auth login`), or replace the token in DATABRICKS_TOKEN or in the "
                "profile.",
            )
        return ConfigError(
            f"SQL warehouse {self.warehouse_id!r} cannot be used: {reason}",
            way_out="Correct backend.warehouse_id (`databricks warehouses list` shows it), log in to its workspace, "
            "or ask for CAN USE on it.",
        )


def _failed(status: StatementStatus, sql: str) -> StatementError:
    """Return the error of a failed statement: its condition, or else the service's error code."""
    error = status.error
    return statement_error(
        (error and error.message) or "the warehouse gave no reason",
        sql=sql,
        sql_state=status.sql_state,
        code=error.error_code.value if error and error.error_code else None,
    )


def _may_be_too_large(error: StatementError) -> bool:
    """Whether a result may exceed the inline limit, which has no documented code."""
    return error.error_class in _WITHOUT_CONDITION and error.sql_state is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _SubmittedStatement:
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
            message = f"the warehouse accepted it, but returned no usable answer: {error}"
            raise _outcome_unknown(message, self.sql) from error

    def finished(self, response: StatementResponse) -> StatementResponse:
        """Poll until the statement is over; StoppedError if it was withdrawn, StatementError at its timeout."""
        stop = current_stop()
        waited, started = float(_WAIT_FOR_QUERIES if _is_query(self.sql) else 0), None
        for wait in growing_waits(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS):
            if _is_over(response):
                return response
            if stop.is_requested() and (_is_query(self.sql) or _state(response) == "PENDING"):
                return self._withdrawn()
            if _state(response) == "PENDING":
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
                raise CallError("the answer has no status", failure=CallFailure.UNKNOWN)
            return response

        return self.calls.make(poll, is_repeatable=True, last_patience_seconds=_LAST_PATIENCE_SECONDS)

    def _withdrawn(self) -> StatementResponse:
        """Cancel the statement because the run is ending; return its result if it finished first."""
        if _is_query(self.sql):
            self._cancel()
            raise StoppedError(self.sql)
        return self._cancelled("the run was stopped before it began", StoppedError(self.sql))

    def _timed_out(self) -> StatementResponse:
        """Cancel the statement because of its timeout; return its result if it finished first."""
        limit = f"it ran for longer than backend.statement_timeout_seconds ({self.timeout_seconds:g})"
        refusal = StatementError(f"{limit} and was cancelled", sql=self.sql, error_class=_TIMED_OUT)
        return self._cancelled(limit, refusal)

    def _cancelled(self, reason: str, cancelled: StatementError) -> StatementResponse:
        """Cancel the statement, poll until it is over or the patience ends, and raise `cancelled` if it was."""
        self._cancel()
        deadline = self.calls.clock() + _CANCEL_SECONDS
        response = self._polled()
        for wait in growing_waits(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS):
            if _is_over(response) or self.calls.clock() > deadline:
                break
            self.calls.pause(wait)
            response = self._polled()
        if not _is_over(response):
            raise _outcome_unknown(f"{reason}, and it could not be cancelled", self.sql)
        if _state(response) == "CANCELED":
            raise cancelled
        return response

    def _cancel(self) -> None:
        """Request cancellation; the statement's state shows whether it worked."""
        with suppress(CallError):
            self.calls.make(lambda: self.api.cancel_execution(self.statement_id), is_repeatable=True)


def _is_query(sql: str) -> bool:
    """Whether a statement only reads, so that repeating it is harmless."""
    return sql.startswith(_QUERIES)


def _outcome_unknown(reason: str, sql: str) -> StatementError:
    """Return the error of a statement that may have run."""
    return StatementError(reason, sql=sql, error_class=None, is_outcome_unknown=True)


def _is_over(response: StatementResponse) -> bool:
    return _state(response) not in (None, "PENDING", "RUNNING")


def _state(response: StatementResponse) -> str | None:
    state = response.status and response.status.state
    return state.value if state else None
