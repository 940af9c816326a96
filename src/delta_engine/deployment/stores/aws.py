"""Clients of S3 and DynamoDB or compatible servers, which classify the outcome of each request; locks in DynamoDB.

boto3 retries a call by itself and raises its own exceptions. This module classifies them by class, error code and
HTTP status, never by text: not done, refused by a condition, or unknown. Functions import boto3 late. Credentials
come from boto3's own chain alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from delta_engine.deployment.errors import ConflictError, StoreError, UnansweredError, UncertainWriteError
from delta_engine.deployment.locks.records import decode_lock_record, encode_lock_record
from delta_engine.deployment.stored import LockRecord
from delta_engine.errors import MissingDependencyError


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """Retries and timeouts: `attempts` counts the first; timeouts are per attempt, reads wait for the next bytes."""

    attempts: int = 4
    connect_timeout_seconds: float = 5.0
    read_timeout_seconds: float = 30.0


DOCUMENT_LIMITS: Final = ClientLimits()


class RequestKind(Enum):
    """The kind of a request."""

    READ = auto()
    WRITE = auto()
    CONDITIONAL_WRITE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlace:
    """The bucket or table of a request, for messages.

    Args:
        name: such as `the bucket 'states' at http://…`; without credentials.
        when_missing: the user's remedy if it does not exist.
    """

    name: str
    when_missing: str
    permissions: str

    def not_answered_by(self, service: str) -> str:
        """Return a message: another server answered. boto3 accepts any page with status 200."""
        return f"{self.name}: the answer is not from {service}. Check endpoint_url."


class AwsClient:
    """A boto3 client that raises our errors. Threads may share it. Call `raw` only inside `request`.

    A write that was refused or not sent may still have been done by an earlier attempt whose answer was lost. botocore
    reports the last attempt alone, so this class watches every attempt.
    """

    def __init__(self, raw: Any, limits: ClientLimits) -> None:
        self.raw = raw
        self.limits = limits
        self.endpoint: str = raw.meta.endpoint_url
        self._unanswered = _Unanswered()
        service = raw.meta.service_model.service_id.hyphenize()
        raw.meta.events.register(f"response-received.{service}", self._unanswered.note)

    @contextmanager
    def request(self, place: StorePlace, kind: RequestKind) -> Iterator[None]:
        """Make one call in this context.

        Raises:
            ConflictError: the condition of a conditional write did not hold.
            UncertainWriteError: an attempt to write got no answer.
            UnansweredError: a read got no usable answer.
            StoreError: the call was not done.
        """
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        self._unanswered.any = False
        try:
            yield
        except ClientError as error:
            raise _store_error(_answered(error, place), place, kind, self._unanswered.any) from error
        except (BotoCoreError, ResponseParserError) as error:
            raise _store_error(_not_answered(error), place, kind, self._unanswered.any) from error


def open_client(
    service: Literal["s3", "dynamodb"],
    region: str | None,
    endpoint_url: str | None,
    limits: ClientLimits = DOCUMENT_LIMITS,
) -> AwsClient:
    """Return a client without sending anything; boto3's configuration supplies a missing region.

    Raises:
        MissingDependencyError: boto3 is not installed.
        StoreError: region, endpoint or profile are not usable.
    """
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError:
        raise MissingDependencyError.of_extra("this state_backend needs boto3", "s3") from None
    config = Config(
        retries={"mode": "standard", "total_max_attempts": limits.attempts},
        connect_timeout=limits.connect_timeout_seconds,
        read_timeout=limits.read_timeout_seconds,
        # Servers other than AWS's often support neither the newer checksums nor a host name per bucket.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path"} if endpoint_url else {},
    )
    try:
        if urlsplit(endpoint_url or "").username:
            raise StoreError("endpoint_url holds credentials. Leave them to AWS_PROFILE or the environment.")
        # boto3's shared session is not thread-safe.
        session = boto3.session.Session()
        raw = session.client(service, region_name=region, endpoint_url=endpoint_url, config=config)
    except (BotoCoreError, ValueError) as error:
        raise StoreError(
            f"{service} cannot be used: {error}. Check region, endpoint_url and AWS_PROFILE."
        ) from error
    return AwsClient(raw, limits)


class _Unanswered(threading.local):
    """Whether an attempt of this thread's current call may have succeeded without an answer."""

    any = False

    def note(
        self, *, response_dict: Mapping[str, Any] | None, exception: Exception | None, **_: object
    ) -> None:
        if exception is not None:
            self.any |= _not_answered(exception).outcome is _Outcome.UNANSWERED
        elif response_dict is not None:
            self.any |= _is_server_failure(response_dict["status_code"])


class _Outcome(Enum):
    NOT_DONE = auto()
    CONFLICT = auto()
    UNANSWERED = auto()


@dataclass(frozen=True, slots=True)
class _Failure:
    outcome: _Outcome
    reason: str
    way_out: str = ""


def _store_error(failure: _Failure, place: StorePlace, kind: RequestKind, any_unanswered: bool) -> StoreError:
    message = f"{place.name}: {failure.reason}. {failure.way_out}".strip()
    if kind is RequestKind.READ:
        return (UnansweredError if failure.outcome is _Outcome.UNANSWERED else StoreError)(message)
    if failure.outcome is _Outcome.CONFLICT and kind is RequestKind.CONDITIONAL_WRITE:
        return ConflictError(message)
    if failure.outcome is _Outcome.UNANSWERED or any_unanswered:
        return UncertainWriteError(f"{message} {UNKNOWN_WRITE}")
    return StoreError(message)


UNKNOWN_WRITE: Final = "Whether it was written is not known."

_REFUSED_CREDENTIALS: Final = frozenset(
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
_MISSING: Final = frozenset({"NoSuchBucket", "ResourceNotFoundException"})
# S3 answers NoSuchKey to a conditional write to a missing object.
_CONFLICTS: Final = frozenset({"ConditionalCheckFailedException", "NoSuchKey"})
_OTHER_REGION: Final = frozenset({"AuthorizationHeaderMalformed", "PermanentRedirect"})
_NOT_IMPLEMENTED: Final = 501

_CHECK_CREDENTIALS: Final = "`aws sts get-caller-identity` shows which ones are used."
_GIVE_CREDENTIALS: Final = (
    "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role gives them."
)
_CHECK_ENDPOINT: Final = "Check endpoint_url, region and the network."


def _is_server_failure(status: int) -> bool:
    return status >= 500 and status != _NOT_IMPLEMENTED


def _answered(error: Any, place: StorePlace) -> _Failure:
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    outcome, reason, way_out = _Outcome.NOT_DONE, "the request was refused", _CHECK_ENDPOINT
    if code in _MISSING:
        reason, way_out = "it does not exist", place.when_missing
    elif code in _REFUSED_CREDENTIALS:
        reason, way_out = "the credentials were refused", _CHECK_CREDENTIALS
    elif status in (401, 403) or code == "AccessDeniedException":
        reason, way_out = "access was denied", f"Needed are {place.permissions}. {_CHECK_CREDENTIALS}"
    elif code in _CONFLICTS or status in (409, 412):
        outcome, reason, way_out = _Outcome.CONFLICT, "something else is there", ""
    elif code in _OTHER_REGION:
        reason, way_out = "it is in another region", "Correct region."
    elif code == "ValidationException":
        reason, way_out = "it has another key", place.when_missing
    elif status == _NOT_IMPLEMENTED:
        reason, way_out = "the endpoint lacks what the engine needs", "Use another one."
    elif _is_server_failure(status):
        outcome, reason, way_out = _Outcome.UNANSWERED, "it failed, also after retries", "Try again later."
    return _Failure(outcome, f"{reason} ({status} {code})", way_out)


def _not_answered(error: Exception) -> _Failure:
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
            # Raised before the request is sent; its text is about names from the configuration.
            return _Failure(_Outcome.NOT_DONE, f"the request is not valid ({error})")
        case botocore.SSLError():
            reason = f"no secure connection ({name})"
            return _Failure(_Outcome.UNANSWERED, reason, "Check endpoint_url and its certificate.")
    return _Failure(
        _Outcome.UNANSWERED, f"there was no usable answer, also after retries ({name})", _CHECK_ENDPOINT
    )


_KEY: Final = "LockID"
_RECORD: Final = "Record"


class DynamoDBLockRecords:
    """Keeps the record of one lock; the table's key is the string LockID, with one `lock_id` per environment.

    The other attributes are for users who browse the table; the engine reads `Record`. There is no time to live:
    DynamoDB removes expired items days late, with their fence.
    """

    def __init__(self, client: AwsClient, table: str, lock_id: str, region: str | None = None) -> None:
        self._client = client
        self._table = table
        self._lock_id = lock_id
        in_region = f" --region {region}" if region else ""
        self._place = StorePlace(
            name=f"the DynamoDB table {table!r} at {client.endpoint}",
            when_missing=(
                f"Create it: aws dynamodb create-table --table-name {table} "
                f"--attribute-definitions AttributeName={_KEY},AttributeType=S "
                f"--key-schema AttributeName={_KEY},KeyType=HASH --billing-mode PAY_PER_REQUEST{in_region}"
            ),
            permissions="dynamodb:GetItem and dynamodb:PutItem on the table",
        )

    @property
    def location(self) -> str:
        """The record's place."""
        return f"the item {self._lock_id!r} of {self._place.name}"

    def read(self) -> tuple[LockRecord, str] | None:
        """Return the record, read consistently, and its JSON as the token."""
        with self._client.request(self._place, RequestKind.READ):
            answer = self._client.raw.get_item(
                TableName=self._table, Key={_KEY: {"S": self._lock_id}}, ConsistentRead=True
            )
        if not _is_from_dynamodb(answer):
            raise StoreError(self._place.not_answered_by("DynamoDB"))
        if "Item" not in answer:
            return None
        text = str(answer["Item"].get(_RECORD, {}).get("S", ""))
        return decode_lock_record(text.encode(), where=self.location, token=text), text

    def replace(self, record: LockRecord, expected: str | None) -> str:
        """Write a record if the stored JSON is exactly the expected one; return the new JSON."""
        token = encode_lock_record(record).decode()
        with self._client.request(self._place, RequestKind.CONDITIONAL_WRITE):
            answer = self._client.raw.put_item(
                TableName=self._table, Item=self._item(record, token), **_condition(expected)
            )
        if not _is_from_dynamodb(answer):
            raise UncertainWriteError(f"{self._place.not_answered_by('DynamoDB')} {UNKNOWN_WRITE}")
        return token

    def _item(self, record: LockRecord, token: str) -> Mapping[str, Mapping[str, str | bool]]:
        holder = record.holder
        texts = {
            _KEY: self._lock_id,
            "AcquiredBy": holder.who,
            "AcquiredAt": holder.since.isoformat(timespec="seconds"),
            "Host": holder.host,
            "Operation": holder.operation,
            "RunURL": holder.run_url,
            _RECORD: token,
        }
        numbers = {
            "Pid": holder.pid,
            "Fence": record.fence,
            "Beat": record.beat,
            "LeaseSeconds": record.lease_seconds,
        }
        return {
            **{name: {"S": text} for name, text in texts.items()},
            **{name: {"N": str(number)} for name, number in numbers.items()},
            "Released": {"BOOL": record.released},
        }


def _condition(expected: str | None) -> Mapping[str, object]:
    if expected is None:
        return {
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": _KEY},
        }
    return {
        "ConditionExpression": "#record = :record",
        "ExpressionAttributeNames": {"#record": _RECORD},
        "ExpressionAttributeValues": {":record": {"S": expected}},
    }


def _is_from_dynamodb(answer: Mapping[str, Any]) -> bool:
    """Return whether DynamoDB answered; boto3 accepts any page with status 200 as an empty answer."""
    content_type = str(answer["ResponseMetadata"]["HTTPHeaders"].get("content-type", ""))
    return content_type.startswith("application/x-amz-json")
