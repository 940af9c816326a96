"""What became of a statement that did not succeed, as data: read off the platform's answer here, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from delta_engine.backends.error_conditions import statement_error
from delta_engine.errors import StatementError

if TYPE_CHECKING:
    from databricks.sdk.service.sql import StatementStatus

TIMED_OUT: Final = "STATEMENT_TIMEOUT"
CANCELED: Final = "STATEMENT_CANCELED"
INCOMPLETE: Final = "INCOMPLETE_RESULT"
TOO_LARGE: Final = "STATEMENT_TOO_LARGE"

_WITHOUT_CONDITION: Final = ("BAD_REQUEST", "RESOURCE_EXHAUSTED")


def failed(status: StatementStatus, sql: str) -> StatementError:
    """Return the error of a statement that the warehouse gave up: its condition, or else the service's error code."""
    error = status.error
    return statement_error(
        (error and error.message) or "the warehouse gave no reason",
        sql=sql,
        sql_state=status.sql_state,
        code=error.error_code.value if error and error.error_code else None,
    )


def may_be_too_large(error: StatementError) -> bool:
    """Whether a result may have been too large to be inline, which has no documented code; the SQL was not refused."""
    return error.error_class in _WITHOUT_CONDITION and error.sql_state is None


def incomplete(reason: str, sql: str) -> StatementError:
    """Return the error of an answer that is not the whole one: half of a catalog would look like drift."""
    message = f"the warehouse's answer is not whole: {reason}"
    return StatementError(message, sql=sql, error_class=INCOMPLETE, is_outcome_unknown=True)
