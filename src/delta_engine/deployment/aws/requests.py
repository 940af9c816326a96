"""What became of a request to AWS or to a server that speaks like it.

botocore's exceptions are told apart by their class, the service's error code and the HTTP status, never by
their text, and become the three things that a store may say: not done, refused by its condition, not known.
boto3 must not be imported when this module is.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from delta_engine.deployment.errors import ConflictError, StoreError, UnansweredError, UncertainWriteError


class Intent(Enum):
    """What a request is for."""

    READ = auto()
    WRITE = auto()
    CONDITIONAL_WRITE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a request is about, for messages.

    Args:
        name: such as `the bucket 'states' at http://…`; without credentials.
        when_missing: what to do if it does not exist.
        permissions: what a user of it must be allowed to do.
    """

    name: str
    when_missing: str
    permissions: str


class _Outcome(Enum):
    NOT_DONE = auto()
    CONFLICT = auto()
    UNANSWERED = auto()


@dataclass(frozen=True, slots=True)
class _Failure:
    outcome: _Outcome
    reason: str
    way_out: str


class Requests:
    """Watches the attempts of a client's calls, and raises what they end in as our own errors.

    botocore repeats a call by itself and reports only the last attempt. A write that was refused, or could not
    even be sent, may still have been done by an earlier attempt whose answer was lost: every attempt counts.

    Args:
        client: boto3's client.
    """

    def __init__(self, client: Any) -> None:
        self._unanswered = _Unanswered()
        service = client.meta.service_model.service_id.hyphenize()
        client.meta.events.register(f"response-received.{service}", self._unanswered.note)

    @contextmanager
    def to(self, place: Place, intent: Intent) -> Iterator[None]:
        """Make one call in this context.

        Raises:
            ConflictError: the condition of a conditional write did not hold.
            UncertainWriteError: an attempt to write got no answer.
            StoreError: the call was not done.
        """
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        self._unanswered.any = False
        try:
            yield
        except ClientError as error:
            raise _store_error(_answered(error, place), place, intent, self._unanswered.any) from error
        except (BotoCoreError, ResponseParserError) as error:
            raise _store_error(_not_answered(error), place, intent, self._unanswered.any) from error


class _Unanswered(threading.local):
    """Whether an attempt of this thread's current call may have been done without an answer."""

    any = False

    def note(
        self, *, response_dict: Mapping[str, Any] | None, exception: Exception | None, **_: object
    ) -> None:
        if exception is not None:
            self.any |= _not_answered(exception).outcome is _Outcome.UNANSWERED
        elif response_dict is not None:
            self.any |= _is_server_failure(response_dict["status_code"])


def _store_error(failure: _Failure, place: Place, intent: Intent, any_unanswered: bool) -> StoreError:
    message = f"{place.name}: {failure.reason}. {failure.way_out}".strip()
    if intent is Intent.READ:
        return (UnansweredError if failure.outcome is _Outcome.UNANSWERED else StoreError)(message)
    if failure.outcome is _Outcome.CONFLICT and intent is Intent.CONDITIONAL_WRITE:
        return ConflictError(message)
    if failure.outcome is _Outcome.UNANSWERED or any_unanswered:
        return UncertainWriteError(f"{message} Whether it was written is not known.")
    return StoreError(message)


_REFUSED_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "InvalidToken",
        "MissingAuthenticationTokenException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
        "XAdminUserNotFound",  # versitygw's InvalidAccessKeyId
    }
)
_MISSING = frozenset({"NoSuchBucket", "ResourceNotFoundException"})
# An object that is not there cannot match either: S3 calls that NoSuchKey.
_CONFLICTS = frozenset({"ConditionalCheckFailedException", "NoSuchKey"})
_OTHER_REGION = frozenset({"AuthorizationHeaderMalformed", "PermanentRedirect"})
_NOT_IMPLEMENTED = 501

_CHECK_CREDENTIALS = "`aws sts get-caller-identity` shows which ones are used."
_GIVE_CREDENTIALS = (
    "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role gives them."
)
_CHECK_ENDPOINT = "Check endpoint_url, region and the network."
_TRY_LATER = "Try again later."


def _is_server_failure(status: int) -> bool:
    return status >= 500 and status != _NOT_IMPLEMENTED


def _answered(error: Any, place: Place) -> _Failure:
    """Return what a `ClientError` says."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    told = f"{status} {code}"
    if code in _MISSING:
        return _Failure(_Outcome.NOT_DONE, f"it does not exist ({told})", place.when_missing)
    if code in _REFUSED_CREDENTIALS:
        return _Failure(_Outcome.NOT_DONE, f"the credentials were refused ({told})", _CHECK_CREDENTIALS)
    if status in (401, 403) or code == "AccessDeniedException":
        return _Failure(
            _Outcome.NOT_DONE,
            f"access was denied ({told})",
            f"Needed are {place.permissions}. {_CHECK_CREDENTIALS}",
        )
    if code in _CONFLICTS or status in (409, 412):
        return _Failure(_Outcome.CONFLICT, f"something else is there ({told})", "")
    if code in _OTHER_REGION:
        return _Failure(_Outcome.NOT_DONE, f"it is in another region ({told})", "Correct region.")
    if code == "ValidationException":
        return _Failure(_Outcome.NOT_DONE, f"it has another key ({told})", place.when_missing)
    if status == _NOT_IMPLEMENTED:
        return _Failure(
            _Outcome.NOT_DONE, f"the endpoint lacks what the engine needs ({told})", "Use another one."
        )
    if _is_server_failure(status):
        return _Failure(_Outcome.UNANSWERED, f"it failed, also when asked again ({told})", _TRY_LATER)
    return _Failure(_Outcome.NOT_DONE, f"the request was refused ({told})", _CHECK_ENDPOINT)


def _not_answered(error: Exception) -> _Failure:
    """Return what an exception says that is not an answer of the service."""
    from botocore import exceptions as botocore

    name = type(error).__name__
    match error:
        case (
            botocore.NoCredentialsError()
            | botocore.PartialCredentialsError()
            | botocore.CredentialRetrievalError()
            | botocore.NoAuthTokenError()
            | botocore.TokenRetrievalError()
            | botocore.ProfileNotFound()
            | botocore.SSOError()
        ):
            return _Failure(_Outcome.NOT_DONE, f"there are no credentials ({name})", _GIVE_CREDENTIALS)
        case botocore.NoRegionError():
            return _Failure(_Outcome.NOT_DONE, "no region is known", "Give region, or set AWS_REGION.")
        case (
            botocore.EndpointConnectionError()
            | botocore.ConnectTimeoutError()
            | botocore.ProxyConnectionError()
        ):
            return _Failure(_Outcome.NOT_DONE, f"the endpoint cannot be reached ({name})", _CHECK_ENDPOINT)
        case botocore.ParamValidationError():
            # Its text is about names that the user gave, and it is raised before anything is sent.
            return _Failure(_Outcome.NOT_DONE, f"the request is not valid ({error})", "")
        case botocore.SSLError():
            reason = f"no secure connection ({name})"
            return _Failure(_Outcome.UNANSWERED, reason, "Check endpoint_url and its certificate.")
    return _Failure(
        _Outcome.UNANSWERED, f"there was no usable answer, also when asked again ({name})", _CHECK_ENDPOINT
    )
