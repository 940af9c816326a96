"""What a platform's refusal means: its error condition, read off the answer here and nowhere else.

Unity Catalog words one refusal in several forms, depending on the runtime, the client and the layer that refused
(docs/decisions/0020):

- ``[CONDITION.SUB] … SQLSTATE: 42501``: Spark, Delta and SQL warehouses;
- ``[RequestId=… ErrorClass=CONDITION.SUB] …``: Unity Catalog's own service;
- ``(com.databricks.….UnauthorizedAccessException) PERMISSION_DENIED: …``: the same service over Spark Connect; as a
  Java exception, a colon follows the class;
- ``… 403 - {"error_code": "PERMISSION_DENIED", …}``: the REST API behind a connector.

`statement_error` reads all of them. Everything else asks the `StatementError` that it returns.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from delta_engine.errors import StatementError

_MISSING_TABLE: Final = frozenset(
    {
        "TABLE_OR_VIEW_NOT_FOUND",
        "DELTA_TABLE_NOT_FOUND",
        "DELTA_MISSING_DELTA_TABLE",
        "DELTA_PATH_DOES_NOT_EXIST",
        "PATH_NOT_FOUND",  # a table by path
        "TABLE_DOES_NOT_EXIST",  # Unity Catalog's own service
    }
)

_MISSING_CATALOG: Final = frozenset(
    {
        "NO_SUCH_CATALOG_EXCEPTION",  # Unity Catalog
        "CATALOG_DOES_NOT_EXIST",
        "CATALOG_NOT_FOUND",
        "REQUIRES_SINGLE_PART_NAMESPACE",  # open Spark: an unknown catalog is taken for a schema
    }
)

_MISSING_SCHEMA: Final = frozenset({"SCHEMA_NOT_FOUND", "SCHEMA_DOES_NOT_EXIST"})

_EXISTING_TABLE: Final = frozenset(
    {
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        "DELTA_TABLE_ALREADY_EXISTS",
        "RESOURCE_ALREADY_EXISTS",
    }
)

_EXISTING_SCHEMA: Final = frozenset({"SCHEMA_ALREADY_EXISTS", "RESOURCE_ALREADY_EXISTS"})

_COMMIT_CONFLICTS: Final = (
    "DELTA_CONCURRENT_",  # …APPEND, …DELETE_DELETE, …DELETE_READ, …TRANSACTION, …WRITE
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
)
"""Beginnings of Delta's conditions for commits that others got ahead of, so that nothing was written
(docs.databricks.com: "Isolation levels and write conflicts on Databricks", and each condition's page under "Error
conditions")."""

_CREATION_RACES: Final = (
    "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",  # somebody creates it in this moment
    "DELTA_TABLE_ALREADY_EXISTS",
    "TABLE_OR_VIEW_ALREADY_EXISTS",
)

_THROTTLED: Final = frozenset(
    {
        "RESOURCE_EXHAUSTED",
        "REQUEST_LIMIT_EXCEEDED",
        "TOO_MANY_REQUESTS",
    }
)
"""HTTP 429: turned away unseen (docs.databricks.com/api: "Errors"; databricks.sdk.errors.TooManyRequests)."""

_UNAVAILABLE: Final = frozenset(
    {
        "TEMPORARILY_UNAVAILABLE",
        "WORKSPACE_TEMPORARILY_UNAVAILABLE",
        "SERVICE_UNDER_MAINTENANCE",
        "SERVICE_UNAVAILABLE",
    }
)
"""HTTP 503 (the same page; databricks.sdk.service.sql.ServiceErrorCode). A cluster that starts answers with it
too, and so can a statement that is done: github.com/trinodb/trino/issues/16934."""


_FORBIDDEN: Final = ("INSUFFICIENT_PERMISSIONS", "PERMISSION_DENIED", "UNAUTHORIZED")
_FORBIDDEN_STATE: Final = "42501"
"""SQLSTATE of a missing privilege (docs.databricks.com: "SQLSTATE error codes", class 42)."""

_UNREACHABLE: Final = frozenset(
    {
        "ClosedChannelException",
        "ConnectException",
        "ConnectTimeoutException",
        "HttpConnectTimeoutException",
        "NoRouteToHostException",
        "SocketException",
        "SocketTimeoutException",
        "UnknownHostException",
        "UnresolvedAddressException",
    }
)
_HTTP_NOTHING: Final = "(HTTP 0)"
"""How the connector of open-source Unity Catalog says that there was no answer; its exception is an IOException."""

_MISSING_CLASS: Final = frozenset({"ClassNotFoundException", "NoClassDefFoundError"})
_CLASS_CONFLICT: Final = frozenset(
    {
        "AbstractMethodError",
        "IllegalAccessError",
        "IncompatibleClassChangeError",
        "LinkageError",
        "NoSuchFieldError",
        "NoSuchMethodError",
        "UnsupportedClassVersionError",
    }
)
"""Java exceptions of jars that do not go together."""

_UNSUPPORTED: Final = (
    "PARSE_SYNTAX_ERROR",
    "UNSUPPORTED_FEATURE",
    "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",  # open Spark
)


_KNOWN: Final = (
    *_MISSING_TABLE,
    *_MISSING_CATALOG,
    *_MISSING_SCHEMA,
    *_EXISTING_TABLE,
    *_EXISTING_SCHEMA,
    *_COMMIT_CONFLICTS,
    *_CREATION_RACES,
    *_THROTTLED,
    *_UNAVAILABLE,
    *_FORBIDDEN,
    *_UNSUPPORTED,
)
"""Beginnings of all conditions that mean something to the engine."""


class Transience(Enum):
    """Why a refused statement may pass in a while."""

    THROTTLED = "too many requests"
    UNAVAILABLE = "the platform is unavailable"
    CONFLICT = "somebody else changed the table in the same moment"

    @property
    def needs_look(self) -> bool:
        """Whether the table has to be read before the statement may be sent again: it may be done, or not needed."""
        return self in (Transience.UNAVAILABLE, Transience.CONFLICT)


def transience(error: StatementError) -> Transience | None:
    """Return why a statement may pass in a while; None if it will not, or if that is unknown."""
    if _names(error) & _THROTTLED:
        return Transience.THROTTLED
    if _names(error) & _UNAVAILABLE:
        return Transience.UNAVAILABLE
    return Transience.CONFLICT if (error.error_class or "").startswith(_COMMIT_CONFLICTS) else None


def is_known(error: StatementError) -> bool:
    """Whether an error has a condition that means something to the engine, so that its name is no accident."""
    return any(name.startswith(_KNOWN) for name in _names(error))


def is_unsupported(error: StatementError) -> bool:
    """Whether the platform does not know the statement, or not for this kind of table."""
    return (error.error_class or "").startswith(_UNSUPPORTED)


def is_unsupported_for_its_kind(error: StatementError) -> bool:
    """Whether the platform knows `DESCRIBE … AS JSON`, and not for this kind of table alone."""
    return error.error_class == "UNSUPPORTED_FEATURE.DESC_JSON_TABLE_TYPE"


def is_forbidden(error: StatementError) -> bool:
    """Whether a statement was refused because its principal lacks a right."""
    return error.sql_state == _FORBIDDEN_STATE or any(name.startswith(_FORBIDDEN) for name in _names(error))


def is_missing_table(error: StatementError) -> bool:
    """Whether a statement was refused because a table is not there."""
    return bool(_names(error) & _MISSING_TABLE)


def is_missing_catalog(error: StatementError) -> bool:
    """Whether a statement was refused because a catalog does not exist, or is not visible."""
    return bool(_names(error) & _MISSING_CATALOG)


def is_missing_schema(error: StatementError) -> bool:
    """Whether a statement was refused because a schema is not there."""
    return bool(_names(error) & _MISSING_SCHEMA)


def is_existing_table(error: StatementError) -> bool:
    """Whether a CREATE was refused because something stands under the name."""
    return bool(_names(error) & _EXISTING_TABLE)


def is_existing_schema(error: StatementError) -> bool:
    """Whether a CREATE SCHEMA was refused because the schema is there."""
    return bool(_names(error) & _EXISTING_SCHEMA)


def is_conflict(error: StatementError) -> bool:
    """Whether a statement was refused because another principal changed or made the table in the same moment."""
    return (error.error_class or "").startswith((*_COMMIT_CONFLICTS, *_CREATION_RACES))


def is_missing_class(error: StatementError) -> bool:
    """Whether Spark lacks a class: a jar is missing."""
    return bool(_exceptions(error) & _MISSING_CLASS)


def is_class_conflict(error: StatementError) -> bool:
    """Whether two of Spark's jars do not go together."""
    return bool(_exceptions(error) & _CLASS_CONFLICT)


def is_unreachable(error: StatementError) -> bool:
    """Whether a server behind Spark, such as a catalog's, could not be reached."""
    return bool(_exceptions(error) & _UNREACHABLE) or _HTTP_NOTHING in error.message


def _names(error: StatementError) -> frozenset[str]:
    """Return the parts of a condition: Unity Catalog puts the telling one first or last."""
    return frozenset((error.error_class or "").split("."))


def _exceptions(error: StatementError) -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name in error.exceptions)


_BOILERPLATE: Final = re.compile(r"An error occurred while calling [^\n]*\n(?:: )?")
"""py4j's first line, above the Java exception that matters."""

_STACK: Final = re.compile(r"\n\tat |\n\s*JVM stacktrace:|\nCaused by: |;\n")
"""Where Spark's words end, and the stack of the JVM or a query plan begins."""

_CAUSE: Final = re.compile(
    r"^Caused by: (.+?)(?=\n\tat |\n\t\.\.\. |\nCaused by: |\Z)", re.MULTILINE | re.DOTALL
)

_EXCEPTION: Final = re.compile(r"\(?((?:\w+\.)+[\w$]*[A-Z][\w$]*)(?:\)|:|$)")
"""A Java exception's class, which stands before its words."""

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
"""The statement, names and texts inside a platform's words: they are the user's. Quotes inside of words are
apostrophes; a text without an end was cut off."""
_DOUBLY_QUOTED: Final = re.compile(r'(?<!\w)".*?(?:"(?!\w)|\Z)', re.DOTALL)

_HTTP: Final = re.compile(
    r"(?:\bHTTP(?:/[\d.]+)?(?: status)?(?: code)?|\bstatus code|\bcall failed with|\bresponse code)"
    r"(?: error)?[ :=(]{1,3}(\d{3})\b"
    r"|\b(\d{3}) (?:Client Error|Server Error|Too Many Requests|Service Unavailable)",
    re.IGNORECASE,
)
_OF_HTTP: Final = {
    "401": "UNAUTHENTICATED",
    "403": "PERMISSION_DENIED",
    "429": "TOO_MANY_REQUESTS",
    "503": "SERVICE_UNAVAILABLE",
}
"""What an HTTP status means in words that have no condition (docs.databricks.com/api: "Errors")."""

_OF_EXCEPTION: Final = {"UnauthorizedAccessException": "PERMISSION_DENIED"}

_SAYS_LITTLE: Final = ("_LEGACY_ERROR_TEMP_", "INTERNAL_ERROR", "UNCLASSIFIED_ERROR", "UNKNOWN")
"""Beginnings of conditions that Spark gives what it does not know: the words, or a cause, may say more."""


def statement_error(
    text: str,
    *,
    sql: str,
    condition: str | None = None,
    sql_state: str | None = None,
    code: str | None = None,
    is_outcome_unknown: bool = False,
) -> StatementError:
    """Return the error of a statement, from whatever form the platform's answer has.

    Args:
        text: the platform's words, with the JVM's stack where there is one.
        sql: the statement.
        condition: the condition that came as data; it counts before the words.
        sql_state: the SQLSTATE that came as data.
        code: what to call it if the words have no condition, such as a service's error code.
        is_outcome_unknown: whether the connection failed, rather than the statement.
    """
    words = _STACK.split(_BOILERPLATE.sub("", text, count=1), maxsplit=1)[0].strip()
    chain = [words, *(one.strip() for one in _CAUSE.findall(text))]
    has_data = bool(condition or code)
    found = [condition, *(_condition(one, has_data=has_data) for one in chain)]
    place = next((n for n, one in enumerate(found) if one and not one.startswith(_SAYS_LITTLE)), None)
    speaker = chain[-1] if place is None else chain[max(place - 1, 0)]
    states = _SQL_STATE.findall(_QUOTED.sub("", words))
    return StatementError(
        _with_cause(words, speaker),
        sql=sql,
        error_class=found[place] if place is not None else next(filter(None, found), None) or code,
        sql_state=sql_state or (states[-1] if states else None),
        exceptions=[match[1] for one in chain if (match := _EXCEPTION.match(one))],
        is_outcome_unknown=is_outcome_unknown,
    )


def _condition(words: str, *, has_data: bool) -> str | None:
    """Return the condition that one exception's words have, in any of the forms.

    Args:
        words: the exception's words.
        has_data: whether a condition or a code came as data, which counts more than an HTTP status in the words.
    """
    for form in _FORMS:
        if match := form.search(words):
            return match["name"]
    outside = _QUOTED.sub("", words)
    if match := _IN_JSON.search(outside):
        return match[1]
    exception = _EXCEPTION.match(words)
    known = _OF_EXCEPTION.get(exception[1].rpartition(".")[2]) if exception else None
    if known or has_data:
        return known
    status = _HTTP.search(_DOUBLY_QUOTED.sub("", outside))
    return _OF_HTTP.get(status[1] or status[2]) if status else None


def _with_cause(head: str, cause: str) -> str:
    """Return an exception's words with those of the innermost cause in the first line, which is what users see."""
    first, _, rest = head.partition("\n")
    reason = cause.partition("\n")[0]
    if reason.rpartition(": ")[2] in first:
        return head
    return "\n".join(filter(None, [f"{first.removesuffix('.')} (caused by {reason})", rest]))
