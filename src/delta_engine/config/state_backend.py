"""The location of the deployment state: the key `state_backend` of a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from delta_engine.config.yaml_documents import Document

DEFAULT_PATH = ".delta-engine/state"


class _Local(msgspec.Struct):
    """Local files.

    Args:
        path: the folder; relative paths start at the project.
    """

    path: str = DEFAULT_PATH


class S3State(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="s3"):
    """Objects under a prefix of a bucket.

    Args:
        bucket: the bucket; it must exist.
        prefix: the prefix of all objects.
        region: the region of the bucket; by default that of boto3.
        endpoint_url: a server other than AWS; without credentials in it.
    """

    bucket: Annotated[str, msgspec.Meta(min_length=1)]
    prefix: str = ""
    region: str | None = None
    endpoint_url: str | None = None


class _Databricks(msgspec.Struct, tag_field="type", tag="databricks"):
    """A volume and two small tables in a schema of Unity Catalog.

    Args:
        schema: the schema, `catalog.schema`; it must exist.
        volume: the volume in it; the bundle declares it.
    """

    schema: str
    volume: str = "deployment_state"


class _Cache(msgspec.Struct):
    """A local copy of the document.

    Args:
        enabled: whether commands that only read may read the copy.
        max_age_seconds: the maximum age of the copy.
    """

    enabled: bool = True
    max_age_seconds: Annotated[float, msgspec.Meta(ge=0)] = 300


class _Lock(msgspec.Struct):
    """The lock of the environment.

    Args:
        type: for documents in S3: an object next to them, or an item of a table in DynamoDB.
        table: the table in DynamoDB, whose key is the string `LockID`.
        region: the region of the table; by default that of the bucket.
        endpoint_url: a server other than AWS.
        timeout_seconds: how long to wait for another run; by default 60, or one and a half leases if
            that is longer.
        lease_seconds: how long the holder may be silent before the lease expires; by default 30, or 120 for
            `databricks`.
    """

    type: Literal["s3", "dynamodb"] | None = None
    table: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None
    lease_seconds: Annotated[float, msgspec.Meta(ge=1)] | None = None


class LocalBackend(msgspec.Struct, tag_field="type", tag="local"):
    """Local files: for a laptop. A job's files are gone when it ends."""

    local: _Local = msgspec.field(default_factory=_Local)
    lock: _Lock = msgspec.field(default_factory=_Lock)


class _S3Backend(msgspec.Struct, tag_field="type", tag="s3"):
    """S3, or a server with conditional writes."""

    s3: S3State
    lock: _Lock = msgspec.field(default_factory=_Lock)


class _DatabricksBackend(msgspec.Struct, tag_field="type", tag="databricks"):
    """Unity Catalog: a volume and two small tables."""

    databricks: _Databricks
    lock: _Lock = msgspec.field(default_factory=_Lock)


class _HybridBackend(msgspec.Struct, tag_field="type", tag="hybrid"):
    """A remote store, with a local copy for commands that only read.

    Args:
        remote: the store that decides: the keys of `s3` or `databricks`, with their `type`.
    """

    remote: S3State | _Databricks
    local: _Local = msgspec.field(default_factory=_Local)
    cache: _Cache = msgspec.field(default_factory=_Cache)
    lock: _Lock = msgspec.field(default_factory=_Lock)


StateBackendDocument: TypeAlias = LocalBackend | _S3Backend | _DatabricksBackend | _HybridBackend


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabricksState:
    """A volume and two small tables in a schema of Unity Catalog."""

    catalog: str
    schema: str
    volume: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDBLockTable:
    """A lock in DynamoDB instead of beside the document."""

    table: str
    region: str | None
    endpoint_url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCache:
    """A local copy of a remote document for read-only commands; the folder is absolute."""

    path: Path
    max_age_seconds: float


StatePlace: TypeAlias = Path | S3State | DatabricksState


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBackend:
    """The location of the deployment state and its lock.

    Without `lock_table`, the lock is beside the document. The lock's timeout and lease are in seconds; None is the
    store's default.
    """

    place: StatePlace
    cache: StateCache | None = None
    lock_table: DynamoDBLockTable | None = None
    lock_timeout_seconds: float | None = None
    lease_seconds: float | None = None


def state_backend(document: Document, config: StateBackendDocument, project_dir: Path) -> StateBackend:
    """Return the value of `state_backend`; refuse unsuitable schema names and locks."""
    cache: StateCache | None = None
    match config:
        case LocalBackend(local=local):
            place: StatePlace = project_dir / local.path
        case _S3Backend(s3=remote) | _DatabricksBackend(databricks=remote):
            place = _remote(document, remote, str(config.__struct_config__.tag))
        case _HybridBackend(remote=remote):
            place = _remote(document, remote, "remote")
            if config.cache.enabled:
                path = project_dir / config.local.path
                cache = StateCache(path=path, max_age_seconds=config.cache.max_age_seconds)
    return StateBackend(
        place=place,
        cache=cache,
        lock_table=_lock_table(document, config.lock, place),
        lock_timeout_seconds=config.lock.timeout_seconds,
        lease_seconds=config.lock.lease_seconds,
    )


def _remote(document: Document, remote: S3State | _Databricks, key: str) -> S3State | DatabricksState:
    if isinstance(remote, S3State):
        return S3State(
            bucket=remote.bucket,
            prefix=remote.prefix.strip("/"),
            region=remote.region,
            endpoint_url=remote.endpoint_url,
        )
    parts = remote.schema.lower().split(".")
    if len(parts) != 2 or not all(parts):
        reason = f"schema {remote.schema!r} is not the full name of a schema"
        raise document.error(("state_backend", key, "schema"), reason, "Write catalog.schema.")
    return DatabricksState(catalog=parts[0], schema=parts[1], volume=remote.volume)


def _lock_table(document: Document, lock: _Lock, place: StatePlace) -> DynamoDBLockTable | None:
    path = ("state_backend", "lock")
    if lock.type is not None and not isinstance(place, S3State):
        reason = f"a lock of type: {lock.type} needs a state on S3"
        raise document.error((*path, "type"), reason, "Remove it.")
    if lock.type != "dynamodb":
        if lock.table is not None:
            raise document.error((*path, "table"), "only a lock of type: dynamodb has a table", "Remove it.")
        return None
    if not lock.table:
        raise document.error(path, "state_backend.lock lacks a table", "Name the DynamoDB table.")
    assert isinstance(place, S3State)
    return DynamoDBLockTable(
        table=lock.table, region=lock.region or place.region, endpoint_url=lock.endpoint_url
    )
