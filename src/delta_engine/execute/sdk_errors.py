"""What databricks-sdk raises, as the conditions that `error_conditions` knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from databricks.sdk.errors.base import DatabricksError


def sdk_condition(error: DatabricksError) -> str:
    """Return the error code of an answer of the REST API.

    Old endpoints give a number, or nothing (docs.databricks.com/api: "Errors"); then the error's type says what the
    HTTP status was.
    """
    from databricks.sdk.errors import TemporarilyUnavailable, TooManyRequests

    if isinstance(error.error_code, str) and error.error_code:
        return error.error_code
    match error:
        case TooManyRequests():
            return "TOO_MANY_REQUESTS"
        case TemporarilyUnavailable():
            return "TEMPORARILY_UNAVAILABLE"
        case _:
            return type(error).__name__
