"""Clients of S3 and DynamoDB, typed: boto3 ends here, its exceptions in `requests`.

boto3 is imported late, in functions. Credentials come from boto3's own chain, and from nowhere else.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from delta_engine.deployment.aws.requests import Intent, Place, Requests
from delta_engine.deployment.errors import StoreError, UncertainWriteError
from delta_engine.errors import MissingDependencyError


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """How long a client tries.

    Args:
        attempts: how often a call is sent, the first time included; the pauses between are jittered.
        connect_timeout_seconds: for a connection, each time.
        read_timeout_seconds: for the next bytes of an answer, each time.
    """

    attempts: int = 4
    connect_timeout_seconds: float = 5.0
    read_timeout_seconds: float = 30.0


_USUAL_LIMITS = ClientLimits()

_NOT_S3 = "what answered is not S3: it gave no ETag. Check endpoint_url."
_NOT_DYNAMODB = "what answered is not DynamoDB. Check endpoint_url."
_NOT_KNOWN = "Whether it was written is not known."


@dataclass(frozen=True, slots=True)
class S3Object:
    """An object's bytes, and the ETag to replace it with."""

    data: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object as a listing has it; the time is UTC."""

    key: str
    size: int
    modified_at: datetime


class S3Client:
    """The few calls of S3 that are needed. Threads may share a client.

    Args:
        client: boto3's client.
        endpoint: where it sends to.
        limits: how long it tries.

    All methods raise as `Requests.to` says.
    """

    def __init__(self, client: Any, endpoint: str, limits: ClientLimits) -> None:
        self._client = client
        self._requests = Requests(client)
        self._limits = limits
        self.endpoint = endpoint

    def get(self, bucket: str, key: str) -> S3Object | None:
        """Return an object; None if there is none of that key."""
        with self._requests.to(self._place(bucket), Intent.READ):
            try:
                return self._get_whole(bucket, key)
            except self._client.exceptions.NoSuchKey:
                return None

    def put(self, bucket: str, key: str, data: bytes, *, content_type: str) -> None:
        """Write an object, whatever is there."""
        place = self._place(bucket)
        with self._requests.to(place, Intent.WRITE):
            answer = self._client.put_object(Bucket=bucket, Key=key, Body=data, ContentType=content_type)
        _written_etag(answer, place)

    def replace(
        self,
        bucket: str,
        key: str,
        data: bytes,
        *,
        expected: str | None,
        content_type: str,
        metadata: Mapping[str, str],
    ) -> str:
        """Write an object if its ETag is still the expected one (None: if there is no object).

        Returns:
            Its new ETag.
        """
        condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
        place = self._place(bucket)
        with self._requests.to(place, Intent.CONDITIONAL_WRITE):
            answer = self._client.put_object(
                Bucket=bucket,
                Key=key,
                Body=data,
                ContentType=content_type,
                Metadata=dict(metadata),
                **condition,
            )
        return _written_etag(answer, place)

    def list_objects(self, bucket: str, prefix: str) -> Sequence[ListedObject]:
        """Return the objects whose keys start with a prefix, from as many pages as there are."""
        with self._requests.to(self._place(bucket), Intent.READ):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            return [
                ListedObject(entry["Key"], entry["Size"], entry["LastModified"])
                for page in pages
                for entry in page.get("Contents", ())
            ]

    def delete(self, bucket: str, key: str) -> None:
        """Delete an object; no error if there is none."""
        with self._requests.to(self._place(bucket), Intent.WRITE):
            try:
                self._client.delete_object(Bucket=bucket, Key=key)
            except self._client.exceptions.NoSuchKey:
                return

    def _get_whole(self, bucket: str, key: str) -> S3Object:
        """Read to the end. botocore repeats what fails before the body, this what fails within it."""
        from botocore.exceptions import HTTPClientError, IncompleteReadError

        for attempt in range(1, self._limits.attempts + 1):
            answer = self._client.get_object(Bucket=bucket, Key=key)
            etag = answer.get("ETag")
            if not etag:
                raise StoreError(f"{self._place(bucket).name}: {_NOT_S3}")
            try:
                return S3Object(answer["Body"].read(), str(etag))
            except (HTTPClientError, IncompleteReadError):
                if attempt == self._limits.attempts:
                    raise
                time.sleep(random.uniform(0, 0.05 * 2**attempt))
        raise AssertionError("the loop returns or raises")

    def _place(self, bucket: str) -> Place:
        return Place(
            name=f"the bucket {bucket!r} at {self.endpoint}",
            when_missing="Create it, or correct bucket, region and endpoint_url.",
            permissions="s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject and s3:DeleteObject "
            "on its objects",
        )


class DynamoDBClient:
    """The few calls of DynamoDB that are needed. Threads may share a client.

    Args:
        client: boto3's client.
        endpoint: where it sends to.
        region: the region that was asked for, for messages.

    All methods raise as `Requests.to` says.
    """

    def __init__(self, client: Any, endpoint: str, region: str | None) -> None:
        self._client = client
        self._requests = Requests(client)
        self._region = region
        self.endpoint = endpoint

    def get(self, table: str, key: Mapping[str, str]) -> Mapping[str, Mapping[str, object]] | None:
        """Return an item's attributes as DynamoDB spells them, read consistently; None if there is none."""
        place = self._place(table, next(iter(key)))
        with self._requests.to(place, Intent.READ):
            answer = self._client.get_item(TableName=table, Key=_attributes(key), ConsistentRead=True)
        if not _is_dynamodb(answer):
            raise StoreError(f"{place.name}: {_NOT_DYNAMODB}")
        item: Mapping[str, Mapping[str, object]] | None = answer.get("Item")
        return item

    def replace(
        self,
        table: str,
        item: Mapping[str, str | int | float | bool],
        *,
        key: str,
        expected: Mapping[str, str] | None,
    ) -> None:
        """Write an item if the attributes that are there are the expected ones (None: if there is no item).

        Args:
            table: its name.
            item: the item, whole.
            key: the name of its key attribute.
            expected: attributes and their values.
        """
        place = self._place(table, key)
        with self._requests.to(place, Intent.CONDITIONAL_WRITE):
            answer = self._client.put_item(
                TableName=table, Item=_attributes(item), **_condition(key, expected)
            )
        if not _is_dynamodb(answer):
            raise UncertainWriteError(f"{place.name}: {_NOT_DYNAMODB} {_NOT_KNOWN}")

    def _place(self, table: str, key: str) -> Place:
        region = f" --region {self._region}" if self._region else ""
        return Place(
            name=f"the DynamoDB table {table!r} at {self.endpoint}",
            when_missing=(
                f"Create it: aws dynamodb create-table --table-name {table} "
                f"--attribute-definitions AttributeName={key},AttributeType=S "
                f"--key-schema AttributeName={key},KeyType=HASH --billing-mode PAY_PER_REQUEST{region}"
            ),
            permissions="dynamodb:GetItem and dynamodb:PutItem on the table",
        )


def open_s3_client(
    region: str | None, endpoint_url: str | None, *, limits: ClientLimits = _USUAL_LIMITS
) -> S3Client:
    """Return a client of S3. Nothing is sent yet.

    Args:
        region: the bucket's; None for what boto3's configuration says.
        endpoint_url: of another server than AWS's.
        limits: how long it tries.

    Raises:
        MissingDependencyError: boto3 is not installed.
        StoreError: region, endpoint or profile are not usable.
    """
    # Servers that are not AWS's have no host name per bucket.
    client = _open(
        "s3", region, endpoint_url, limits, s3={"addressing_style": "path"} if endpoint_url else {}
    )
    return S3Client(client, client.meta.endpoint_url, limits)


def open_dynamodb_client(
    region: str | None, endpoint_url: str | None, *, limits: ClientLimits = _USUAL_LIMITS
) -> DynamoDBClient:
    """Return a client of DynamoDB; arguments and errors as `open_s3_client`."""
    client = _open("dynamodb", region, endpoint_url, limits)
    return DynamoDBClient(client, client.meta.endpoint_url, region)


def _open(
    service: str, region: str | None, endpoint_url: str | None, limits: ClientLimits, **settings: object
) -> Any:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError:
        raise MissingDependencyError(
            "this state_backend needs boto3: pip install 'delta-engine[s3]'"
        ) from None
    config = Config(
        retries={"mode": "standard", "total_max_attempts": limits.attempts},
        connect_timeout=limits.connect_timeout_seconds,
        read_timeout=limits.read_timeout_seconds,
        # Servers that are not AWS's often know none of the newer checksums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        **settings,
    )
    try:
        if urlsplit(endpoint_url or "").username:
            raise StoreError("endpoint_url holds credentials. Leave them to AWS_PROFILE or the environment.")
        # A session of its own: boto3's shared one is not for several threads.
        session = boto3.session.Session()
        return session.client(service, region_name=region, endpoint_url=endpoint_url, config=config)
    except (BotoCoreError, ValueError) as error:
        raise StoreError(
            f"{service} cannot be used: {error}. Check region, endpoint_url and AWS_PROFILE."
        ) from error


def _written_etag(answer: Mapping[str, Any], place: Place) -> str:
    """Return the ETag of what was written. boto3 takes any page with status 200 for a yes."""
    etag = answer.get("ETag")
    if not etag:
        raise UncertainWriteError(f"{place.name}: {_NOT_S3} {_NOT_KNOWN}")
    return str(etag)


def _is_dynamodb(answer: Mapping[str, Any]) -> bool:
    """Whether it was DynamoDB that answered. boto3 takes any page with status 200 for an empty answer."""
    content_type = str(answer["ResponseMetadata"]["HTTPHeaders"].get("content-type", ""))
    return content_type.startswith("application/x-amz-json")


def _attributes(values: Mapping[str, str | int | float | bool]) -> dict[str, dict[str, str | bool]]:
    return {name: _attribute(value) for name, value in values.items()}


def _attribute(value: str | int | float | bool) -> dict[str, str | bool]:
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case _:
            return {"N": str(value)}


def _condition(key: str, expected: Mapping[str, str] | None) -> dict[str, object]:
    if expected is None:
        return {
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": key},
        }
    names: Sequence[str] = tuple(expected)
    return {
        "ConditionExpression": " AND ".join(f"#a{n} = :a{n}" for n in range(len(names))),
        "ExpressionAttributeNames": {f"#a{n}": name for n, name in enumerate(names)},
        "ExpressionAttributeValues": {f":a{n}": {"S": expected[name]} for n, name in enumerate(names)},
    }
