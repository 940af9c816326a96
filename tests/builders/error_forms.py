"""The forms in which platforms word refusals and failures, after recorded ones (docs/decisions/0020)."""

from collections.abc import Callable, Mapping
from typing import Final

from delta_engine.backends.error_conditions import MESSAGE_TOO_LARGE, UNREADABLE_RESULT, statement_error
from delta_engine.backends.warehouse_results import incomplete
from delta_engine.errors import StatementError

FORMS: Final[Mapping[str, Callable[[str, str], str]]] = {
    "bracketed": lambda condition, words: f"[{condition}] {words} SQLSTATE: 56000",
    "of the service": lambda condition, words: (
        f"[RequestId=25b8c822-3052-46b6-90b0-d1945b0df14d ErrorClass={condition}] {words}"
    ),
    "over Connect": lambda condition, words: (
        f"(com.databricks.sql.managedcatalog.acl.UnauthorizedAccessException) {condition}: {words}"
    ),
}
"""How a refusal reads, by the name of its form; each takes a condition and the words after it."""

PY4J = "An error occurred while calling o91.sql.\n: "
STACK = "\n\tat org.apache.spark.sql.A.b(A.scala:1)\n"


def of_storage(*exceptions: str) -> StatementError:
    """Return the error of a table whose storage fails, from Java exceptions, outermost first."""
    return statement_error(PY4J + f"{STACK}Caused by: ".join(exceptions) + STACK, sql="x")


OF_ONE_TABLE: Mapping[str, StatementError] = {
    "files": statement_error("[DELTA_PATH_DOES_NOT_EXIST] file:/a doesn't exist, or is not", sql="x"),
    "log": statement_error("[DELTA_TRUNCATED_TRANSACTION_LOG] 0.json: no state. SQLSTATE: 42K03", sql="x"),
    "status 500": statement_error(
        f"{PY4J}io.unitycatalog.client.ApiException: getTable call failed with: 500 - no{STACK}", sql="x"
    ),
    "right": statement_error('getTable call failed with: 403 - {"error_code": "PERMISSION_DENIED"}', sql="x"),
    "timeout": StatementError("it ran too long", sql="x", error_class="STATEMENT_TIMEOUT"),
    "host of storage": of_storage(
        "java.util.concurrent.ExecutionException: no",
        "java.net.UnknownHostException: deleted.dfs.core.windows.net",
    ),
    "timeout of storage": of_storage(
        "java.io.IOException: no", "java.net.SocketTimeoutException: Read timed out"
    ),
    "class of storage": of_storage(
        "java.lang.RuntimeException: no",
        "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
    ),
    "jars of storage": of_storage("java.lang.NoSuchMethodError: org.apache.hadoop.fs.s3a.A.b()V"),
    "throttled storage": of_storage(
        "org.apache.hadoop.fs.s3a.AWSServiceIOException: open s3a://a: Slow Down (Service: S3, Status Code: 503)"
    ),
    "login of storage": of_storage(
        "org.apache.hadoop.fs.azurebfs.contracts.exceptions.AbfsRestOperationException: Operation failed: HTTP Error "
        "401 InvalidAuthenticationInfo"
    ),
    "half an answer": incomplete("it was truncated", "x"),
    "unreadable answer": StatementError(
        "no", sql="x", error_class=UNREADABLE_RESULT, is_outcome_unknown=True
    ),
    "size": StatementError("too large", sql="x", error_class=MESSAGE_TOO_LARGE, is_outcome_unknown=True),
}
"""How a read fails for one table: forms measured on Spark 4.1.1 with Delta 4.3.1, or of the connector."""

OF_EVERY_TABLE: Mapping[str, StatementError] = {
    "login": statement_error(f"{PY4J}io.unitycatalog.client.ApiException: HTTP 401 - no{STACK}", sql="x"),
    "server": statement_error(f"{PY4J}java.io.IOException: getTable failed (HTTP 0){STACK}", sql="x"),
    "connection": StatementError("no answer came", sql="x", error_class=None, is_outcome_unknown=True),
    "throttling": StatementError("too many", sql="x", error_class="TOO_MANY_REQUESTS"),
    "maintenance": StatementError("later", sql="x", error_class="TEMPORARILY_UNAVAILABLE"),
    "warehouse": StatementError("gone", sql="x", error_class="WAREHOUSE_UNREACHABLE"),
    "unreachable": statement_error(
        f"{PY4J}io.unitycatalog.client.ApiException: no{STACK}Caused by: java.net.ConnectException: refused{STACK}",
        sql="x",
    ),
    "token": statement_error(f"{PY4J}java.io.IOException: getTable failed (HTTP 401){STACK}", sql="x"),
    "jars": statement_error(
        f"{PY4J}java.lang.NoSuchMethodError: 'void io.unitycatalog.client.A.b()'{STACK}", sql="x"
    ),
    "connector": statement_error(
        f"{PY4J}java.lang.NoClassDefFoundError: io/unitycatalog/client/ApiClient{STACK}", sql="x"
    ),
}
