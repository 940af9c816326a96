"""Reads who read tables and columns lately, from the lineage system tables of Unity Catalog.

An administrator enables the schema `system.access` and grants SELECT on it. The tables hold a subset of all reads, and
column lineage has only events with a source (docs: "Lineage system tables reference"): evidence, never proof.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from delta_engine.backends.sql_runner import NO_ROWS, Row, SqlRunner, utc_moment
from delta_engine.sql.queries import sql_recent_reads


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentRead:
    """What read a table or column, and when last.

    Args:
        table: the key of the table that was read.
        column: its name in lower case; None for the table itself.
        entity: the kind and id of the job, notebook, dashboard or query; empty if not recorded.
        who: the principal.
        target: the table that was written from it; None if the values were only read.
        at: UTC.
    """

    table: str
    column: str | None
    entity: str
    who: str
    target: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class LineageReader:
    """Reads lineage with one query."""

    runner: SqlRunner

    def read(
        self,
        tables: Collection[str],
        columns: Mapping[str, Collection[str]],
        *,
        since: datetime,
        limit: int,
    ) -> tuple[Sequence[RecentRead], int]:
        """Return who read since a day; raises StatementError if lineage is not available.

        Args:
            tables: keys of tables of which every read counts.
            columns: names in lower case, by table key.

        Returns:
            The latest reads, newest first, and how many further ones were left out.
        """
        rows = self.runner.run(sql_recent_reads(tables, columns, since=since, limit=limit))
        readers = int(str(rows[0]["readers"])) if rows else 0
        reads = [read for read in map(_read, rows) if read is not None]
        return reads, readers - len(rows)


NO_LINEAGE: Final = LineageReader(NO_ROWS)
"""Lineage of platforms that record none."""


def _read(row: Row) -> RecentRead | None:
    at = utc_moment(row["last_read"])
    if at is None:
        return None
    column, target = row["source_column"], row["target_table"]
    return RecentRead(
        table=str(row["source_table"]),
        column=None if column is None else str(column),
        entity=" ".join(str(row[key]) for key in ("entity_type", "entity_id") if row[key] is not None),
        who=str(row["created_by"] or ""),
        target=None if target is None else str(target),
        at=at,
    )
