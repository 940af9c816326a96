"""Where the deployment state is: the `state_backend` part of a configuration, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from delta_engine.config.documents import Document, DocumentPath, unknown

DEFAULT_PATH = ".delta-engine/state"

Fill = Callable[[DocumentPath, str], str]
"""Fills variables into a text that stands at a path."""


class StatePlaceDocument(msgspec.Struct):
    """The keys of every kind of place; which of them a kind takes is in `_KEYS`."""

    type: str | None = None
    path: str | None = None
    bucket: str | None = None
    prefix: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    schema: str | None = None
    volume: str | None = None


class StateCacheDocument(msgspec.Struct):
    """How long a local copy of a remote document may be looked at."""

    enabled: bool = True
    max_age_seconds: Annotated[float, msgspec.Meta(ge=0)] = 300


class StateLockDocument(msgspec.Struct):
    """The lock."""

    type: str | None = None
    table: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None
    lease_seconds: Annotated[float, msgspec.Meta(ge=1)] | None = None


class StateBackendDocument(msgspec.Struct):
    """`state_backend` as it is written."""

    type: str
    local: StatePlaceDocument | None = None
    s3: StatePlaceDocument | None = None
    databricks: StatePlaceDocument | None = None
    remote: StatePlaceDocument | None = None
    cache: StateCacheDocument = msgspec.field(default_factory=StateCacheDocument)
    lock: StateLockDocument = msgspec.field(default_factory=StateLockDocument)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalState:
    """Local files in a folder, absolute."""

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


_KEYS = {
    "local": {"path"},
    "s3": {"bucket", "prefix", "region", "endpoint_url"},
    "databricks": {"schema", "volume"},
}


def default_state_backend(project_dir: Path) -> StateBackend:
    """Return local files in the project: for laptops, where nobody else deploys."""
    return StateBackend(place=LocalState(path=project_dir / DEFAULT_PATH))


def state_backend(
    document: Document, config: StateBackendDocument, *, project_dir: Path, fill: Fill
) -> StateBackend:
    """Return what `state_backend` says.

    Args:
        document: the configuration, for positions.
        config: its `state_backend`.
        project_dir: what relative paths start from.
        fill: fills variables in.

    Raises:
        ConfigError: a type that there is not, a part that is missing or does not belong.
    """
    reader = _Reader(document, config, project_dir, fill)
    return StateBackend(
        place=reader.place(),
        cache=reader.cache(),
        lock_table=reader.lock_table(),
        lock_timeout_seconds=config.lock.timeout_seconds,
        lease_seconds=config.lock.lease_seconds,
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    document: Document
    config: StateBackendDocument
    project_dir: Path
    fill: Fill

    def place(self) -> StatePlace:
        """Return where the documents are; for `hybrid` that is the remote."""
        kind = self.config.type
        self._require_known(("state_backend", "type"), kind, {*_KEYS, "hybrid"})
        sections = {"local", "remote"} if kind == "hybrid" else {kind}
        for name in ("local", "s3", "databricks", "remote"):
            if getattr(self.config, name) is not None and name not in sections:
                raise self.document.error(
                    ("state_backend", name), f"{name} does not belong to type: {kind}", "Remove it."
                )
        if kind != "hybrid":
            return self._place(kind, kind, getattr(self.config, kind) or StatePlaceDocument())
        remote = self.config.remote
        if remote is None:
            raise self.document.error(("state_backend",), "type: hybrid needs a remote")
        path = ("state_backend", "remote", "type")
        self._require_known(path, remote.type or "", {"s3", "databricks"})
        return self._place(str(remote.type), "remote", remote)

    def cache(self) -> StateCache | None:
        """Return the cache of a hybrid."""
        given = self.document.value["state_backend"]
        if self.config.type != "hybrid":
            if "cache" in given:
                raise self.document.error(
                    ("state_backend", "cache"), "cache is for type: hybrid only", "Remove it."
                )
            return None
        if not self.config.cache.enabled:
            return None
        local = self._place("local", "local", self.config.local or StatePlaceDocument())
        assert isinstance(local, LocalState)
        return StateCache(path=local.path, max_age_seconds=self.config.cache.max_age_seconds)

    def lock_table(self) -> DynamoDBLockTable | None:
        """Return the DynamoDB table, if the lock is in one."""
        lock = self.config.lock
        path = ("state_backend", "lock")
        if lock.type is not None:
            self._require_known((*path, "type"), lock.type, {"s3", "dynamodb"})
            if not isinstance(self.place(), S3State):
                reason = f"a lock of type: {lock.type} does not belong to type: {self.config.type}"
                raise self.document.error((*path, "type"), reason, "Remove it.")
        if lock.type == "dynamodb":
            table = self._text(path, "table", lock.table)
            place = self.config.remote or self.config.s3 or StatePlaceDocument()
            return DynamoDBLockTable(
                table=table, region=lock.region or place.region, endpoint_url=lock.endpoint_url
            )
        if lock.table is not None:
            raise self.document.error((*path, "table"), "table is for a lock of type: dynamodb only")
        return None

    def _place(self, kind: str, section: str, place: StatePlaceDocument) -> StatePlace:
        path = ("state_backend", section)
        for name in StatePlaceDocument.__struct_fields__:
            if name != "type" and getattr(place, name) is not None and name not in _KEYS[kind]:
                raise self.document.error((*path, name), f"{name} does not belong to {kind}", "Remove it.")
        match kind:
            case "local":
                return LocalState(path=self.project_dir / self.fill(path, place.path or DEFAULT_PATH))
            case "s3":
                return S3State(
                    bucket=self._text(path, "bucket", place.bucket),
                    prefix=self.fill(path, place.prefix or "").strip("/"),
                    region=place.region and self.fill(path, place.region),
                    endpoint_url=place.endpoint_url and self.fill(path, place.endpoint_url),
                )
        return self._databricks(path, place)

    def _databricks(self, path: DocumentPath, place: StatePlaceDocument) -> DatabricksState:
        name = self._text(path, "schema", place.schema)
        catalog, dot, schema = name.partition(".")
        if not (catalog and dot and schema) or "." in schema:
            raise self.document.error((*path, "schema"), f"schema {name!r} is not of the form catalog.schema")
        return DatabricksState(
            catalog=catalog.lower(),
            schema=schema.lower(),
            volume=self.fill(path, place.volume or "deployment_state"),
        )

    def _text(self, path: DocumentPath, key: str, value: str | None) -> str:
        if not value:
            raise self.document.error(path, f"{'.'.join(map(str, path))} needs a {key}")
        return self.fill((*path, key), value)

    def _require_known(self, path: DocumentPath, value: str, known: set[str]) -> None:
        if value not in known:
            reason, way_out = unknown(".".join(map(str, path)), value, known)
            raise self.document.error(path, reason, way_out)
