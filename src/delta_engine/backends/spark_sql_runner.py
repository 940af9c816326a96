"""Runs SQL through a Spark session: classic, Databricks or Spark Connect. SQL only, nothing of the JVM."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from logging import LogRecord
from typing import TYPE_CHECKING, Final

from delta_engine.backends.cancellation import pause
from delta_engine.backends.error_conditions import is_known, statement_error
from delta_engine.backends.retries import past_throttling
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_CALL_STATUS: Final = re.compile(
    r"\bstatus = StatusCode\.(\w+)(?:\s+details = \"(.*?)\"\s*(?:debug_error|>|$))?", re.DOTALL
)
"""How gRPC words the failure of a call."""

_LOST: Final = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"})
"""Statuses of calls whose answer was lost: what they asked for may have been done."""

_THROTTLED: Final = "RESOURCE_EXHAUSTED"
_REFUSED: Final = frozenset({"PERMISSION_DENIED", "UNAUTHENTICATED", _THROTTLED})
"""Statuses of calls that were turned away, which read as conditions."""

_LOST_ANSWERS: Final = frozenset({"RETRIES_EXCEEDED", "RESPONSE_ALREADY_RECEIVED"})
"""Conditions that the client of Spark Connect itself raises for answers that were lost: it gave up (before Spark 4.1),
or the server forgot an operation that it had begun to answer (pyspark/sql/connect/client/reattach.py)."""

_BARE_WORD: Final = re.compile(r"[A-Z][A-Z0-9_]*: ")
"""What begins conditions and words of the network alike, such as `PROTOCOL_ERROR: …`."""

MESSAGE_TOO_LARGE: Final = "MESSAGE_TOO_LARGE"
_TOO_LARGE: Final = re.compile(
    r"\bmessage larger than max\b|\bgRPC message exceeds maximum size\b", re.IGNORECASE
)
"""How gRPC words its limits for messages, with the status of throttling: "Received" and "Sent message larger than max"
in Python (github.com/grpc/grpc/issues/35805), "gRPC message exceeds maximum size" on the server
(github.com/grpc/grpc/issues/23388). The client, the server and proxies all have such limits, for both directions."""

_CONTEXT_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_IS_RUNNING: ContextVar[bool] = ContextVar("is_running", default=False)


class SparkSqlRunner:
    """Runs statements in a session.

    Args:
        spark: the session; several threads may use it.
        pause: waits for so many seconds, or less if what the thread works for is to end.
    """

    def __init__(self, spark: SparkSession, *, pause: Callable[[float], None] = pause) -> None:
        self._spark = spark
        self._pause = pause
        _filter_query_contexts()

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement and return its rows; see `SqlRunner.run`."""
        return past_throttling(lambda: self._run(sql), sql, pause=self._pause)

    def schema(self, address: str) -> StructType:
        """Return the schema of what an address leads to, without running anything.

        Raises:
            StatementError: there is nothing, or it cannot be read.
        """
        with _statement_errors(f"SELECT * FROM {address}"):
            return self._spark.table(address).schema

    def _run(self, sql: str) -> Sequence[Row]:
        with _statement_errors(sql):
            return [row.asDict(recursive=True) for row in self._spark.sql(sql).collect()]


@contextmanager
def _statement_errors(sql: str) -> Iterator[None]:
    """Turn what Spark raises into the error of the statement: a refusal, or the loss of its answer."""
    from pyspark.errors import PySparkException

    token = _IS_RUNNING.set(True)
    try:
        yield
    except PySparkException as error:
        raise _spark_error(error, sql) from error
    except _java_errors() as error:
        raise _java_error(error, sql) from error
    except _grpc_errors() as error:
        raise _call_error(str(error), sql) from error
    except OSError as error:
        raise _lost_answer(f"{type(error).__name__}: {error}", sql) from error
    finally:
        _IS_RUNNING.reset(token)


def _java_errors() -> tuple[type[Exception], ...]:
    """Return what Java exceptions come as for which pyspark has no class; nothing where there is no JVM."""
    try:
        from py4j.protocol import Py4JError
    except ImportError:
        return ()
    return (Py4JError,)


def _grpc_errors() -> tuple[type[Exception], ...]:
    """Return what the channel of Spark Connect raises; nothing where it is not installed."""
    try:
        from grpc import RpcError
    except ImportError:
        return ()
    return (RpcError,)


def _spark_error(error: PySparkException, sql: str) -> StatementError:
    """Return the error of a statement that pyspark has a class for.

    Exceptions of the server come with data. Spark Connect turns the failure of a call into an exception as well, whose
    status tells; before Spark 4 the status stands in the words alone (pyspark/sql/connect/client/core.py,
    `_handle_rpc_error`).
    """
    text = str(error) or getattr(error, "_stackTrace", "")
    if _CALL_STATUS.search(text):
        return _call_error(text, sql)
    get: Callable[[], str | None] = getattr(error, "getCondition", None) or error.getErrorClass
    get_status = getattr(error, "getGrpcStatusCode", None)
    status = get_status().name if get_status else ""
    condition = get()
    if status == _THROTTLED and (too_large := _too_large_error(text, sql)):
        return too_large
    return statement_error(
        text,
        sql=sql,
        condition=condition,
        sql_state=error.getSqlState(),
        code=status if status in _REFUSED else None,
        is_outcome_unknown=status in _LOST or condition in _LOST_ANSWERS,
    )


def _call_error(text: str, sql: str) -> StatementError:
    """Return the error of a statement whose call failed, from the words of gRPC."""
    found = _CALL_STATUS.search(text)
    status, words = (found[1], found[2] or found[1]) if found else ("UNKNOWN", text)
    if status == _THROTTLED and (too_large := _too_large_error(words, sql)):
        return too_large
    refusal = statement_error(words, sql=sql, code=status if status in _REFUSED else None)
    is_named = refusal.error_class is not None and (is_known(refusal) or not _BARE_WORD.match(words))
    if status in _REFUSED or (is_named and status not in _LOST):
        return refusal
    return _lost_answer(words, sql)


def _too_large_error(words: str, sql: str) -> StatementError | None:
    """Return the error of a statement whose answer or request is over gRPC's limit; None if the words tell of none.

    An answer that is too large is that of a statement that ran, and which of the two it was is not always told.
    """
    if not _TOO_LARGE.search(words):
        return None
    return StatementError(
        "the answer or the statement is larger than the limit of the Spark Connect channel, and it may have run: "
        + words,
        sql=sql,
        error_class=MESSAGE_TOO_LARGE,
        is_outcome_unknown=True,
    )


def _java_error(error: Exception, sql: str) -> StatementError:
    """Return the error of a statement whose Java exception has no class in pyspark.

    py4j raises its base type for a broken connection to Java as well, with neither an exception of Java nor a trace of
    its gateway (py4j/protocol.py, `get_return_value`).
    """
    exception = getattr(error, "java_exception", None)
    try:
        text = str(error)  # asks Java
    except _java_errors():
        text = str(error.args[0])
    if exception is None and "Trace:" not in text:
        return _lost_answer(text, sql)
    condition, state = (_told(exception, name) for name in ("getErrorClass", "getSqlState"))
    return statement_error(text, sql=sql, condition=condition, sql_state=state)


def _told(exception: object, method: str) -> str | None:
    """Return what a Java exception tells of itself, such as Delta's condition for conflicting commits."""
    if exception is None:
        return None
    try:
        found = getattr(exception, method)()
    except _java_errors():  # it has no such method, or the connection is gone
        return None
    return None if found is None else str(found)


def _lost_answer(reason: str, sql: str) -> StatementError:
    return statement_error(f"no answer came, and it may have run: {reason}", sql=sql, is_outcome_unknown=True)


@cache
def _filter_query_contexts() -> None:
    """Let pyspark print no exception of a statement that this module runs: the engine tells of each refusal itself.

    pyspark 4 prints every exception that points into the SQL, as JSON with its stack, and so one for each table that is
    looked for and made where it is missing (pyspark/errors/exceptions/base.py, `_log_exception`). Once for the process,
    because asking for such a logger changes the class of all loggers for a moment.
    """
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # before Spark 4
        return
    for name in _CONTEXT_LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_of_others)


def _is_of_others(_record: LogRecord) -> bool:
    return not _IS_RUNNING.get()
