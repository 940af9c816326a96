"""Authors of changes from Unity Catalog's audit log, for drift that no table's history explains.

`system.access.audit` is a system table: an administrator enables it and grants SELECT on it. It holds most events of
one region alone (docs: "Audit log system table reference").
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from delta_engine.backends.sql_runner import Row, SqlRunner, utc_moment
from delta_engine.sql.queries import sql_audit_events

_MOST_EVENTS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """A successful change of a table or schema, such as `deleteTable`; `name` is dotted, in lower case, `at` is UTC."""

    at: datetime
    who: str
    action: str
    name: str


class AuditLogReader(Protocol):
    """Reads the audit log."""

    def read(
        self, actions: Collection[str], names: Collection[str], *, since: datetime
    ) -> Sequence[AuditEvent]:
        """Return changes after a UTC time, newest first; StatementError if the log is unavailable."""
        ...


class SqlAuditLogReader:
    """Reads the audit log with one query."""

    def __init__(self, runner: SqlRunner) -> None:
        self._runner = runner

    def read(
        self, actions: Collection[str], names: Collection[str], *, since: datetime
    ) -> Sequence[AuditEvent]:
        """Return changes; see `AuditLogReader.read`."""
        rows = self._runner.run(sql_audit_events(actions, names, since=since, limit=_MOST_EVENTS))
        return [event for event in map(_event, rows) if event is not None]


def _event(row: Row) -> AuditEvent | None:
    at, who = utc_moment(row["event_time"]), row["who"]
    if at is None or not who or not _succeeded(row["response"]):
        return None
    return AuditEvent(at=at, who=str(who), action=str(row["action_name"]), name=str(row["full_name"]))


def _succeeded(response: object) -> bool:
    """Whether a response (JSON) reports success; the documentation has two spellings of its status field."""
    found = json.loads(str(response or "{}"))
    return bool(found.get("status_code", found.get("statusCode")) == 200)
