"""One statement per table: row counts, commits, and Delta's own version and id. One for the audit log."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

import msgspec

from delta_engine.backends.addressing import Addressing, PathAddressing
from delta_engine.backends.sql_runner import NO_ROWS, Row, SqlRunner, query_each, utc_moment
from delta_engine.errors import StatementError
from delta_engine.models import QualifiedName, read_only
from delta_engine.sql.queries import (
    sql_audit_events,
    sql_count_rows,
    sql_describe_detail,
    sql_describe_history,
)

LATEST_COMMITS = 1000
"""How many commits of a table a search of its history reads."""

_MOST_EVENTS = 1000
_LATEST_LOG_FILES = 10
"""How many log files to search for the id of a table by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit of a table (Delta documentation, "History schema").

    Args:
        version: the table's version after it.
        at: UTC.
        who: the user or service principal; None if the platform has no users.
        parameters: of the operation; lists and columns as JSON text.
        job: the name or id of the job that made it.
        notebook: the id of the notebook that made it.
    """

    version: int
    at: datetime | None
    who: str | None
    operation: str
    parameters: Mapping[str, str]
    job: str | None = None
    notebook: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """The version of a table's log, and Delta's id, which a recreated table does not have (None if not requested).

    A catalog-managed table that is replaced keeps its id.
    """

    table_id: str | None
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """A successful change of a table or schema, such as `deleteTable`; `name` is dotted, in lower case, `at` is UTC."""

    at: datetime
    who: str
    action: str
    name: str


class RowCounter(Protocol):
    """Counts rows."""

    def count(self, tables: Iterable[QualifiedName]) -> dict[str, int]:
        """Return the row counts of tables, by `QualifiedName.key`."""
        ...


class TableHistoryReader(Protocol):
    """Reads the latest commits of tables."""

    def read_commits(self, tables: Sequence[QualifiedName]) -> Mapping[str, tuple[Commit, ...]]:
        """Return commits by `QualifiedName.key`, newest first, without unreadable tables."""
        ...


class TableVersionReader(Protocol):
    """Reads the versions of tables just changed: directly, never through `information_schema`."""

    def read_versions(
        self, tables: Sequence[QualifiedName], *, with_id: Collection[str]
    ) -> Mapping[str, TableVersion]:
        """Return versions by `QualifiedName.key`, without unreadable tables; an id (`with_id`) may cost a statement."""
        ...


class AuditLogReader(Protocol):
    """Reads the audit log, for authors of changes that no table's history explains."""

    def read(
        self, actions: Collection[str], names: Collection[str], *, since: datetime
    ) -> Sequence[AuditEvent]:
        """Return changes after a UTC time, newest first; StatementError if the log is unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class TableQueries:
    """Runs statements about single tables in parallel: row counter, history reader and version reader."""

    runner: SqlRunner
    addressing: Addressing
    _: KW_ONLY
    parallelism: int = 4

    def count(self, tables: Iterable[QualifiedName]) -> dict[str, int]:
        """Return row counts; see `RowCounter.count`."""
        counts = query_each(self._count, tables, self.parallelism)
        return {table.key: rows for table, rows in counts}

    def read_commits(self, tables: Sequence[QualifiedName]) -> Mapping[str, tuple[Commit, ...]]:
        """Return commits; see `TableHistoryReader.read_commits`."""
        histories = query_each(self._commits, tables, self.parallelism)
        return {table.key: commits for table, commits in histories if commits is not None}

    def read_versions(
        self, tables: Sequence[QualifiedName], *, with_id: Collection[str]
    ) -> Mapping[str, TableVersion]:
        """Return versions; see `TableVersionReader.read_versions`."""
        versions = query_each(partial(self._version, with_id=with_id), tables, self.parallelism)
        return {table.key: version for table, version in versions if version is not None}

    def _count(self, table: QualifiedName) -> int:
        (row,) = self.runner.run(sql_count_rows(self.addressing.table(table)))
        return int(str(row["row_count"]))

    def _commits(self, table: QualifiedName) -> tuple[Commit, ...] | None:
        sql = sql_describe_history(self.addressing.table(table), LATEST_COMMITS)
        try:
            return tuple(map(commit_of, self.runner.run(sql)))
        except StatementError:  # the report lacks this author but stays correct
            return None

    def _version(self, table: QualifiedName, *, with_id: Collection[str]) -> TableVersion | None:
        address = self.addressing.table(table)
        try:
            (commit,) = self.runner.run(sql_describe_history(address, 1))
            detail = (
                self.runner.run(sql_describe_detail(address))[0] if table.key in with_id else {"id": None}
            )
        except StatementError:  # the record lacks this version but stays correct
            return None
        return TableVersion(table_id=_text(detail["id"]), version=int(str(commit["version"])))


class DeltaLogVersionReader:
    """Reads the log files of tables by path: in milliseconds, while DESCRIBE DETAIL takes most of a second."""

    def __init__(self, addressing: PathAddressing) -> None:
        self._addressing = addressing

    def read_versions(
        self,
        tables: Sequence[QualifiedName],
        *,
        with_id: Collection[str],  # noqa: ARG002 - the id costs nothing here
    ) -> Mapping[str, TableVersion]:
        """Return versions; see `TableVersionReader.read_versions`."""
        versions = ((table.key, self._version(table)) for table in tables)
        return {key: version for key, version in versions if version is not None}

    def _version(self, table: QualifiedName) -> TableVersion | None:
        try:
            return self._read(table)
        except (OSError, ValueError):  # the record lacks this version but stays correct
            return None

    def _read(self, table: QualifiedName) -> TableVersion | None:
        log = self._addressing.folder(table) / "_delta_log"
        commits = sorted((path for path in log.glob("*.json") if path.stem.isdigit()), reverse=True)
        if not commits:
            return None
        ids = map(_table_id, islice(commits, _LATEST_LOG_FILES))
        return TableVersion(table_id=next(filter(None, ids), None), version=int(commits[0].stem))


class SqlAuditLogReader:
    """Reads the audit log of Unity Catalog with one query.

    `system.access.audit` is a system table: an administrator enables it and grants SELECT on it. It holds most events
    of one region alone (docs: "Audit log system table reference").
    """

    def __init__(self, runner: SqlRunner) -> None:
        self._runner = runner

    def read(
        self, actions: Collection[str], names: Collection[str], *, since: datetime
    ) -> Sequence[AuditEvent]:
        """Return changes; see `AuditLogReader.read`."""
        rows = self._runner.run(sql_audit_events(actions, names, since=since, limit=_MOST_EVENTS))
        return [event for event in map(_event, rows) if event is not None]


NO_AUDIT_LOG: Final = SqlAuditLogReader(NO_ROWS)
"""The audit log of platforms that keep none."""


class _TableMetadata(msgspec.Struct):
    id: str


class _MetadataAction(msgspec.Struct):
    metaData: _TableMetadata | None = None  # noqa: N815 - its name in Delta's log


def _table_id(commit: Path) -> str | None:
    """Return the table's id, if the commit changed metadata (Delta protocol, "Change Metadata")."""
    for line in commit.read_bytes().splitlines():
        action = msgspec.json.decode(line, type=_MetadataAction)
        if action.metaData is not None:
            return action.metaData.id
    return None


def commit_of(row: Row) -> Commit:
    """Return the commit in a row of DESCRIBE HISTORY."""
    raw = row.get("operationParameters")
    parameters = raw if isinstance(raw, Mapping) else {}
    return Commit(
        version=int(str(row["version"])),
        at=utc_moment(row.get("timestamp")),
        who=_text(row.get("userName")) or _text(row.get("userId")),
        operation=_text(row.get("operation")) or "",
        parameters=read_only({str(key): str(value) for key, value in parameters.items()}),
        job=_part(row.get("job"), "jobName") or _part(row.get("job"), "jobId"),
        notebook=_part(row.get("notebook"), "notebookId"),
    )


def _part(struct: object, name: str) -> str | None:
    return _text(struct.get(name)) if isinstance(struct, Mapping) else None


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


def _event(row: Row) -> AuditEvent | None:
    at, who = utc_moment(row["event_time"]), row["who"]
    if at is None or not who or not _succeeded(row["response"]):
        return None
    return AuditEvent(at=at, who=str(who), action=str(row["action_name"]), name=str(row["full_name"]))


def _succeeded(response: object) -> bool:
    """Whether a response (JSON) reports success; the documentation has two spellings of its status field."""
    answer = json.loads(str(response or "{}"))
    return bool(answer.get("status_code", answer.get("statusCode")) == 200)
