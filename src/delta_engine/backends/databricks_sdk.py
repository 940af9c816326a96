"""Single calls of databricks-sdk, with growing waits between safe retries.

The SDK retries every call after a lost answer, submissions included, so a statement could run twice. Its client
therefore opens without retries (`SINGLE_ATTEMPT_SECONDS`), and this module decides what to repeat.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

from delta_engine.backends.cancellation import current_stop, pause
from delta_engine.backends.error_conditions import UNAUTHENTICATED
from delta_engine.errors import DeltaEngineError

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.service.sql import ExternalLink

Answer = TypeVar("Answer")

SINGLE_ATTEMPT_SECONDS: Final = 1
"""The SDK waits at least a second before a retry, and then its time is over."""

_PATIENCE_SECONDS: Final = 300.0
_FIRST_PATIENCE_SECONDS: Final = 15.0
"""A host that has never answered is more likely a wrong address than a temporary failure."""

_FIRST_WAIT_SECONDS: Final = 0.5
_LONGEST_WAIT_SECONDS: Final = 10.0


_ANSWER_SECONDS: Final = 60
_CONNECTIONS: Final = 64
"""The largest `apply.parallelism`; the SDK's default of 20 would make threads wait."""

_DOWNLOAD_SECONDS: Final = 120
_SDK_LOGGER: Final = logging.getLogger("databricks.sdk")
_METADATA_REQUEST: Final = "_resolve_host_metadata"
"""The SDK's function that requests the metadata of a host, and warns if there is none (databricks-sdk 0.156)."""

_SERVER_ERROR: Final = 500
_BUSY: Final = (408, 429)


def open_workspace(profile: str | None, *, retry_seconds: int) -> WorkspaceClient:
    """Return a client of a profile's workspace; ImportError without databricks-sdk, ValueError without a login.

    Newer SDKs first request the host's metadata, with a separate short timeout, so an unreachable host fails at
    once.
    """
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.config import Config

    with _metadata_warnings_held():
        config = Config(
            profile=profile or None,
            retry_timeout_seconds=1,
            http_timeout_seconds=_ANSWER_SECONDS,
            max_connection_pools=_CONNECTIONS,
        )
    config.retry_timeout_seconds = retry_seconds
    return WorkspaceClient(config=config)


@contextmanager
def _metadata_warnings_held() -> Iterator[None]:
    """Hold the SDK's warning that a host publishes no metadata; show it only if the login fails.

    An environment opens several clients, and the SDK warns for each. With a login, the metadata adds nothing.
    """
    held: list[str] = []

    def is_shown(record: logging.LogRecord) -> bool:
        if record.funcName != _METADATA_REQUEST or record.levelno < logging.WARNING:
            return True
        held.append(record.getMessage())
        return False

    _SDK_LOGGER.addFilter(is_shown)
    try:
        yield
    except ValueError:
        for message in held:
            _show_once(message)
        raise
    finally:
        _SDK_LOGGER.removeFilter(is_shown)


@cache
def _show_once(message: str) -> None:
    _SDK_LOGGER.warning(message)


class CallFailure(Enum):
    """The effect of a failed call on the request."""

    THROTTLED = auto()
    """It was not done: too many requests (429)."""

    UNAVAILABLE = auto()
    """The service is unavailable (503); behind a proxy, the request may have been done."""

    UNREACHED = auto()
    """It was not done: there was no connection."""

    UNKNOWN = auto()
    """It may have been done: the answer was lost or is unreadable."""

    REFUSED = auto()
    """It was not done, and a retry would not help."""


_ALWAYS_AGAIN: Final = frozenset({CallFailure.THROTTLED, CallFailure.UNREACHED})
_AGAIN_IF_REPEATABLE: Final = frozenset({CallFailure.UNAVAILABLE, CallFailure.UNKNOWN})
_ANSWERS: Final = frozenset({CallFailure.THROTTLED, CallFailure.UNAVAILABLE})
"""Failures that prove that the service exists."""


class CallError(DeltaEngineError):
    """A call failed, after safe retries; `code` is the error code of a service that understood the call."""

    topic = "unreachable-workspace"

    def __init__(self, message: str, *, failure: CallFailure, code: str | None = None) -> None:
        self.failure = failure
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Makes calls, and repeats them for a limited time."""

    pause: Callable[[float], None] = pause
    clock: Callable[[], float] = time.monotonic

    def make(
        self,
        call: Callable[[], Answer],
        *,
        is_repeatable: bool,
        has_answered_before: bool = True,
        last_patience_seconds: float = 0,
    ) -> Answer:
        """Return the answer of a call; CallError if there is none, or if it is a refusal.

        Args:
            is_repeatable: whether it is harmless to make the call twice.
            has_answered_before: whether the service is known to exist.
            last_patience_seconds: how long to try, in all, once the current stop is requested.
        """
        stop = current_stop()
        again = _ALWAYS_AGAIN | _AGAIN_IF_REPEATABLE if is_repeatable else _ALWAYS_AGAIN
        start = self.clock()
        for wait in growing_waits(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS):
            try:
                return _attempt(call)
            except CallError as error:
                is_there = has_answered_before or error.failure in _ANSWERS
                patience = _PATIENCE_SECONDS if is_there else _FIRST_PATIENCE_SECONDS
                if error.failure not in again or self.clock() + wait > start + patience:
                    raise
                if not stop.is_requested():
                    self.pause(wait)
                if stop.is_requested():
                    if self.clock() + wait > start + last_patience_seconds:
                        raise
                    self.pause(wait)
        raise AssertionError("waits never end")

    def download(self, link: ExternalLink) -> bytes:
        """Return a chunk of a result from cloud storage."""
        return self.make(lambda: _download(link), is_repeatable=True)


def growing_waits(first: float, longest: float) -> Iterator[float]:
    """Yield seconds to wait, without end, each 1.5 times the one before, up to a limit."""
    wait = first
    while True:
        yield wait
        wait = min(wait * 1.5, longest)


def _attempt(call: Callable[[], Answer]) -> Answer:
    from databricks.sdk.errors.base import DatabricksError
    from requests.exceptions import RequestException

    try:
        return call()
    except TimeoutError as error:  # the SDK had no time left for a retry, or for the first attempt
        if error.__cause__ is None:
            raise CallError(str(error), failure=CallFailure.UNREACHED) from error
        raise _call_error(error.__cause__) from error
    except (DatabricksError, RequestException, ValueError) as error:  # ValueError: login expired, or no JSON
        raise _call_error(error) from error
    except (
        AttributeError,
        TypeError,
        OverflowError,
    ) as error:  # what the SDK raises for JSON of another shape
        raise CallError(f"the answer cannot be understood: {error}", failure=CallFailure.UNKNOWN) from error


def _call_error(error: BaseException) -> CallError:
    from databricks.sdk import errors as sdk
    from databricks.sdk.errors.base import DatabricksError

    code: str | None = None
    match error:
        case sdk.TooManyRequests():
            failure, code = CallFailure.THROTTLED, "TOO_MANY_REQUESTS"
        case sdk.TemporarilyUnavailable():
            failure, code = CallFailure.UNAVAILABLE, "TEMPORARILY_UNAVAILABLE"
        case sdk.Unauthenticated():
            failure, code = CallFailure.REFUSED, UNAUTHENTICATED
        case sdk.InternalError() | sdk.DeadlineExceeded() | sdk.OperationTimeout():
            failure = CallFailure.UNKNOWN
        case DatabricksError() if (
            type(error) is DatabricksError
        ):  # such as a gateway's 502, which has no SDK class
            failure = CallFailure.UNKNOWN
        case DatabricksError():
            failure, code = CallFailure.REFUSED, error.error_code
        case _:
            failure = CallFailure.UNREACHED if _was_never_sent(error) else CallFailure.UNKNOWN
    return CallError(str(error) or type(error).__name__, failure=failure, code=code)


def _was_never_sent(error: BaseException) -> bool:
    from requests.exceptions import ConnectTimeout
    from urllib3.exceptions import NewConnectionError

    reasons = (getattr(reason, "reason", None) for reason in error.args)
    return isinstance(error, ConnectTimeout) or any(
        isinstance(reason, NewConnectionError) for reason in reasons
    )


def _download(link: ExternalLink) -> bytes:
    """Return a chunk from cloud storage, without the login; the link is itself a secret that grants access."""
    import requests

    try:
        answer = requests.get(
            str(link.external_link), headers=link.http_headers or {}, timeout=_DOWNLOAD_SECONDS
        )
    except requests.RequestException as error:  # its message contains the link
        raise CallError(f"no chunk: {type(error).__name__}", failure=CallFailure.UNKNOWN) from None
    if not answer.ok:
        may_pass = answer.status_code >= _SERVER_ERROR or answer.status_code in _BUSY
        failure = CallFailure.UNKNOWN if may_pass else CallFailure.REFUSED
        raise CallError(f"no chunk: status {answer.status_code}", failure=failure)
    return answer.content
