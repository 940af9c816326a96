"""The meaning of a platform's refusal: its error condition, parsed here and nowhere else.

Unity Catalog reports one refusal in several forms, depending on the runtime, the client and the layer that refused
(docs/decisions/0020):

- ``[CONDITION.SUB] … SQLSTATE: 42501``: Spark, Delta and SQL warehouses;
- ``[RequestId=… ErrorClass=CONDITION.SUB] …``: Unity Catalog's own service;
- ``(com.databricks.….UnauthorizedAccessException) PERMISSION_DENIED: …``: the same service over Spark Connect; as a
  Java exception, a colon follows the class;
- ``… 403 - {"error_code": "PERMISSION_DENIED", …}``: the REST API behind a connector.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Final, TypeAlias

from delta_engine.errors import StatementError

_UNREGISTERED: Final = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "TABLE_DOES_NOT_EXIST",  # Unity Catalog's own service
    "TABLE_NOT_FOUND",  # the server of open-source Unity Catalog: `ErrorCode` of its version 0.6
)
_MISSING_FILES: Final = (
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_PATH_DOES_NOT_EXIST",
    "PATH_NOT_FOUND",
)
"""Delta's own conditions: of tables by path, and of registered tables without files or log (measured on Spark 4.1.1
with Delta 4.3.1; `test_a_registered_table_without_files_is_refused`)."""

_MISSING_TABLE: Final = (*_UNREGISTERED, *_MISSING_FILES)
_MISSING_CATALOG: Final = (
    "NO_SUCH_CATALOG_EXCEPTION",  # Unity Catalog
    "CATALOG_DOES_NOT_EXIST",
    "CATALOG_NOT_FOUND",
    "REQUIRES_SINGLE_PART_NAMESPACE",  # open-source Spark, which interprets an unknown catalog as a schema
)
_MISSING_SCHEMA: Final = ("SCHEMA_NOT_FOUND", "SCHEMA_DOES_NOT_EXIST")
_MISSING_FUNCTION: Final = (
    "ROUTINE_NOT_FOUND",
    "UNRESOLVED_ROUTINE",  # measured on Spark 4.1.1 for DESCRIBE FUNCTION
)
_EXISTING_TABLE: Final = (
    "TABLE_OR_VIEW_ALREADY_EXISTS",
    "DELTA_TABLE_ALREADY_EXISTS",
    "RESOURCE_ALREADY_EXISTS",
    "TABLE_ALREADY_EXISTS",  # the server of open-source Unity Catalog
)
_EXISTING_OTHER: Final = ("ROUTINE_ALREADY_EXISTS", "POLICY_ALREADY_EXISTS", "ALREADY_EXISTS")
"""Conditions of functions and policies. That of policies is not documented."""

_EXISTING_SCHEMA: Final = ("SCHEMA_ALREADY_EXISTS", "RESOURCE_ALREADY_EXISTS")

_EXISTING_PART: Final = (
    *("FIELD_ALREADY_EXISTS", "COLUMN_ALREADY_EXISTS"),
    *("CONSTRAINT_ALREADY_EXISTS", "DELTA_CONSTRAINT_ALREADY_EXISTS"),
)
_MISSING_PART: Final = (
    *("FIELD_NOT_FOUND", "COLUMN_NOT_FOUND", "UNRESOLVED_COLUMN"),
    *("DELTA_COLUMN_NOT_FOUND", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    *("CONSTRAINT_DOES_NOT_EXIST", "DELTA_CONSTRAINT_DOES_NOT_EXIST"),
)
"""Conditions of columns and constraints: Spark's `error-conditions.json` and Delta's `delta-error-classes.json`."""

_THROTTLED: Final = ("RESOURCE_EXHAUSTED", "REQUEST_LIMIT_EXCEEDED", "TOO_MANY_REQUESTS")
"""HTTP 429: not processed (docs.databricks.com/api: "Errors"; databricks.sdk.errors.TooManyRequests)."""

_UNAVAILABLE: Final = (
    "TEMPORARILY_UNAVAILABLE",
    "WORKSPACE_TEMPORARILY_UNAVAILABLE",
    "SERVICE_UNDER_MAINTENANCE",
    "SERVICE_UNAVAILABLE",
)
"""HTTP 503 (the same page; databricks.sdk.service.sql.ServiceErrorCode). A starting cluster answers with it too, and so
can a completed statement: github.com/trinodb/trino/issues/16934."""

_COMMIT_CONFLICTS: Final = (
    "DELTA_CONCURRENT_",  # …APPEND, …DELETE_DELETE, …DELETE_READ, …TRANSACTION, …WRITE
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
)
"""Prefixes of Delta's conditions for commits that lost against another one, so that nothing was written
(docs.databricks.com: "Isolation levels and write conflicts on Databricks", and each condition's page under "Error
conditions")."""

_CREATION_RACES: Final = (
    "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",  # another principal is creating it
    "DELTA_TABLE_ALREADY_EXISTS",
    "TABLE_OR_VIEW_ALREADY_EXISTS",
    "TABLE_ALREADY_EXISTS",
)
_UNSUPPORTED: Final = (
    "PARSE_SYNTAX_ERROR",
    "UNSUPPORTED_FEATURE",
    "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",  # open-source Spark
)
_UNKNOWN_COLUMN: Final = ("UNRESOLVED_COLUMN",)
_FORBIDDEN: Final = ("INSUFFICIENT_PERMISSIONS", "PERMISSION_DENIED", "UNAUTHORIZED")
WAREHOUSE_UNREACHABLE: Final = "WAREHOUSE_UNREACHABLE"
"""The engine's own condition: a SQL warehouse was not reached, and gave no condition."""

MESSAGE_TOO_LARGE: Final = "MESSAGE_TOO_LARGE"
"""The engine's own condition: a statement or an answer exceeds the limit of the Spark Connect channel."""

INCOMPLETE_RESULT: Final = "INCOMPLETE_RESULT"
"""The engine's own condition: rows of a warehouse's answer are missing."""

UNREADABLE_RESULT: Final = "UNREADABLE_RESULT"
"""The engine's own condition: a value in a warehouse's answer is not of its type."""

_BAD_ANSWERS: Final = (MESSAGE_TOO_LARGE, INCOMPLETE_RESULT, UNREADABLE_RESULT)
"""Conditions of answers that came, but cannot be used: the next statement may be answered."""

UNAUTHENTICATED: Final = "UNAUTHENTICATED"
"""HTTP 401: the service does not know who asks."""

_SERVER_FAILED: Final = ("INTERNAL", "INTERNAL_ERROR")
"""HTTP 500 of the server of open-source Unity Catalog (`ErrorCode`) and of Databricks."""

_FORBIDDEN_STATE: Final = "42501"
"""SQLSTATE of a missing privilege (docs.databricks.com: "SQLSTATE error codes", class 42)."""

_SYNTAX_OR_ACCESS: Final = "42"
"""The class of SQLSTATEs of statements that are wrong, such as 42703 for an unknown column (the same page)."""

_BAD_QUERIES: Final = (*_MISSING_TABLE, *_MISSING_CATALOG, *_MISSING_SCHEMA, *_MISSING_FUNCTION)

_KNOWN: Final = (
    *(*_MISSING_TABLE, *_MISSING_CATALOG, *_MISSING_SCHEMA, *_EXISTING_TABLE, *_EXISTING_SCHEMA),
    *_EXISTING_OTHER,
    *(*_THROTTLED, *_UNAVAILABLE, *_COMMIT_CONFLICTS, *_CREATION_RACES, *_UNSUPPORTED, *_FORBIDDEN),
    *(*_UNKNOWN_COLUMN, UNAUTHENTICATED),
)
"""Prefixes of the conditions that Spark Connect may name in a message without the rest of their form."""

_UNREACHABLE: Final = (
    *("ClosedChannelException", "ConnectException", "ConnectTimeoutException", "HttpConnectTimeoutException"),
    *("NoRouteToHostException", "SocketException", "SocketTimeoutException", "UnknownHostException"),
    "UnresolvedAddressException",
)
_HTTP_NOTHING: Final = "(HTTP 0)"
"""How the connector of open-source Unity Catalog reports a missing answer; its exception is an IOException."""

_OPEN_SOURCE_CLIENT: Final = "io.unitycatalog."
_CATALOG_CLIENTS: Final = (
    _OPEN_SOURCE_CLIENT,
    "com.databricks.sql.managedcatalog.",
    "com.databricks.managedcatalog.",
)
"""Packages of Unity Catalog's clients. Other Java exceptions may come from the storage of a single table."""

_OF_CONNECTOR: Final = re.compile(r"\b\w+ failed \(HTTP \d+\)")
"""The connector's message of a failed request; its exception is an IOException."""

_CATALOG_CLASS: Final = re.compile(r"\bio[./]unitycatalog[./]")

_MISSING_CLASS: Final = ("ClassNotFoundException", "NoClassDefFoundError")
_ILLEGAL_ARGUMENT: Final = ("IllegalArgumentException",)
_CLASS_CONFLICT: Final = (
    *("AbstractMethodError", "IllegalAccessError", "IncompatibleClassChangeError", "LinkageError"),
    *("NoSuchFieldError", "NoSuchMethodError", "UnsupportedClassVersionError"),
)
"""Java exceptions of incompatible jars."""


Question: TypeAlias = Callable[[StatementError], bool]
"""Whether an error means something."""


class Transience(Enum):
    """Why a refused statement may succeed later."""

    THROTTLED = "too many requests"
    UNAVAILABLE = "the platform is unavailable"
    CONFLICT = "another principal changed the table at the same time"

    @property
    def needs_reread(self) -> bool:
        """Whether to re-read the table before a retry: the statement may be done, or no longer needed."""
        return self in (Transience.UNAVAILABLE, Transience.CONFLICT)


def _parts(error: StatementError) -> list[str]:
    """Return the parts of a condition; Unity Catalog puts the specific one first or last."""
    return (error.error_class or "").split(".")


def _names(conditions: tuple[str, ...], error: StatementError) -> bool:
    return any(part in conditions for part in _parts(error))


def _begins(prefixes: tuple[str, ...], error: StatementError) -> bool:
    return (error.error_class or "").startswith(prefixes)


def _raised(exceptions: tuple[str, ...], error: StatementError) -> bool:
    return any(name.rpartition(".")[2] in exceptions for name in error.exceptions)


def transience(error: StatementError) -> Transience | None:
    """Return why a statement may succeed later; None if it will not, or if that is unknown."""
    if _names(_THROTTLED, error):
        return Transience.THROTTLED
    if _names(_UNAVAILABLE, error):
        return Transience.UNAVAILABLE
    return Transience.CONFLICT if _begins(_COMMIT_CONFLICTS, error) else None


def may_have_run(error: StatementError) -> bool:
    """Whether a statement may have run although it failed: no answer came, or the platform was unavailable."""
    return error.is_outcome_unknown or transience(error) is Transience.UNAVAILABLE


is_unsupported: Question = partial(_begins, _UNSUPPORTED)
"""Whether the platform does not support the statement, or not for this kind of table."""

is_missing_table: Question = partial(_names, _MISSING_TABLE)
"""Whether a table does not exist, or its files do not."""

is_unregistered_table: Question = partial(_names, _UNREGISTERED)
"""Whether a catalog has no table of that name."""

is_missing_function: Question = partial(_names, _MISSING_FUNCTION)
"""Whether a function does not exist."""

is_missing_files: Question = partial(_names, _MISSING_FILES)
"""Whether a table has no files, or no log. A catalog may still have its name."""

is_missing_catalog: Question = partial(_names, _MISSING_CATALOG)
"""Whether a catalog does not exist or is not visible."""

is_missing_schema: Question = partial(_names, _MISSING_SCHEMA)
"""Whether a schema does not exist."""

is_existing: Question = partial(_names, (*_EXISTING_TABLE, *_EXISTING_OTHER))
"""Whether a CREATE of anything but a schema was refused because the name exists."""

is_existing_part: Question = partial(_names, _EXISTING_PART)
"""Whether a table already has the column or constraint that a statement adds."""

is_missing_part: Question = partial(_names, _MISSING_PART)
"""Whether a table does not have the column or constraint that a statement names."""

is_existing_schema: Question = partial(_names, _EXISTING_SCHEMA)
"""Whether a CREATE SCHEMA was refused because the schema exists."""

is_unknown_column: Question = partial(_begins, _UNKNOWN_COLUMN)
"""Whether a query names a column that its table does not have."""

is_conflict: Question = partial(_begins, (*_COMMIT_CONFLICTS, *_CREATION_RACES))
"""Whether another principal changed or created the table at the same time."""

is_missing_class: Question = partial(_raised, _MISSING_CLASS)
"""Whether Spark lacks a class: a jar is missing."""

is_class_conflict: Question = partial(_raised, _CLASS_CONFLICT)
"""Whether two of Spark's jars are incompatible."""


is_illegal_argument: Question = partial(_raised, _ILLEGAL_ARGUMENT)
"""Whether Java code refused a value, such as a setting of a catalog."""

is_unauthenticated: Question = partial(_names, (UNAUTHENTICATED,))
"""Whether the service does not know who asks: the token is missing, wrong or expired (HTTP 401)."""


def is_known(error: StatementError) -> bool:
    """Whether the engine interprets the condition of an error."""
    return any(part.startswith(_KNOWN) for part in _parts(error))


def is_unsupported_for_its_kind(error: StatementError) -> bool:
    """Whether the platform supports `DESCRIBE … AS JSON`, but not for this kind of table."""
    return error.error_class == "UNSUPPORTED_FEATURE.DESC_JSON_TABLE_TYPE"


def is_forbidden(error: StatementError) -> bool:
    """Whether the principal lacks a privilege."""
    return error.sql_state == _FORBIDDEN_STATE or any(part.startswith(_FORBIDDEN) for part in _parts(error))


def is_refused_query(error: StatementError) -> bool:
    """Whether a statement is wrong: its syntax, or a name in it that is missing or taken."""
    if is_forbidden(error):
        return False
    is_bad = (error.sql_state or "").startswith(_SYNTAX_OR_ACCESS)
    return is_bad or _names(_BAD_QUERIES, error) or _begins((*_UNKNOWN_COLUMN, "PARSE_SYNTAX_ERROR"), error)


def is_refusal(error: StatementError) -> bool:
    """Whether the platform refused a statement before it ran, and says so: other failures may come from behind it."""
    is_named = is_forbidden(error) or is_refused_query(error) or is_unsupported(error)
    return is_named and not may_have_run(error)


def is_unreachable(error: StatementError) -> bool:
    """Whether a server behind Spark, such as a catalog's, was unreachable."""
    return _raised(_UNREACHABLE, error) or _HTTP_NOTHING in error.message


def is_unanswered(error: StatementError) -> bool:
    """Whether no usable answer came: the connection was lost, or the server was unreachable, busy or failed itself."""
    return (
        (error.is_outcome_unknown and error.error_class != MESSAGE_TOO_LARGE)
        or _names((*_THROTTLED, *_UNAVAILABLE, *_SERVER_FAILED, WAREHOUSE_UNREACHABLE), error)
        or is_unreachable(error)
        or _http_status(error).startswith("5")
    )


def is_of_platform(error: StatementError) -> bool:
    """Whether an error comes from the client or the catalog. Storage, such as a deleted account, fails in Java."""
    return _speaks_for_platform(error.exceptions, error.message)


def is_of_every_table(error: StatementError) -> bool:
    """Whether a failed read says nothing about its table: no server, login or class of the catalog answers for any."""
    is_lost = error.is_outcome_unknown and error.error_class not in _BAD_ANSWERS
    if is_lost or _names((WAREHOUSE_UNREACHABLE,), error):
        return True
    if is_missing_class(error) or is_class_conflict(error):
        return bool(_CATALOG_CLASS.search(error.message))
    is_refused = _names((*_THROTTLED, *_UNAVAILABLE), error) or is_unauthenticated(error)
    return is_of_platform(error) and (is_refused or is_unreachable(error))


def is_of_one_table(error: StatementError) -> bool:
    """Whether a failed read says nothing about other tables."""
    return is_missing_table(error) or is_forbidden(error) or is_unsupported(error)


_BOILERPLATE: Final = re.compile(r"An error occurred while calling [^\n]*\n(?:: )?")
"""py4j's first line, above the Java exception."""

_STACK: Final = re.compile(r"\n\tat |\n\s*JVM stacktrace:|\nCaused by: |;\n")
"""Where the message ends, and the JVM's stack or a query plan begins."""

_CAUSE: Final = re.compile(
    r"^Caused by: (.+?)(?=\n\tat |\n\t\.\.\. |\nCaused by: |\Z)", re.MULTILINE | re.DOTALL
)

_EXCEPTION: Final = re.compile(r"\(?((?:\w+\.)+[\w$]*[A-Z][\w$]*)(?:\)|:|$)")
"""The class of a Java exception, in front of its message."""

_PREFIX: Final = (
    rf"(?:{_EXCEPTION.pattern}\s*"
    r"|[A-Z]\w+(?:Exception|Error): |Error running query: |Error in SQL statement: )*"
)
_NAME: Final = r"[A-Z][A-Z0-9_]*"
_FORMS: Final = tuple(
    re.compile(form, re.MULTILINE)
    for form in (
        rf"\A{_PREFIX}\[(?P<name>{_NAME}(?:\.{_NAME})*)\]",
        rf"\A{_PREFIX}\[[^\]\n]*\bErrorClass=(?P<name>{_NAME}(?:\.{_NAME})*)[^\]\n]*\]",
        rf"\A{_PREFIX}(?P<name>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+): ",
    )
)
_IN_JSON: Final = re.compile(rf'"error_code"\s*:\s*"({_NAME})"')
_SQL_STATE: Final = re.compile(r"\bSQLSTATE: ?([0-9A-Z]{5})\b")

_QUOTED: Final = re.compile(
    r"\n== SQL\b[^\n]*==.*|(?<!\w)(?P<quote>['`]).*?(?:(?P=quote)(?!\w)|\Z)", re.DOTALL
)
"""The statement, names and texts of the user inside a platform's message. A quote inside a word is an apostrophe; text
without a closing quote was cut off."""
_DOUBLY_QUOTED: Final = re.compile(r'(?<!\w)".*?(?:"(?!\w)|\Z)', re.DOTALL)

_HTTP: Final = re.compile(
    r"(?:\bHTTP(?:/[\d.]+)?(?: status)?(?: code)?|\bstatus code|\bcall failed with|\bresponse code)"
    r"(?: error)?[ :=(]{1,3}(\d{3})\b"
    r"|\b(\d{3}) (?:Client Error|Server Error|Too Many Requests|Service Unavailable)",
    re.IGNORECASE,
)
_OF_HTTP: Final = {
    "401": UNAUTHENTICATED,
    "403": "PERMISSION_DENIED",
    "429": "TOO_MANY_REQUESTS",
    "503": "SERVICE_UNAVAILABLE",
}
"""The conditions of HTTP statuses in messages without a condition (docs.databricks.com/api: "Errors")."""

_OF_EXCEPTION: Final = {"UnauthorizedAccessException": "PERMISSION_DENIED"}

_REJECTED_TOKEN: Final = "the token is missing, wrong or expired"
_NEW_TOKEN: Final = "log in again, or replace it"

_UNSPECIFIC: Final = ("_LEGACY_ERROR_TEMP_", "INTERNAL_ERROR", "UNCLASSIFIED_ERROR", "UNKNOWN")
"""Prefixes of Spark's conditions for unclassified errors: the message or a cause may be more specific."""


def statement_error(
    text: str,
    *,
    sql: str,
    condition: str | None = None,
    sql_state: str | None = None,
    code: str | None = None,
    is_outcome_unknown: bool = False,
) -> StatementError:
    """Return the error of a statement, from an answer in any form.

    Args:
        text: the platform's message, with the JVM's stack, if any.
        condition: the condition that came as data; it takes precedence over the message.
        code: the condition if neither data nor message has any, such as a service's error code.
        is_outcome_unknown: whether the connection failed, rather than the statement.
    """
    words = _STACK.split(_BOILERPLATE.sub("", text, count=1), maxsplit=1)[0].strip()
    chain = [words, *(cause.strip() for cause in _CAUSE.findall(text))]
    has_data = bool(condition or code)
    conditions = [condition, *(_condition(link, has_data=has_data) for link in chain)]
    place = next((n for n, name in enumerate(conditions) if name and not name.startswith(_UNSPECIFIC)), None)
    speaker = chain[-1] if place is None else chain[max(place - 1, 0)]
    states = _SQL_STATE.findall(_QUOTED.sub("", words))
    error_class = conditions[place] if place is not None else next(filter(None, conditions), None) or code
    message = _with_cause(words, speaker)
    exceptions = [match[1] for link in chain if (match := _EXCEPTION.match(link))]
    if error_class == UNAUTHENTICATED and not _speaks_for_platform(exceptions, message):
        error_class = None  # the storage of a table rejects its own credentials
    if error_class == UNAUTHENTICATED:
        has_login = not _is_of_connector(
            exceptions, message
        )  # its token is a setting, which its refusal names
        message = _with_note(message, f"{_REJECTED_TOKEN}: {_NEW_TOKEN}" if has_login else _REJECTED_TOKEN)
    return StatementError(
        message,
        sql=sql,
        error_class=error_class,
        sql_state=sql_state or (states[-1] if states else None),
        exceptions=exceptions,
        is_outcome_unknown=is_outcome_unknown,
    )


def _speaks_for_platform(exceptions: Sequence[str], message: str) -> bool:
    is_of_catalog = any(name.startswith(_CATALOG_CLIENTS) for name in exceptions)
    return not exceptions or is_of_catalog or bool(_OF_CONNECTOR.search(message))


def _is_of_connector(exceptions: Sequence[str], message: str) -> bool:
    """Whether an error comes from the connector of open-source Unity Catalog, whose token is a setting."""
    is_of_client = any(name.startswith(_OPEN_SOURCE_CLIENT) for name in exceptions)
    return is_of_client or bool(_OF_CONNECTOR.search(message))


def _condition(words: str, *, has_data: bool) -> str | None:
    """Return the condition in one exception's message; a condition that came as data wins over an HTTP status."""
    for form in _FORMS:
        if match := form.search(words):
            return match["name"]
    outside = _QUOTED.sub("", words)
    if match := _IN_JSON.search(outside):
        return match[1]
    exception = _EXCEPTION.match(words)
    of_exception = _OF_EXCEPTION.get(exception[1].rpartition(".")[2]) if exception else None
    if of_exception or has_data:
        return of_exception
    return _OF_HTTP.get(_status_in(outside))


def _status_in(outside: str) -> str:
    """Return the HTTP status in a message without the words of users; empty if the message has no status."""
    status = _HTTP.search(_DOUBLY_QUOTED.sub("", outside))
    return (status[1] or status[2]) if status else ""


def _http_status(error: StatementError) -> str:
    return _status_in(_QUOTED.sub("", error.message))


def _with_cause(head: str, cause: str) -> str:
    """Return a message whose first line, which users see, includes the innermost cause."""
    first = head.partition("\n")[0]
    reason = cause.partition("\n")[0]
    return head if reason.rpartition(": ")[2] in first else _with_note(head, f"caused by {reason}")


def _with_note(message: str, note: str) -> str:
    """Return a message with a note at the end of its first line."""
    first, _, rest = message.partition("\n")
    return "\n".join(filter(None, [f"{first.removesuffix('.')} ({note})", rest]))
