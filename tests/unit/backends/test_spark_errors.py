"""What Spark raises, classic sessions: refusals in each form, and lost answers. tests/connect has those of Connect."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn, cast

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError, escape_new_line
from pyspark.errors import AnalysisException, PySparkException, PySparkRuntimeError
from pyspark.logger import PySparkLogger

from delta_engine.backends.cancellation import Stop, StoppedError
from delta_engine.backends.error_conditions import (
    MESSAGE_TOO_LARGE,
    Transience,
    is_forbidden,
    is_missing_class,
    transience,
)
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from tests.builders.error_forms import FORMS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DENIED = ("PERMISSION_DENIED", "User does not have CREATE TABLE on Schema 'dev.ops'.")


class RaisingSession:
    """A session whose statements raise, the given exceptions in order; after them, they have no rows."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.statements: list[str] = []

    def sql(self, sql: str) -> RaisingSession:
        self.statements.append(sql)
        if self.errors:
            raise self.errors.pop(0)
        return self

    def collect(self) -> list[object]:
        return []


class JavaException:
    """A Java exception behind py4j, and the gateway that tells of it."""

    _target_id = "o7"

    def __init__(self, text: str, facts: dict[str, str | None] | None = None) -> None:
        self._text = text
        self._facts = facts
        self._gateway_client = self

    def send_command(self, _command: str) -> str:
        return f"ys{escape_new_line(self._text)}"

    def getErrorClass(self) -> str | None:  # noqa: N802 - Java's name
        return self._fact("getErrorClass")

    def getSqlState(self) -> str | None:  # noqa: N802 - Java's name
        return self._fact("getSqlState")

    def _fact(self, method: str) -> str | None:
        if self._facts is None:
            raise Py4JError(
                f"An error occurred while calling o7.{method}. Trace:\npy4j.Py4JException: no such method"
            )
        return self._facts.get(method)


class GoneException(JavaException):
    """A Java exception of which nothing more can be learnt."""

    def send_command(self, _command: str) -> str:
        raise Py4JNetworkError("gone")


def java_error(text: str, **facts: str | None) -> Py4JJavaError:
    return Py4JJavaError("An error occurred while calling o91.sql.\n", JavaException(text, facts or None))


def send(session: RaisingSession, sql: str, waits: list[float] | None = None) -> Sequence[Row]:
    pause = ([] if waits is None else waits).append
    return SparkSqlRunner(cast("SparkSession", session), pause=pause).run(sql)


def refused(*errors: Exception) -> StatementError:
    with pytest.raises(StatementError) as caught:
        send(RaisingSession(*errors), "CREATE TABLE t")
    assert caught.value.sql == "CREATE TABLE t"
    return caught.value


WAYS: dict[str, Callable[[str], Exception]] = {
    "pyspark": AnalysisException,
    "java": lambda text: java_error(f"com.databricks.sql.SomeException: {text}\n\tat a.B.c(B.scala:1)"),
    "java, as a cause": lambda text: java_error(
        f"org.apache.spark.SparkException: Job aborted\n\tat a.B\nCaused by: com.databricks.X: {text}\n\tat a.B"
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", WAYS)
def test_a_refusal_is_known_in_each_form(form: str, way: str) -> None:
    error = refused(WAYS[way](FORMS[form](*DENIED)))
    assert (error.error_class, error.is_outcome_unknown) == ("PERMISSION_DENIED", False)
    assert is_forbidden(error)
    assert DENIED[1].removesuffix(".") in error.first_line
    assert "\tat" not in error.message


@pytest.mark.parametrize("form", FORMS)
def test_too_many_requests_are_sent_again_in_each_form(form: str) -> None:
    waits: list[float] = []
    session = RaisingSession(
        *(AnalysisException(FORMS[form]("RESOURCE_EXHAUSTED", "Later.")) for _ in range(3))
    )
    assert send(session, "CREATE TABLE t", waits) == []
    assert session.statements == ["CREATE TABLE t"] * 4
    assert waits == sorted(waits)
    assert len(waits) == 3


@pytest.mark.parametrize("form", FORMS)
def test_a_platform_that_is_unavailable_is_for_the_run_to_look_at(form: str) -> None:
    error = refused(AnalysisException(FORMS[form]("TEMPORARILY_UNAVAILABLE", "Later.")))
    assert transience(error) is Transience.UNAVAILABLE


def test_what_java_tells_as_data_counts_and_nothing_is_no_condition() -> None:
    conflict = java_error("io.delta.X: no", getErrorClass="DELTA_CONCURRENT_WRITE", getSqlState="2D521")
    error = refused(conflict)
    assert (error.error_class, error.sql_state) == ("DELTA_CONCURRENT_WRITE", "2D521")
    assert refused(java_error("io.delta.X: no", getErrorClass=None)).error_class is None


def test_what_the_server_raised_is_a_refusal_whatever_is_in_it() -> None:
    for raised in (
        AnalysisException("No."),
        PySparkException("No."),
        java_error("java.lang.IllegalStateException: No."),
        Py4JJavaError("An error occurred while calling o91.sql.\n", GoneException("")),
        Py4JError(
            "An error occurred while calling o91.sql. Trace:\npy4j.Py4JException: Method sql([]) does not exist"
        ),
    ):
        error = refused(raised)
        assert (error.error_class, error.is_outcome_unknown) == (None, False)


def test_a_broken_connection_leaves_the_outcome_unknown() -> None:
    for raised in (
        Py4JError("An error occurred while calling o91.sql"),
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError("refused"),
        TimeoutError("too long"),
        PySparkException(errorClass="RETRIES_EXCEEDED", message="[RETRIES_EXCEEDED] no more"),
        PySparkRuntimeError(
            errorClass="RESPONSE_ALREADY_RECEIVED",
            messageParameters={"error_type": "INVALID_HANDLE.OPERATION_NOT_FOUND"},
        ),
    ):
        assert refused(raised).is_outcome_unknown


def failed_call(status: str, details: str) -> PySparkException:
    """Return how a client of Spark Connect words a call that failed."""
    return PySparkException(
        f"<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.{status}\n"
        f'\tdetails = "{details}"\n\tdebug_error_string = "UNKNOWN: {details}"\n>'
    )


@pytest.mark.parametrize(
    ("status", "details", "condition", "is_unknown"),
    [
        ("INTERNAL", "PROTOCOL_ERROR: connection reset by the other side", None, True),
        ("INTERNAL", "STREAM_CLOSED: PERMISSION_DENIED", None, True),
        ("UNKNOWN", "a.b.SomeException: SOME_CONDITION: no", "SOME_CONDITION", False),
        ("UNKNOWN", "(a.b.SomeException) SOME_CONDITION: no", "SOME_CONDITION", False),
        ("INTERNAL", "[SOME_CONDITION] no", "SOME_CONDITION", False),
        ("INTERNAL", "PERMISSION_DENIED: You do not have permission to attach", "PERMISSION_DENIED", False),
        ("INTERNAL", "INSUFFICIENT_PERMISSIONS: no", "INSUFFICIENT_PERMISSIONS", False),
        ("INTERNAL", "TABLE_OR_VIEW_NOT_FOUND: no", "TABLE_OR_VIEW_NOT_FOUND", False),
        ("INTERNAL", "DELTA_CONCURRENT_APPEND: no", "DELTA_CONCURRENT_APPEND", False),
        ("INTERNAL", "RESOURCE_ALREADY_EXISTS: no", "RESOURCE_ALREADY_EXISTS", False),
    ],
)
def test_words_of_the_network(status: str, details: str, condition: str | None, is_unknown: bool) -> None:
    error = refused(failed_call(status, details))
    assert error.is_outcome_unknown is is_unknown
    if not is_unknown:
        assert error.error_class == condition


class ConnectException(PySparkException):
    """A failed call as Spark Connect 4.1 raises it."""

    def __init__(self, words: str, status: str) -> None:
        super().__init__(words)
        self._status = status

    def getGrpcStatusCode(self) -> SimpleNamespace:  # noqa: N802 - pyspark's name
        return SimpleNamespace(name=self._status)


@pytest.mark.parametrize(
    "words",
    [
        "Received message larger than max (5000000 vs. 4194304)",
        "CLIENT: Sent message larger than max (5000000 vs. 4194304)",
        "gRPC message exceeds maximum size 4194304: 5000000",
    ],
)
def test_a_statement_with_a_message_that_is_too_large_may_have_run_and_is_not_sent_again(words: str) -> None:
    status = "RESOURCE_EXHAUSTED"
    for raised in (failed_call(status, words), ConnectException(words, status)):
        session = RaisingSession(raised)
        with pytest.raises(StatementError) as caught:
            send(session, "SHOW TABLES")
        assert session.statements == ["SHOW TABLES"]
        assert (caught.value.error_class, caught.value.is_outcome_unknown) == (MESSAGE_TOO_LARGE, True)
        assert caught.value.first_line.endswith(
            f"limit of the Spark Connect channel, and it may have run: {words}"
        )


def test_a_call_that_is_turned_away_is_sent_again() -> None:
    session = RaisingSession(failed_call("RESOURCE_EXHAUSTED", "too many streams"))
    assert send(session, "SHOW TABLES") == []
    assert session.statements == ["SHOW TABLES"] * 2


def test_the_cause_of_what_pyspark_has_no_class_for_is_shown() -> None:
    error = refused(
        java_error("java.lang.ClassNotFoundException: io.unitycatalog.X\n\tat java.base/a.B(C.java:1)")
    )
    assert error.message == "java.lang.ClassNotFoundException: io.unitycatalog.X"
    assert is_missing_class(error)


class _LoggedException(AnalysisException):
    """Prints itself when it is made, as pyspark's do."""

    def __init__(self) -> None:
        super().__init__("[TABLE_OR_VIEW_NOT_FOUND] no")
        PySparkLogger.getLogger("SQLQueryContextLogger").exception("no", errorClass="TABLE_OR_VIEW_NOT_FOUND")


class _LoggingSession(RaisingSession):
    def sql(self, sql: str) -> NoReturn:
        raise _LoggedException


def test_pyspark_does_not_print_what_the_engine_tells_of_and_prints_what_others_do() -> None:
    seen: list[str] = []

    class Noting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.getMessage())

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    handler = Noting()
    logger.addHandler(handler)
    try:
        with pytest.raises(StatementError):
            send(_LoggingSession(), "SELECT 1")
        assert seen == []
        with pytest.raises(_LoggedException):
            _LoggingSession().sql("SELECT 1")
        assert seen == ["no"]
    finally:
        logger.removeHandler(handler)


def test_a_stop_ends_the_wait_of_a_statement_that_was_turned_away() -> None:
    stop = Stop()
    stop.request()
    session = RaisingSession(*(AnalysisException("RESOURCE_EXHAUSTED: later") for _ in range(2)))
    with stop.as_current(), pytest.raises(StoppedError):
        SparkSqlRunner(cast("SparkSession", session)).run("CREATE TABLE t")
    assert session.statements == ["CREATE TABLE t"]
