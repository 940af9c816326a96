"""The DynamoDB lock's record, against moto."""

from collections.abc import Iterator

import pytest

from delta_engine.deployment.errors import (
    ConflictError,
    CorruptStateError,
    StoreError,
    UnansweredError,
    UncertainWriteError,
)
from delta_engine.deployment.stores.aws import DynamoDBLockRecords, open_client
from tests.cases.store_contract import check_lock_records, lock_record
from tests.servers.fault_proxy import Fault
from tests.servers.places import IMPATIENT, REGION, LockTable, Server, new_lock_table
from tests.servers.processes import free_port

LOCK_ID = "org/project/prod"
PUT = "DynamoDB_20120810.PutItem"


def records_of(table: LockTable) -> DynamoDBLockRecords:
    return DynamoDBLockRecords(table.proxied_client(), table.name, LOCK_ID)


def test_the_lock_records_keep_the_contract(lock_table: LockTable) -> None:
    check_lock_records(lambda: DynamoDBLockRecords(lock_table.client(), lock_table.name, LOCK_ID))


def test_locks_share_a_table(lock_table: LockTable) -> None:
    client = lock_table.client()
    DynamoDBLockRecords(client, lock_table.name, "prod").replace(lock_record(), None)
    assert DynamoDBLockRecords(client, lock_table.name, "test").read() is None


def test_the_item_is_understood_without_the_engine(lock_table: LockTable) -> None:
    records_of(lock_table).replace(lock_record(fence=7, beat=3), None)
    (item,) = lock_table.raw.scan(TableName=lock_table.name)["Items"]
    assert item.pop("Record")["S"].startswith('{"lock_id":"lock-a"')
    assert item == {
        "LockID": {"S": LOCK_ID},
        "AcquiredBy": {"S": "ana"},
        "AcquiredAt": {"S": "2026-03-01T12:30:00+00:00"},
        "Host": {"S": "build-7"},
        "Pid": {"N": "4711"},
        "Operation": {"S": "sync"},
        "RunURL": {"S": "https://example.com/runs/1"},
        "Fence": {"N": "7"},
        "Beat": {"N": "3"},
        "LeaseSeconds": {"N": "30.0"},
        "Released": {"BOOL": False},
    }


@pytest.mark.parametrize(
    "item", [{}, {"Digest": {"S": "x"}}, {"Record": {"S": "{}"}}, {"Record": {"N": "1"}}]
)
def test_an_item_of_something_else_is_refused(lock_table: LockTable, item: dict[str, dict[str, str]]) -> None:
    lock_table.raw.put_item(TableName=lock_table.name, Item={"LockID": {"S": LOCK_ID}, **item})
    with pytest.raises(CorruptStateError, match=LOCK_ID):
        records_of(lock_table).read()
    with pytest.raises(ConflictError):
        records_of(lock_table).replace(lock_record(), None)


def test_a_hidden_retry_conflicts_with_its_own_lock(lock_table: LockTable) -> None:
    records = records_of(lock_table)
    lock_table.proxy.spoil(Fault.LOST_ANSWER, "POST", PUT, times=1)
    with pytest.raises(ConflictError):
        records.replace(lock_record(), None)
    record = records.read()
    assert record is not None
    assert record[0] == lock_record()


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.RESET, Fault.BROKEN, Fault.GIBBERISH])
def test_a_write_without_an_answer_is_not_known(lock_table: LockTable, fault: Fault) -> None:
    records = records_of(lock_table)
    lock_table.proxy.spoil(fault, "POST", PUT)
    with pytest.raises(UncertainWriteError, match=lock_table.name):
        records.replace(lock_record(), None)
    assert (records.read() is not None) == (fault is Fault.LOST_ANSWER)


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.BROKEN, Fault.GIBBERISH, Fault.FORBIDDEN])
def test_what_cannot_be_read_is_an_error_and_not_an_absence(lock_table: LockTable, fault: Fault) -> None:
    lock_table.proxy.spoil(fault, "POST")
    with pytest.raises(StoreError) as caught:
        records_of(lock_table).read()
    assert type(caught.value) is (UnansweredError if fault in (Fault.RESET, Fault.BROKEN) else StoreError)


def test_a_slow_endpoint_is_not_waited_for(lock_table: LockTable) -> None:
    records = DynamoDBLockRecords(lock_table.proxied_client(IMPATIENT), lock_table.name, LOCK_ID)
    lock_table.proxy.spoil(Fault.SLOW, "POST")
    with pytest.raises(UncertainWriteError):
        records.replace(lock_record(), None)


def test_an_endpoint_that_is_down_has_done_nothing() -> None:
    client = open_client("dynamodb", REGION, f"http://127.0.0.1:{free_port()}")
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        DynamoDBLockRecords(client, "locks", LOCK_ID).replace(lock_record(), None)
    assert type(caught.value) is StoreError


def test_a_missing_table_says_how_to_create_it(moto: Server) -> None:
    records = DynamoDBLockRecords(open_client("dynamodb", REGION, moto.endpoint), "nolocks", LOCK_ID, REGION)
    command = (
        "aws dynamodb create-table --table-name nolocks --attribute-definitions AttributeName=LockID,AttributeType=S "
        f"--key-schema AttributeName=LockID,KeyType=HASH --billing-mode PAY_PER_REQUEST --region {REGION}"
    )
    with pytest.raises(StoreError, match=command):
        records.read()
    with pytest.raises(StoreError, match=command) as caught:
        records.replace(lock_record(), None)
    assert type(caught.value) is StoreError


@pytest.fixture
def other_table(moto: Server) -> Iterator[LockTable]:
    """Return a table that was made for something else."""
    with new_lock_table(moto, key="OrderID") as made:
        yield made


def test_a_table_with_another_key_is_refused(other_table: LockTable) -> None:
    records = records_of(other_table)
    with pytest.raises(StoreError, match="another key"):
        records.read()
    with pytest.raises(StoreError, match="another key") as caught:
        records.replace(lock_record(), None)
    assert type(caught.value) is StoreError
