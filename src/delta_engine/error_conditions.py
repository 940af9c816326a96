"""What platforms mean by a refusal: error conditions, which are data, never message texts."""

from __future__ import annotations

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

_CONFLICTS: Final = (
    "DELTA_CONCURRENT_",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",  # somebody creates it in this moment
    "DELTA_TABLE_ALREADY_EXISTS",
    "TABLE_OR_VIEW_ALREADY_EXISTS",
)
"""Beginnings of Delta's conditions for commits that others got ahead of (docs: "Isolation levels and write
conflicts on Databricks")."""


_FORBIDDEN: Final = ("INSUFFICIENT_PERMISSIONS", "PERMISSION_DENIED", "UNAUTHORIZED_ACCESS")


_UNSUPPORTED: Final = (
    "PARSE_SYNTAX_ERROR",
    "UNSUPPORTED_FEATURE",
    "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",  # open Spark
)


def is_unsupported(error: StatementError) -> bool:
    """Whether the platform does not know the statement, or not for this kind of table."""
    return (error.error_class or "").startswith(_UNSUPPORTED)


def is_forbidden(error: StatementError) -> bool:
    """Whether a statement was refused because whoever runs it lacks a right."""
    return (error.error_class or "").startswith(_FORBIDDEN)


def is_missing_table(error: StatementError) -> bool:
    """Whether a statement was refused because a table is not there."""
    return (error.error_class or "").split(".")[0] in _MISSING_TABLE


def is_existing_table(error: StatementError) -> bool:
    """Whether a CREATE was refused because something stands under the name."""
    return (error.error_class or "").split(".")[0] in _EXISTING_TABLE


def is_conflict(error: StatementError) -> bool:
    """Whether a statement was refused because somebody else changed or made the table in the same moment."""
    return (error.error_class or "").startswith(_CONFLICTS)
