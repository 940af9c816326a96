"""Reads Delta tables by path through deltalake (delta-rs): milliseconds a table, without Spark and Java.

It describes a table completely or not at all. Tables that deltalake refuses, or that have something that only Spark
understands, are left to Spark, so that all errors are Spark's.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.sql_runner import Row
from delta_engine.models import QualifiedName
from delta_engine.models.types import first_unsupported
from delta_engine.state.table_descriptions import ColumnDescription, TableDescription, described_column
from delta_engine.state.table_queries import LATEST_COMMITS, Commit, TableHistoryReader, commit_of
from delta_engine.telemetry.logs import log

if TYPE_CHECKING:
    from deltalake import DeltaTable

_Answer = TypeVar("_Answer")

KNOWN_FEATURES: Final = frozenset(
    {
        *("allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "checkpointProtection"),
        *("clustering", "columnMapping", "deletionVectors", "domainMetadata", "generatedColumns"),
        *("icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "identityColumns", "inCommitTimestamp"),
        *("invariants", "materializePartitionColumns", "rowTracking", "timestampNtz", "typeWidening"),
        *("typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck", "variantType"),
        *("variantType-preview",),
    }
)
"""The table features with which schema, properties and history mean the same to deltalake and to Spark."""

_TABLE_FEATURES: Final = 7
"""The version of the writer protocol that lists table features, and the newest one."""
_HIDDEN: Final = "path"
"""A property that Spark does not show."""
_CLUSTERING: Final = "delta.clustering"
_UNSAFE_IN_PATHS: Final = frozenset("%\\")
"""Characters that deltalake decodes (`%20`) or replaces, and with which it may open another folder."""


def reads_without_spark() -> bool:
    """Return whether deltalake is installed."""
    return find_spec("deltalake") is not None


class DeltaLogReader:
    """Reads tables by path from their logs.

    Args:
        on_left_to_spark: gets a table that only Spark can read, and the reason.
    """

    def __init__(
        self,
        addressing: PathAddressing,
        on_left_to_spark: Callable[[QualifiedName, str], None] = lambda _table, _reason: None,
    ) -> None:
        self._addressing = addressing
        self._on_left_to_spark = on_left_to_spark

    def describe(self, table: QualifiedName) -> TableDescription | None:
        """Return a table as Spark describes it; None if only Spark can."""
        return self._read(table, _OpenedLog.description)

    def commits(self, table: QualifiedName) -> tuple[Commit, ...] | None:
        """Return the latest commits of a table, newest first; None if only Spark can."""
        return self._read(table, _OpenedLog.commits)

    def _read(self, table: QualifiedName, read: Callable[[_OpenedLog], _Answer]) -> _Answer | None:
        from deltalake.exceptions import DeltaError

        try:
            return read(_opened(self._addressing.folder(table)))
        except (_OnlySparkKnowsError, DeltaError, OSError, KeyError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            log(logging.INFO, "table left to Spark", table=str(table), reason=reason)
            self._on_left_to_spark(table, reason)
            return None


@dataclass(frozen=True, slots=True)
class DeltaLogHistoryReader:
    """Reads the commits of tables by path from their logs; `otherwise` reads those that only Spark understands."""

    log: DeltaLogReader
    otherwise: TableHistoryReader

    def read_commits(self, tables: Sequence[QualifiedName]) -> Mapping[str, tuple[Commit, ...]]:
        """Return commits; see `TableHistoryReader.read_commits`."""
        read = {table: self.log.commits(table) for table in tables}
        logged = {table.key: commits for table, commits in read.items() if commits is not None}
        rest = [table for table, commits in read.items() if commits is None]
        return logged | dict(self.otherwise.read_commits(rest)) if rest else logged


class _OnlySparkKnowsError(Exception):
    """A log has something that this module does not understand."""


def _opened(folder: Path) -> _OpenedLog:
    """Open the newest version of a table."""
    from deltalake import DeltaTable

    commits = folder / "_delta_log"
    if _UNSAFE_IN_PATHS & set(str(folder)):
        raise _OnlySparkKnowsError("deltalake may open another folder")
    if not _commit_file(commits, 0).exists() and not any(commits.glob("*.checkpoint.*")):
        raise _OnlySparkKnowsError("the log has neither its first commit nor a checkpoint")
    opened = _OpenedLog(table=DeltaTable(str(folder)), folder=commits)
    version = opened.table.protocol().min_writer_version
    if version > _TABLE_FEATURES:
        raise _OnlySparkKnowsError(f"version {version} of the writer protocol")
    unknown = opened.features - KNOWN_FEATURES
    if unknown:
        raise _OnlySparkKnowsError(f"table features {', '.join(sorted(unknown))}")
    return opened


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenedLog:
    table: DeltaTable
    folder: Path

    @property
    def features(self) -> set[str]:
        protocol = self.table.protocol()
        return {*(protocol.reader_features or ()), *(protocol.writer_features or ())}

    def description(self) -> TableDescription:
        metadata = self.table.metadata()
        fields = json.loads(self.table.schema().to_json())["fields"]
        columns = tuple(_column(field) for field in fields)
        for column, _ in columns:
            if first_unsupported(column.data_type):
                raise _OnlySparkKnowsError(f"the type of column {column.name}")
        return TableDescription(
            columns=columns,
            properties=self._properties(metadata.configuration),
            comment=metadata.description or "",
            cluster_by=tuple(_logical_name(fields, path) for path in self._clustering()),
            partitioned_by=tuple(metadata.partition_columns),
            table_id=str(metadata.id),
        )

    def commits(self) -> tuple[Commit, ...]:
        rows = self.table.history(LATEST_COMMITS)
        version = self.table.version()
        expected = (number for number in range(version, -1, -1) if _commit_file(self.folder, number).exists())
        if [row["version"] for row in rows] != list(islice(expected, LATEST_COMMITS)):
            raise _OnlySparkKnowsError("a commit without information about it")
        times = list(_increasing(_committed_at(self.folder, row) for row in reversed(rows)))
        return tuple(
            commit_of(_as_spark_shows(row, at)) for row, at in zip(rows, reversed(times), strict=True)
        )

    def _properties(self, configuration: Mapping[str, str]) -> dict[str, str]:
        """Return the properties that SHOW TBLPROPERTIES lists, in its order."""
        protocol = self.table.protocol()
        features = self.features if protocol.min_writer_version >= _TABLE_FEATURES else ()
        properties = {
            **{key: value for key, value in configuration.items() if key != _HIDDEN},
            **{f"delta.feature.{name}": "supported" for name in features},
            "delta.minReaderVersion": str(protocol.min_reader_version),
            "delta.minWriterVersion": str(protocol.min_writer_version),
        }
        return dict(sorted(properties.items()))

    def _clustering(self) -> list[list[str]]:
        """Return the paths of the clustering columns, by physical name.

        deltalake shows no domain metadata. The latest commit that has the domain holds the columns (Delta protocol,
        "Domain Metadata" and "Clustered Table").
        """
        if "clustering" not in self.features:
            return []
        for version in range(self.table.version(), -1, -1):
            commit = _commit_file(self.folder, version)
            if not commit.exists():
                raise _OnlySparkKnowsError("the commit that set the clustering columns no longer exists")
            for domain in _clustering_domains(commit):
                return [] if domain.removed else _clustering_paths(domain)
        return []


class _DomainMetadata(msgspec.Struct):
    domain: str
    configuration: str = ""
    removed: bool = False


class _DomainAction(msgspec.Struct):
    domainMetadata: _DomainMetadata | None = None  # noqa: N815 - its name in Delta's log


class _Clustering(msgspec.Struct):
    clusteringColumns: list[list[str]]  # noqa: N815 - its name in Delta's log


def _clustering_domains(commit: Path) -> Iterator[_DomainMetadata]:
    for line in commit.read_bytes().splitlines():
        if _CLUSTERING.encode() in line:
            action = msgspec.json.decode(line, type=_DomainAction)
            if action.domainMetadata is not None and action.domainMetadata.domain == _CLUSTERING:
                yield action.domainMetadata


def _clustering_paths(domain: _DomainMetadata) -> list[list[str]]:
    return msgspec.json.decode(domain.configuration, type=_Clustering).clusteringColumns


def _logical_name(fields: Sequence[Row], physical: Sequence[str]) -> str:
    """Return the dotted name of a column, or of a field inside structs."""
    names: list[str] = []
    for part in physical:
        field = next((child for child in fields if _physical_name(child) == part), None)
        if field is None:
            raise _OnlySparkKnowsError(f"clustering column {part}")
        names.append(str(field["name"]))
        inside = field["type"]
        fields = inside.get("fields", ()) if isinstance(inside, Mapping) else ()
    return ".".join(names)


def _physical_name(field: Row) -> object:
    return _metadata(field).get("delta.columnMapping.physicalName", field["name"])


def _column(field: Row) -> ColumnDescription:
    return described_column(
        str(field["name"]), field["type"], is_nullable=bool(field["nullable"]), metadata=_metadata(field)
    )


def _metadata(field: Row) -> Mapping[str, object]:
    metadata_json = field.get("metadata")
    return metadata_json if isinstance(metadata_json, Mapping) else {}


def _commit_file(log: Path, version: int) -> Path:
    return log / f"{version:020}.json"


def _committed_at(log: Path, row: Row) -> datetime:
    """Return the time of a commit: the one in it if the table records it, else the time of its file."""
    recorded = row.get("inCommitTimestamp")
    if isinstance(recorded, int):
        return _moment(recorded)
    return _moment(_commit_file(log, int(str(row["version"]))).stat().st_mtime_ns // 1_000_000)


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=milliseconds)


def _increasing(times: Iterator[datetime]) -> Iterator[datetime]:
    """Yield times, each at least a millisecond after the one before, as Spark does: copied files may be of one time."""
    latest = None
    for at in times:
        latest = at if latest is None else max(at, latest + timedelta(milliseconds=1))
        yield latest


def _as_spark_shows(row: Row, at: datetime) -> Row:
    raw = row.get("operationParameters")
    parameters = raw if isinstance(raw, Mapping) else {}
    texts = {key: _parameter_text(value) for key, value in parameters.items()}
    return {**row, "timestamp": at, "operationParameters": texts}


def _parameter_text(value: object) -> str | None:
    """Return a parameter as text; other values than text are JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
