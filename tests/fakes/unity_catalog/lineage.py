"""The lineage of the fake catalog: who read which columns, as `system.access` records it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from delta_engine.backends.sql_runner import Row

_SINCE = re.compile(r"event_date >= DATE '([-\d]+)'")
_COLUMNS = re.compile(
    r"lower\(source_table_full_name\) = '([^']*)' AND lower\(source_column_name\) IN \(([^)]*)\)"
)
_TABLES = re.compile(r"lower\(source_table_full_name\) IN \(([^)]*)\)")
_LIMIT = re.compile(r"LIMIT (\d+)$")
_NAME = re.compile(r"'([^']*)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageEvent:
    """One read of a column; `at` is UTC."""

    at: datetime
    table: str
    column: str
    entity_type: str | None = None
    entity_id: str | None = None
    who: str = "jo"
    target: str | None = None


def lineage_rows(sql: str, events: Sequence[LineageEvent]) -> list[Row]:
    """Return the readers that a query asks for, the latest first."""
    latest: dict[tuple[object, ...], datetime] = {}
    for reader, at in _asked(sql, events):
        latest[reader] = max(at, latest.get(reader, at))
    names = ("source_table", "source_column", "entity_type", "entity_id", "created_by", "target_table")
    rows = [
        {**dict(zip(names, reader, strict=True)), "last_read": at, "readers": len(latest)}
        for reader, at in sorted(latest.items(), key=lambda entry: (entry[1], str(entry[0])), reverse=True)
    ]
    limit = _LIMIT.search(sql)
    assert limit is not None
    return list(rows[: int(limit[1])])


def _asked(sql: str, events: Sequence[LineageEvent]) -> Iterator[tuple[tuple[object, ...], datetime]]:
    for part in sql.split("UNION ALL"):
        since = _SINCE.search(part)
        assert since is not None, "the scan is not bounded"
        columns = {(table, name) for table, names in _COLUMNS.findall(part) for name in _NAME.findall(names)}
        tables = {name for names in _TABLES.findall(part) for name in _NAME.findall(names)}
        for event in events:
            if f"{event.at:%Y-%m-%d}" < since[1]:
                continue
            rest = (event.entity_type, event.entity_id, event.who, event.target)
            if (event.table, event.column.lower()) in columns:
                yield (event.table, event.column.lower(), *rest), event.at
            if event.table in tables:
                yield (event.table, None, *rest), event.at
