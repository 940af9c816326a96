"""Runs SQL in a Spark session: classic, Databricks or Spark Connect. Only `schema` needs more, where there is a JVM."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from logging import LogRecord
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from delta_engine.backends.cancellation import pause
from delta_engine.backends.error_conditions import MESSAGE_TOO_LARGE, is_known, statement_error
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
"""The message of a failed gRPC call."""

_LOST: Final = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"})
"""Statuses of calls whose answer was lost: the statement may have run."""

_THROTTLED: Final = "RESOURCE_EXHAUSTED"
_REFUSED: Final = frozenset({"PERMISSION_DENIED", "UNAUTHENTICATED", _THROTTLED})
"""Statuses of refused calls, which count as conditions."""

_LOST_ANSWERS: Final = frozenset({"RETRIES_EXCEEDED", "RESPONSE_ALREADY_RECEIVED"})
"""Conditions that the client of Spark Connect raises for lost answers: it stopped retrying (before Spark 4.1), or the
server lost an operation that it had begun to answer (pyspark/sql/connect/client/reattach.py)."""

_BARE_WORD: Final = re.compile(r"[A-Z][A-Z0-9_]*: ")
"""The start of conditions and of network messages alike, such as `PROTOCOL_ERROR: …`."""

_TOO_LARGE: Final = re.compile(
    r"\bmessage larger than max\b|\bgRPC message exceeds maximum size\b", re.IGNORECASE
)
"""gRPC's messages about its size limits, which arrive with the status of throttling: "Sent message larger than max" in
Python (github.com/grpc/grpc/issues/35805), "gRPC message exceeds maximum size" on the server
(github.com/grpc/grpc/issues/23388). Client, server and proxies have such limits for both directions."""

_CONTEXT_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_IS_RUNNING: ContextVar[bool] = ContextVar("is_running", default=False)


DeltaSchema: TypeAlias = "tuple[StructType, str | None]"
"""The schema of a Delta table, and Delta's id of the table; None in Spark Connect, whose client sees no id."""


class SparkSqlRunner:
    """Runs statements in a session, which several threads may use."""

    def __init__(self, spark: SparkSession, *, pause: Callable[[float], None] = pause) -> None:
        self._spark = spark
        self._pause = pause
        _filter_query_contexts()

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement and return its rows; see `SqlRunner.run`."""
        return past_throttling(lambda: self._run(sql), sql, pause=self._pause)

    def schema(self, address: str) -> DeltaSchema:
        """Return the schema and the id of the Delta table at an address, without running a statement.

        Its fields have the metadata of Delta's protocol: generation and identity, which no statement shows. A client of
        Spark Connect cannot see them.
        """
        with _statement_errors(f"SELECT * FROM {address}"):
            table = self._spark.table(address)
            dataset = getattr(table, "_jdf", None)  # none in Spark Connect
            if dataset is None:
                return table.schema, None
            files = dataset.queryExecution().analyzed().collectLeaves().head().relation().location()
            metadata = files.metadata()
            fields = type(table.schema).fromJson(json.loads(metadata.schemaString()))
            return fields, metadata.id()

    def _run(self, sql: str) -> Sequence[Row]:
        with _statement_errors(sql):
            return [row.asDict(recursive=True) for row in self._spark.sql(sql).collect()]


class LazySparkSqlRunner:
    """Runs statements in a session that opens for the first of them."""

    def __init__(self, open_session: Callable[[], SparkSession]) -> None:
        self._open_session = open_session
        self._opening = Lock()
        self._opened: SparkSqlRunner | None = None

    @property
    def is_open(self) -> bool:
        """Whether the session is open."""
        return self._opened is not None

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement and return its rows; see `SqlRunner.run`."""
        return self.start().run(sql)

    def schema(self, address: str) -> DeltaSchema:
        """Return the schema of the table at an address; see `SparkSqlRunner.schema`."""
        return self.start().schema(address)

    def start(self) -> SparkSqlRunner:
        """Open the session unless it is open; raises what opening it raises.

        Call it in the main thread before threads run statements: opening hides standard error for a moment.
        """
        with self._opening:
            if self._opened is None:
                self._opened = SparkSqlRunner(self._open_session())
            return self._opened


@contextmanager
def _statement_errors(sql: str) -> Iterator[None]:
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
    """Return the exception types for Java exceptions without a pyspark class; empty without a JVM."""
    try:
        from py4j.protocol import Py4JError
    except ImportError:
        return ()
    return (Py4JError,)


def _grpc_errors() -> tuple[type[Exception], ...]:
    """Return the exception types of the Spark Connect channel; empty if gRPC is not installed."""
    try:
        from grpc import RpcError
    except ImportError:
        return ()
    return (RpcError,)


def _spark_error(error: PySparkException, sql: str) -> StatementError:
    """Return the error of a statement from an exception with a pyspark class.

    Exceptions of the server carry data. Spark Connect also converts a failed call to an exception, with the call's
    status as data; before Spark 4, only the message has the status (pyspark/sql/connect/client/core.py,
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
    answer = _CALL_STATUS.search(text)
    status, words = (answer[1], answer[2] or answer[1]) if answer else ("UNKNOWN", text)
    if status == _THROTTLED and (too_large := _too_large_error(words, sql)):
        return too_large
    refusal = statement_error(words, sql=sql, code=status if status in _REFUSED else None)
    is_named = refusal.error_class is not None and (is_known(refusal) or not _BARE_WORD.match(words))
    if status in _REFUSED or (is_named and status not in _LOST):
        return refusal
    return _lost_answer(words, sql)


def _too_large_error(words: str, sql: str) -> StatementError | None:
    """Return the error of a request or answer over gRPC's size limit; None for other messages.

    If the answer is too large, the statement ran. The message does not always distinguish the two.
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
    """Return the error of a statement from a Java exception without a pyspark class.

    py4j also raises its base type for a broken connection to Java, without a Java exception and a gateway trace
    (py4j/protocol.py, `get_return_value`).
    """
    exception = getattr(error, "java_exception", None)
    try:
        text = str(error)  # calls Java
    except _java_errors():
        text = str(error.args[0])
    if exception is None and "Trace:" not in text:
        return _lost_answer(text, sql)
    condition, state = (_java_value(exception, name) for name in ("getErrorClass", "getSqlState"))
    return statement_error(text, sql=sql, condition=condition, sql_state=state)


def _java_value(exception: object, method: str) -> str | None:
    """Return the result of a Java exception's method, such as Delta's condition; None without a result."""
    if exception is None:
        return None
    try:
        value = getattr(exception, method)()
    except _java_errors():  # no such method, or the connection is lost
        return None
    return None if value is None else str(value)


def _lost_answer(reason: str, sql: str) -> StatementError:
    return statement_error(f"no answer came, and it may have run: {reason}", sql=sql, is_outcome_unknown=True)


@cache
def _filter_query_contexts() -> None:
    """Keep pyspark from printing exceptions of statements that this module runs; the engine reports them.

    pyspark 4 prints every exception that points into the SQL as JSON with its stack, also for each missing table
    (pyspark/errors/exceptions/base.py, `_log_exception`). Installed once per process, because requesting such a logger
    changes the class of all loggers for a moment.
    """
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # before Spark 4
        return
    for name in _CONTEXT_LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_of_other_code)


def _is_of_other_code(_record: LogRecord) -> bool:
    return not _IS_RUNNING.get()
