"""Servers, buckets and tables, as tests use them."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import boto3
from botocore.config import Config

from delta_engine.deployment.stores.aws import AwsClient, ClientLimits, open_client
from delta_engine.deployment.stores.s3 import MARKER_NAME, PROBE_VERSION, S3Folder
from tests.servers.fault_proxy import FaultProxy, fault_proxy

REGION = "us-east-1"
ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key"
PREFIX = "org/project"
PATIENT = ClientLimits(attempts=3)
IMPATIENT = ClientLimits(attempts=2, connect_timeout_seconds=1.0, read_timeout_seconds=0.2)


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, with a client of boto3's own, the product's, and a proxy before it."""

    server: Server
    name: str
    raw: Any
    proxy: FaultProxy
    client: AwsClient

    def folder(self) -> S3Folder:
        """Return a new folder; it knows nothing yet of its endpoint. boto3 is slow to make a client for each."""
        return S3Folder(self.client, self.name, PREFIX)

    def proxied_folder(self, limits: ClientLimits = PATIENT) -> S3Folder:
        return S3Folder(open_client("s3", REGION, self.proxy.endpoint, limits), self.name, PREFIX)

    def prove(self, endpoint: str) -> None:
        """Let an endpoint pass for probed: the probe itself takes a hundred requests."""
        marker = json.dumps({"endpoint": endpoint, "probe": PROBE_VERSION}).encode()
        self.raw.put_object(Bucket=self.name, Key=f"{PREFIX}/{MARKER_NAME}", Body=marker)

    def keys(self) -> list[str]:
        return [entry["Key"] for entry in self.raw.list_objects_v2(Bucket=self.name).get("Contents", ())]


@dataclass(frozen=True, slots=True)
class LockTable:
    """A DynamoDB table, with a client of boto3's own and a proxy before it."""

    server: Server
    name: str
    raw: Any
    proxy: FaultProxy

    def client(self) -> AwsClient:
        return _dynamodb_client(self.server.endpoint)

    def proxied_client(self, limits: ClientLimits = PATIENT) -> AwsClient:
        return open_client("dynamodb", REGION, self.proxy.endpoint, limits)


@contextmanager
def new_bucket(server: Server, *, is_versioned: bool = False) -> Iterator[Bucket]:
    raw = _raw_client("s3", server)
    name = f"states-{uuid.uuid4().hex[:8]}"
    raw.create_bucket(Bucket=name)
    if is_versioned:
        raw.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    with fault_proxy(server.port) as proxy:
        yield Bucket(server, name, raw, proxy, _client(server.endpoint))


@contextmanager
def new_lock_table(server: Server, *, key: str = "LockID") -> Iterator[LockTable]:
    raw = _raw_client("dynamodb", server)
    name = f"locks-{uuid.uuid4().hex[:8]}"
    raw.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
        KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    with fault_proxy(server.port) as proxy:
        yield LockTable(server, name, raw, proxy)


@cache
def _client(endpoint: str) -> AwsClient:
    return open_client("s3", REGION, endpoint)


@cache
def _dynamodb_client(endpoint: str) -> AwsClient:
    return open_client("dynamodb", REGION, endpoint)


@cache
def _raw_client(service: str, server: Server) -> Any:
    return boto3.session.Session().client(
        service,
        region_name=REGION,
        endpoint_url=server.endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        config=Config(s3={"addressing_style": "path"}),
    )
