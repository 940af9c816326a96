"""What platforms mean by a refusal: error conditions, which are data, never message texts."""

from __future__ import annotations

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
    }
)

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


_FORBIDDEN: Final = ("INSUFFICIENT_PERMISSIONS", "PERMISSION_DENIED", "UNAUTHORIZED_ACCESS")


_UNSUPPORTED: Final = (
    "PARSE_SYNTAX_ERROR",
    "UNSUPPORTED_FEATURE",
    "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",  # open Spark
)


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
    """Return why a statement may pass in a while; None if it will not, or if nobody knows."""
    condition = (error.error_class or "").split(".")[0]
    if condition in _THROTTLED:
        return Transience.THROTTLED
    if condition in _UNAVAILABLE:
        return Transience.UNAVAILABLE
    return Transience.CONFLICT if condition.startswith(_COMMIT_CONFLICTS) else None


def is_unsupported(error: StatementError) -> bool:
    """Whether the platform does not know the statement, or not for this kind of table."""
    return (error.error_class or "").startswith(_UNSUPPORTED)


def is_unsupported_for_its_kind(error: StatementError) -> bool:
    """Whether the platform knows `DESCRIBE … AS JSON`, and not for this kind of table alone."""
    return error.error_class == "UNSUPPORTED_FEATURE.DESC_JSON_TABLE_TYPE"


def is_forbidden(error: StatementError) -> bool:
    """Whether a statement was refused because whoever runs it lacks a right."""
    return (error.error_class or "").startswith(_FORBIDDEN)


def is_missing_table(error: StatementError) -> bool:
    """Whether a statement was refused because a table is not there."""
    return (error.error_class or "").split(".")[0] in _MISSING_TABLE


def is_existing_table(error: StatementError) -> bool:
    """Whether a CREATE was refused because something stands under the name."""
    return (error.error_class or "").split(".")[0] in _EXISTING_TABLE


def is_existing_schema(error: StatementError) -> bool:
    """Whether a CREATE SCHEMA was refused because the schema is there."""
    return (error.error_class or "").split(".")[0] in _EXISTING_SCHEMA


def is_conflict(error: StatementError) -> bool:
    """Whether a statement was refused because somebody else changed or made the table in the same moment."""
    return (error.error_class or "").startswith((*_COMMIT_CONFLICTS, *_CREATION_RACES))
