"""What Spark Connect raises: refusals in each form, whatever `getCondition` says, and calls that failed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from delta_engine.backends.error_conditions import Transience, is_forbidden, transience
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.errors import StatementError
from tests.builders.error_forms import FORMS
from tests.servers.processes import free_port

if TYPE_CHECKING:
    from grpc import RpcError

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        find_spec("grpc") is None,
        reason="Spark Connect's packages are not installed: `make test` installs them, and so does scripts/connect.sh",
    ),
]


class RaisingSession:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def sql(self, _sql: str) -> None:
        raise self.error


def refused(error: Exception) -> StatementError:
    with pytest.raises(StatementError) as caught:
        SparkSqlRunner(RaisingSession(error)).run("CREATE TABLE t")  # type: ignore[arg-type]  # all that it uses
    return caught.value


def unknown(words: str, **facts: Any) -> Exception:
    from pyspark.errors.exceptions.connect import UnknownException

    return UnknownException(words, **facts)


def of_grpc(words: str, **facts: Any) -> Exception:
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    return SparkConnectGrpcException(words, **facts)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", [unknown, of_grpc])
@pytest.mark.parametrize("condition", [None, ""])
def test_a_refusal_is_known_in_each_form(
    form: str, make: Callable[..., Exception], condition: str | None
) -> None:
    words = FORMS[form]("PERMISSION_DENIED", "User does not have CREATE SCHEMA on Catalog 'dev'.")
    error = refused(make(words, errorClass=condition))
    assert (error.error_class, error.is_outcome_unknown) == ("PERMISSION_DENIED", False)
    assert is_forbidden(error)


def test_the_class_that_connect_puts_before_the_words_is_read() -> None:
    error = refused(
        unknown(
            "PERMISSION_DENIED: no",
            reason="com.databricks.sql.managedcatalog.acl.UnauthorizedAccessException",
        )
    )
    assert (error.error_class, error.is_outcome_unknown) == ("PERMISSION_DENIED", False)


def test_what_comes_as_data_is_kept() -> None:
    error = refused(of_grpc("[A.B] no", errorClass="A.B", messageParameters={}, sql_state="42501"))
    assert (error.error_class, error.sql_state) == ("A.B", "42501")


@pytest.mark.parametrize(
    ("status", "condition", "is_unknown"),
    [
        ("UNAVAILABLE", None, True),
        ("DEADLINE_EXCEEDED", None, True),
        ("UNKNOWN", None, False),
        ("INTERNAL", None, False),  # the server's own exceptions have it
        ("PERMISSION_DENIED", "PERMISSION_DENIED", False),
    ],
)
def test_the_status_of_the_call_tells_where_the_words_do_not(
    status: str, condition: str | None, is_unknown: bool
) -> None:
    from grpc import StatusCode

    error = refused(of_grpc("No.", grpc_status_code=StatusCode[status]))
    assert (error.error_class, error.is_outcome_unknown) == (condition, is_unknown)


def words_of(status: str, details: str) -> str:
    return f'<_Call of RPC that terminated with:\n\tstatus = StatusCode.{status}\n\tdetails = "{details}"\n>'


@pytest.mark.parametrize(
    ("status", "details", "condition", "is_unknown"),
    [
        ("UNAVAILABLE", "failed to connect", None, True),
        ("INTERNAL", "Received RST_STREAM with error code 2", None, True),
        ("INTERNAL", "PERMISSION_DENIED: You do not have permission to attach", "PERMISSION_DENIED", False),
        ("UNAUTHENTICATED", "no token", "UNAUTHENTICATED", False),
    ],
)
def test_the_status_in_the_words_of_an_older_client_tells(
    status: str, details: str, condition: str | None, is_unknown: bool
) -> None:
    error = refused(of_grpc(words_of(status, details)))
    assert (error.error_class, error.is_outcome_unknown) == (condition, is_unknown)
    assert details in error.first_line


def test_a_channel_that_turns_calls_away_is_tried_again_for_a_while() -> None:
    from grpc import StatusCode

    waits: list[float] = []
    session = RaisingSession(of_grpc("No.", grpc_status_code=StatusCode.RESOURCE_EXHAUSTED))
    with pytest.raises(StatementError) as caught:
        SparkSqlRunner(session, pause=waits.append).run("CREATE TABLE t")  # type: ignore[arg-type]  # all that it uses
    assert transience(caught.value) is Transience.THROTTLED
    assert 240 < sum(waits) <= 300


def test_a_real_call_that_finds_no_server_leaves_the_outcome_unknown() -> None:
    error = _failed_call()
    raised = refused(error)
    assert raised.is_outcome_unknown
    assert "StatusCode" not in raised.first_line
    assert refused(of_grpc(str(error), grpc_status_code=error.code())).is_outcome_unknown


def _failed_call() -> RpcError:
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{free_port()}") as channel:
        call = channel.unary_unary("/spark.connect.SparkConnectService/Config")
        with pytest.raises(grpc.RpcError) as caught:
            call(b"", timeout=5)
    return caught.value
