"""Runs SQL on a SQL warehouse, through databricks-sdk's statement execution: for CI and laptops without Spark.

A question (SELECT, SHOW, DESCRIBE) is waited for in its first request, one round trip for most. A change is handed
in and asked after, so that its id is known from the first moment: a connection that breaks then costs nothing but a
question, and an interrupt can cancel it.

When what a thread works for is to end (`stop`), a question is given up, and a change that waits for the warehouse is
withdrawn. A change that runs goes on to its end: half of it would help nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from delta_engine.backends.cancellation import StoppedError, current_stop
from delta_engine.backends.error_conditions import statement_error
from delta_engine.backends.retries import past_throttling
from delta_engine.backends.sql_runner import Row
from delta_engine.backends.warehouse.calls import CallError, Calls, Failure, growing_waits
from delta_engine.backends.warehouse.refusals import (
    CANCELED,
    TIMED_OUT,
    TOO_LARGE,
    failed,
    incomplete,
    may_be_too_large,
)
from delta_engine.backends.warehouse.results import Results
from delta_engine.errors import ConfigError, StatementError

if TYPE_CHECKING:
    from databricks.sdk.service.sql import Disposition, StatementExecutionAPI, StatementResponse

_QUESTIONS: Final = ("SELECT", "SHOW", "DESCRIBE")
_WAIT_FOR_QUESTIONS: Final = 10  # seconds
_FIRST_WAIT_SECONDS: Final = 0.1
_LONGEST_WAIT_SECONDS: Final = 5.0
_TELL_AFTER_SECONDS: Final = 5.0
_CANCEL_SECONDS: Final = 60.0
_LAST_PATIENCE_SECONDS: Final = 15.0
"""What runs when the run is to end is asked after for so long in spite of refusals, and then cancelled."""

_LARGEST_STATEMENT: Final = 16 * 1024 * 1024  # bytes; the API's limit


class WarehouseSqlRunner:
    """Runs statements on one warehouse; several threads may use it.

    Args:
        api: the SDK's statement execution, of a client that makes no call twice by itself.
        warehouse_id: the warehouse.
        timeout_seconds: how long a statement may run before it is cancelled; waiting for the warehouse does not count.
            None for as long as the warehouse lets it.
        notify: is told, once, that statements wait for the warehouse.
        calls: makes the SDK's calls, and waits between them.
    """

    def __init__(
        self,
        api: StatementExecutionAPI,
        warehouse_id: str,
        *,
        timeout_seconds: float | None = None,
        notify: Callable[[str], None] = lambda _note: None,
        calls: Calls | None = None,
    ) -> None:
        self._api = api
        self._warehouse_id = warehouse_id
        self._timeout = timeout_seconds
        self._notify = notify
        self._calls = calls or Calls()
        self._results = Results(api, self._calls)
        self._is_known_to_work = False
        self._has_told = False

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement and return its rows; see `SqlRunner.run`.

        Raises:
            ConfigError: the warehouse refuses the first statement of all before it looks at it.
        """
        size = len(sql.encode())
        if size > _LARGEST_STATEMENT:
            raise StatementError(
                f"the statement has {size:,} bytes, and a warehouse takes {_LARGEST_STATEMENT:,}",
                sql=sql,
                error_class=TOO_LARGE,
            )
        return past_throttling(
            lambda: self._answer(sql), sql, pause=self._calls.pause, clock=self._calls.clock
        )

    def _answer(self, sql: str) -> Sequence[Row]:
        from databricks.sdk.service.sql import Disposition

        try:
            return self._run(sql, Disposition.INLINE)
        except StatementError as error:
            if not (_is_question(sql) and may_be_too_large(error)):
                raise
            return self._run(sql, Disposition.EXTERNAL_LINKS)

    def _run(self, sql: str, disposition: Disposition) -> Sequence[Row]:
        response = self._submitted(sql, disposition)
        statement_id = response.statement_id
        if not statement_id:
            raise _lost("the warehouse accepted it without an id", sql)
        with _lost_answers(sql), self._given_up_at_interrupts(statement_id):
            return self._rows(self._finished(response, statement_id, sql), sql)

    def _submitted(self, sql: str, disposition: Disposition) -> StatementResponse:
        """Hand a statement in.

        Raises:
            StoppedError: it was not accepted, and nobody waits for it any more.
            StatementError: it was not accepted, or nobody knows.
            ConfigError: this warehouse accepts none.
        """
        from databricks.sdk.service.sql import ExecuteStatementRequestOnWaitTimeout, Format

        is_question = _is_question(sql)
        try:
            response = self._calls.make(
                lambda: self._api.execute_statement(
                    sql,
                    self._warehouse_id,
                    disposition=disposition,
                    format=Format.JSON_ARRAY,
                    wait_timeout=f"{_WAIT_FOR_QUESTIONS if is_question else 0}s",
                    on_wait_timeout=ExecuteStatementRequestOnWaitTimeout.CONTINUE if is_question else None,
                ),
                is_repeatable=is_question,
                has_answered_before=self._is_known_to_work,
            )
        except CallError as error:
            if error.failure in (Failure.THROTTLED, Failure.UNREACHED) and current_stop().is_requested():
                raise StoppedError(sql) from error
            if error.failure in (Failure.REFUSED, Failure.UNREACHED) and not self._is_known_to_work:
                raise self._unusable(error) from error
            raise _unanswered(error, sql) from error
        self._is_known_to_work = True
        return response

    def _finished(self, response: StatementResponse, statement_id: str, sql: str) -> StatementResponse:
        """Ask after a statement until it is over.

        Raises:
            StatementError: it ran for too long, and was cancelled.
        """
        stop = current_stop()
        waited, started = float(_WAIT_FOR_QUESTIONS if _is_question(sql) else 0), None
        for wait in growing_waits(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS):
            if _is_over(response):
                return response
            if stop.is_requested() and (_is_question(sql) or _is_waiting(response)):
                return self._withdrawn(statement_id, sql)
            if _is_waiting(response):
                waited += wait
                self._tell_of_waiting(waited)
            elif started is None:
                started = self._calls.clock()
            elif self._timeout is not None and self._calls.clock() - started > self._timeout:
                return self._cancelled_in_time(statement_id, sql)
            self._calls.pause(wait)
            response = self._asked(statement_id)
        raise AssertionError("waits never end")

    def _asked(self, statement_id: str) -> StatementResponse:
        def ask() -> StatementResponse:
            response = self._api.get_statement(statement_id)
            if response.status is None:
                raise CallError("the answer does not say how it gets on", failure=Failure.UNKNOWN)
            return response

        return self._calls.make(ask, is_repeatable=True, last_patience_seconds=_LAST_PATIENCE_SECONDS)

    def _withdrawn(self, statement_id: str, sql: str) -> StatementResponse:
        """Cancel a statement because nobody needs it any more, and return its end if that came first.

        Raises:
            StoppedError: it was cancelled, or is a question.
            StatementError: it could not be cancelled.
        """
        if _is_question(sql):
            self._cancel(statement_id)
            raise StoppedError(sql)
        response = self._cancelled(statement_id)
        if not _is_over(response):
            reason = "the run was stopped before it began, and it could not be cancelled"
            raise _lost(reason, sql)
        if _is_cancelled(response):
            raise StoppedError(sql)
        return response

    def _cancelled_in_time(self, statement_id: str, sql: str) -> StatementResponse:
        """Cancel a statement, and return its end if that came first.

        Raises:
            StatementError: it was cancelled, or the outcome is unknown.
        """
        response = self._cancelled(statement_id)
        limit = f"it ran for longer than backend.statement_timeout_seconds ({self._timeout:g})"
        if not _is_over(response):
            raise _lost(f"{limit}, and could not be cancelled", sql)
        if _is_cancelled(response):
            raise StatementError(f"{limit} and was cancelled", sql=sql, error_class=TIMED_OUT)
        return response

    def _cancelled(self, statement_id: str) -> StatementResponse:
        """Cancel a statement, and return what became of it; that may take a while."""
        self._cancel(statement_id)
        deadline = self._calls.clock() + _CANCEL_SECONDS
        response = self._asked(statement_id)
        for wait in growing_waits(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS):
            if _is_over(response) or self._calls.clock() > deadline:
                break
            self._calls.pause(wait)
            response = self._asked(statement_id)
        return response

    def _cancel(self, statement_id: str) -> None:
        """Ask for the end of a statement; whether it came to it, its state tells."""
        with suppress(CallError):
            self._calls.make(lambda: self._api.cancel_execution(statement_id), is_repeatable=True)

    def _rows(self, response: StatementResponse, sql: str) -> Sequence[Row]:
        """Return the rows of a statement that is over.

        Raises:
            StatementError: it did not succeed, or its rows cannot be had.
        """
        from databricks.sdk.service.sql import StatementState

        assert response.status is not None
        match response.status.state:
            case StatementState.SUCCEEDED:
                if _is_question(sql) and (response.manifest is None or response.manifest.schema is None):
                    raise incomplete("it does not say which columns it has", sql)
                return self._results.rows(response, sql)
            case StatementState.CLOSED if _is_question(sql):
                raise incomplete("the statement was closed before its rows were fetched", sql)
            case StatementState.CLOSED:
                return ()
            case StatementState.CANCELED:
                raise StatementError("somebody cancelled it", sql=sql, error_class=CANCELED)
        raise failed(response.status, sql)

    @contextmanager
    def _given_up_at_interrupts(self, statement_id: str) -> Iterator[None]:
        """Cancel a statement that nobody waits for any more, or that nobody can be asked after."""
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            self._cancel(statement_id)
            raise
        except CallError:
            if current_stop().is_requested():
                self._cancel(statement_id)
            raise

    def _tell_of_waiting(self, waited: float) -> None:
        if self._has_told or waited < _TELL_AFTER_SECONDS:
            return
        self._has_told = True
        self._notify(f"waiting for SQL warehouse {self._warehouse_id}: it starts, or has a queue …")

    def _unusable(self, error: CallError) -> ConfigError:
        reason = str(error).rstrip(".")
        if error.failure is Failure.UNREACHED:
            return ConfigError(
                f"nobody answers where SQL warehouse {self._warehouse_id!r} should be: {reason}",
                way_out="Correct DATABRICKS_HOST or the profile's host, or look at the network.",
            )
        return ConfigError(
            f"SQL warehouse {self._warehouse_id!r} cannot be used: {reason}",
            way_out="Correct backend.warehouse_id (`databricks warehouses list` shows it), log in to its workspace, "
            "or ask for CAN USE on it.",
        )


def _is_question(sql: str) -> bool:
    return sql.startswith(_QUESTIONS)


def _is_over(response: StatementResponse) -> bool:
    from databricks.sdk.service.sql import StatementState

    state = response.status and response.status.state
    return state not in (None, StatementState.PENDING, StatementState.RUNNING)


def _is_waiting(response: StatementResponse) -> bool:
    from databricks.sdk.service.sql import StatementState

    return response.status is not None and response.status.state is StatementState.PENDING


def _is_cancelled(response: StatementResponse) -> bool:
    from databricks.sdk.service.sql import StatementState

    return response.status is not None and response.status.state is StatementState.CANCELED


@contextmanager
def _lost_answers(sql: str) -> Iterator[None]:
    """Turn calls that failed into the error of the statement.

    Raises:
        StatementError: nobody knows what became of it.
    """
    try:
        yield
    except CallError as error:
        raise _lost(f"it was accepted, and then there was no usable answer: {error}", sql) from error


def _unanswered(error: CallError, sql: str) -> StatementError:
    """Return the error of a statement that was not accepted, or whose acceptance is unknown."""
    if error.failure is Failure.UNKNOWN:
        return _lost(f"no answer came, and it may have run: {error}", sql)
    return statement_error(str(error), sql=sql, condition=error.code, code="WAREHOUSE_UNREACHABLE")


def _lost(reason: str, sql: str) -> StatementError:
    return StatementError(reason, sql=sql, error_class=None, is_outcome_unknown=True)
