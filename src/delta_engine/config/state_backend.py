"""Where the deployment state is: the `state_backend` part of a configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from delta_engine.config.documents import Document, DocumentPart, DocumentPath

DEFAULT_PATH = ".delta-engine/state"

Fill = Callable[[DocumentPath, str], str]
"""Fills variables into a text that stands at a path."""


class LocalDocument(DocumentPart):
    """The section `local`."""

    path: str = DEFAULT_PATH


class S3Document(DocumentPart, tag_field="type", tag="s3"):
    """The section `s3`, or `remote` with `type: s3`."""

    bucket: Annotated[str, msgspec.Meta(min_length=1)]
    prefix: str = ""
    region: str | None = None
    endpoint_url: str | None = None


class DatabricksDocument(DocumentPart, tag_field="type", tag="databricks"):
    """The section `databricks`, or `remote` with `type: databricks`."""

    schema: str
    volume: str = "deployment_state"


class CacheDocument(DocumentPart):
    """The section `cache`."""

    enabled: bool = True
    max_age_seconds: Annotated[float, msgspec.Meta(ge=0)] = 300


class LockType(Enum):
    """Where a lock of a state on S3 can be."""

    S3 = "s3"
    DYNAMODB = "dynamodb"


class LockDocument(DocumentPart):
    """The section `lock`."""

    type: LockType | None = None
    table: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None
    lease_seconds: Annotated[float, msgspec.Meta(ge=1)] | None = None


class LocalBackendDocument(DocumentPart, tag_field="type", tag="local"):
    """`state_backend` with `type: local`."""

    local: LocalDocument = msgspec.field(default_factory=LocalDocument)
    lock: LockDocument = msgspec.field(default_factory=LockDocument)


class S3BackendDocument(DocumentPart, tag_field="type", tag="s3"):
    """`state_backend` with `type: s3`."""

    s3: S3Document
    lock: LockDocument = msgspec.field(default_factory=LockDocument)


class DatabricksBackendDocument(DocumentPart, tag_field="type", tag="databricks"):
    """`state_backend` with `type: databricks`."""

    databricks: DatabricksDocument
    lock: LockDocument = msgspec.field(default_factory=LockDocument)


class HybridBackendDocument(DocumentPart, tag_field="type", tag="hybrid"):
    """`state_backend` with `type: hybrid`: a remote one with a local cache."""

    remote: S3Document | DatabricksDocument
    local: LocalDocument = msgspec.field(default_factory=LocalDocument)
    cache: CacheDocument = msgspec.field(default_factory=CacheDocument)
    lock: LockDocument = msgspec.field(default_factory=LockDocument)


StateBackendDocument: TypeAlias = (
    LocalBackendDocument | S3BackendDocument | DatabricksBackendDocument | HybridBackendDocument
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalState:
    """Local files in an absolute folder."""

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class S3State:
    """Objects under a prefix of a bucket; the endpoint is AWS's own unless another is named."""

    bucket: str
    prefix: str
    region: str | None
    endpoint_url: str | None


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
    """A local copy of a remote document, for commands that only look; the folder is absolute."""

    path: Path
    max_age_seconds: float


StatePlace: TypeAlias = LocalState | S3State | DatabricksState


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBackend:
    """Where the deployment state is, and how runs are kept apart.

    Args:
        place: where documents and journals are.
        cache: what commands that only look may take instead; None: nothing.
        lock_table: where the lock is; None: beside the document.
        lock_timeout_seconds: how long to wait for the lock; None: what suits the place.
        lease_seconds: how long a holder may be silent; None: what suits the place.
    """

    place: StatePlace
    cache: StateCache | None = None
    lock_table: DynamoDBLockTable | None = None
    lock_timeout_seconds: float | None = None
    lease_seconds: float | None = None


def default_state_backend(project_dir: Path) -> StateBackend:
    """Return local files in the project, for laptops."""
    return StateBackend(place=LocalState(path=project_dir / DEFAULT_PATH))


def state_backend(
    document: Document, config: StateBackendDocument, *, project_dir: Path, fill: Fill
) -> StateBackend:
    """Return what `state_backend` says, its variables filled in.

    Args:
        document: the configuration, for positions.
        config: its `state_backend`.
        project_dir: the folder from which relative paths start.
        fill: fills variables in.

    Raises:
        ConfigError: a name of a schema or a lock that does not fit.
    """
    cache: StateCache | None = None
    match config:
        case LocalBackendDocument(local=local):
            place: StatePlace = _local(local, ("state_backend", "local"), project_dir, fill)
        case S3BackendDocument(s3=remote) | DatabricksBackendDocument(databricks=remote):
            place = _remote(document, remote, ("state_backend", config.__struct_config__.tag), fill)
        case HybridBackendDocument(remote=remote):
            place = _remote(document, remote, ("state_backend", "remote"), fill)
            if config.cache.enabled:
                local_state = _local(config.local, ("state_backend", "local"), project_dir, fill)
                cache = StateCache(path=local_state.path, max_age_seconds=config.cache.max_age_seconds)
    return StateBackend(
        place=place,
        cache=cache,
        lock_table=_lock_table(document, config.lock, place, fill),
        lock_timeout_seconds=config.lock.timeout_seconds,
        lease_seconds=config.lock.lease_seconds,
    )


def _local(local: LocalDocument, path: DocumentPath, project_dir: Path, fill: Fill) -> LocalState:
    return LocalState(path=project_dir / fill(path, local.path))


def _remote(
    document: Document, remote: S3Document | DatabricksDocument, path: DocumentPath, fill: Fill
) -> S3State | DatabricksState:
    if isinstance(remote, S3Document):
        return S3State(
            bucket=fill((*path, "bucket"), remote.bucket),
            prefix=fill(path, remote.prefix).strip("/"),
            region=remote.region and fill(path, remote.region),
            endpoint_url=remote.endpoint_url and fill(path, remote.endpoint_url),
        )
    name = fill((*path, "schema"), remote.schema)
    parts = name.lower().split(".")
    if len(parts) != 2 or not all(parts):
        raise document.error((*path, "schema"), f"schema {name!r} is not of the form catalog.schema")
    return DatabricksState(catalog=parts[0], schema=parts[1], volume=fill(path, remote.volume))


def _lock_table(
    document: Document, lock: LockDocument, place: StatePlace, fill: Fill
) -> DynamoDBLockTable | None:
    path = ("state_backend", "lock")
    if lock.type is not None and not isinstance(place, S3State):
        reason = f"a lock of type: {lock.type.value} needs a state on S3"
        raise document.error((*path, "type"), reason, "Remove it.")
    if lock.type is not LockType.DYNAMODB:
        if lock.table is not None:
            raise document.error((*path, "table"), "table is for a lock of type: dynamodb only")
        return None
    if not lock.table:
        raise document.error(path, "state_backend.lock needs a table")
    assert isinstance(place, S3State)
    return DynamoDBLockTable(
        table=fill((*path, "table"), lock.table),
        region=lock.region or place.region,
        endpoint_url=lock.endpoint_url,
    )
