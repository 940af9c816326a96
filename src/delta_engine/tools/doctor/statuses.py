"""What an error means for a check of the doctor."""

from __future__ import annotations

from typing import Final

from delta_engine.backends.databricks_sdk import CallError, CallFailure
from delta_engine.backends.error_conditions import is_forbidden, is_unanswered, is_unauthenticated
from delta_engine.deployment.errors import StoreError, UnansweredError, UncertainWriteError
from delta_engine.errors import MissingDependencyError, RefusedError, SparkStartError, StatementError
from delta_engine.tools.doctor.report import DoctorStatus

_FILE_ERRORS: Final = (
    PermissionError,
    FileNotFoundError,
    FileExistsError,
    NotADirectoryError,
    IsADirectoryError,
)
"""File errors of the operating system; other OSErrors mostly concern the network."""


def status_of(error: BaseException) -> DoctorStatus:
    """Return the status of an error: missing for a refusal, unknown for no usable answer."""
    match error:
        case StatementError():
            is_refused = is_forbidden(error) or is_unauthenticated(error)
            return DoctorStatus.MISSING if is_refused else DoctorStatus.UNKNOWN
        case RefusedError(__cause__=StatementError() as cause) if is_unanswered(cause):
            return DoctorStatus.UNKNOWN
        case RefusedError(__cause__=CallError(failure=failure)) if failure is not CallFailure.REFUSED:
            return DoctorStatus.UNKNOWN
        case UncertainWriteError() | UnansweredError():
            return DoctorStatus.UNKNOWN
        case StoreError(__cause__=StatementError() as cause):
            return status_of(cause)
        case StoreError() | RefusedError() | MissingDependencyError() | SparkStartError():
            return DoctorStatus.MISSING
        case OSError():
            is_about_a_file = isinstance(error, _FILE_ERRORS) or error.filename is not None
            return DoctorStatus.MISSING if is_about_a_file else DoctorStatus.UNKNOWN
    return DoctorStatus.UNKNOWN
