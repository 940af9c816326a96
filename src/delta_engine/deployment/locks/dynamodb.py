"""A lock record as an item of a DynamoDB table, overwritten and never deleted.

The attributes are for users who browse the table; the engine reads `Record`. There is no time to live: DynamoDB
removes expired items days late, with their fence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from delta_engine.deployment.errors import StoreError, UncertainWriteError
from delta_engine.deployment.lock_record import LockRecord, decode_lock_record, encode_lock_record
from delta_engine.deployment.stores.aws import UNKNOWN_WRITE, AwsClient, Intent, Place

_KEY: Final = "LockID"
_RECORD: Final = "Record"


class DynamoDBLockRecords:
    """Keeps the record of one lock; the table's key is the string LockID, with one `lock_id` per environment."""

    def __init__(self, client: AwsClient, table: str, lock_id: str, region: str | None = None) -> None:
        self._client = client
        self._table = table
        self._lock_id = lock_id
        in_region = f" --region {region}" if region else ""
        self._place = Place(
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
        with self._client.request(self._place, Intent.READ):
            answer = self._client.raw.get_item(
                TableName=self._table, Key={_KEY: {"S": self._lock_id}}, ConsistentRead=True
            )
        if not _is_from_dynamodb(answer):
            raise StoreError(self._place.not_answered_by("DynamoDB"))
        if "Item" not in answer:
            return None
        found = str(answer["Item"].get(_RECORD, {}).get("S", ""))
        return decode_lock_record(found.encode(), where=self.location, token=found), found

    def replace(self, record: LockRecord, expected: str | None) -> str:
        """Write a record if the stored JSON is exactly the expected one; return the new JSON."""
        token = encode_lock_record(record).decode()
        with self._client.request(self._place, Intent.CONDITIONAL_WRITE):
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
