"""Makes checks of errors, so that a probe that fails never stops the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from delta_engine.backends.error_conditions import is_forbidden
from delta_engine.deployment.errors import StoreError, UnansweredError, UncertainWriteError
from delta_engine.errors import (
    DeltaEngineError,
    MissingDependencyError,
    RefusalGroup,
    RefusedError,
    SparkStartError,
    StatementError,
)
from delta_engine.report.doctor_report import Check, Status, Topic

_OF_FILES: Final = (
    PermissionError,
    FileNotFoundError,
    FileExistsError,
    NotADirectoryError,
    IsADirectoryError,
)
"""Errors of the operating system about files; the others are mostly about the network."""


def checked(
    topic: Topic, subject: str, probe: Callable[[], Iterable[Check]], way_out: str = ""
) -> tuple[Check, ...]:
    """Run a probe; what it raises is its last check.

    Args:
        topic: what the probe is about.
        subject: the object that it looks at.
        probe: returns checks.
        way_out: what mends it if a right is missing.
    """
    found: list[Check] = []
    try:
        found.extend(probe())
    except (DeltaEngineError, OSError) as error:
        found.extend(failed(topic, subject, error, way_out))
    return tuple(found)


def failed(
    topic: Topic, subject: str, error: DeltaEngineError | OSError, way_out: str = ""
) -> tuple[Check, ...]:
    """Return an error as checks: one each for several refusals."""
    if isinstance(error, RefusalGroup):
        return tuple(
            check for refusal in error.refusals for check in failed(topic, subject, refusal, way_out)
        )
    ways_out = " ".join(filter(None, (error.way_out if isinstance(error, RefusedError) else "", way_out)))
    return (
        Check(topic=topic, subject=subject, status=status_of(error), found=_told(error), way_out=ways_out),
    )


def status_of(error: BaseException) -> Status:
    """Return what an error says of a point: a refusal that it is missing, no usable answer nothing."""
    match error:
        case StatementError():
            return Status.MISSING if is_forbidden(error) else Status.UNKNOWN
        case UncertainWriteError() | UnansweredError():
            return Status.UNKNOWN
        case StoreError():
            cause = error.__cause__
            return status_of(cause) if isinstance(cause, StatementError) else Status.MISSING
        case RefusedError() | MissingDependencyError() | SparkStartError():
            return Status.MISSING
        case OSError():
            is_about_a_file = isinstance(error, _OF_FILES) or error.filename is not None
            return Status.MISSING if is_about_a_file else Status.UNKNOWN
    return Status.UNKNOWN


def _told(error: DeltaEngineError | OSError) -> str:
    match error:
        case StatementError():
            return error.first_line
        case RefusedError(way_out=way_out):
            return str(error).removesuffix(way_out).strip()
    return str(error)
