"""What Delta's log says about who changed a table, for drift reports: asked of changed tables alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from delta_engine.backends.addressing import Addressing
from delta_engine.backends.sql_runner import Row, SqlRunner, query_threads, utc_moment
from delta_engine.errors import StatementError
from delta_engine.models import QualifiedName, read_only
from delta_engine.sql import sql_describe_history

COMMITS_TO_LOOK_AT = 1000
"""How far back to look: a table that was written to more often since then keeps part of its secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit of a table (Delta documentation, "History schema").

    Args:
        version: the table's version that it made.
        at: when, UTC.
        who: the user or service principal; None where the platform has no users.
        operation: what it was, such as `ADD COLUMNS`.
        parameters: what it was about; lists and columns as JSON text.
        job: the job that made it, its name or id.
        notebook: the notebook that made it, its id.
    """

    version: int
    at: datetime | None
    who: str | None
    operation: str
    parameters: Mapping[str, str]
    job: str | None = None
    notebook: str | None = None


class TableHistoryReader(Protocol):
    """Reads the latest commits of tables."""

    def read(self, tables: Sequence[QualifiedName]) -> Mapping[str, tuple[Commit, ...]]:
        """Return commits by `QualifiedName.key`, newest first; a table that cannot be asked is left out."""
        ...


class SqlTableHistoryReader:
    """Asks in SQL: DESCRIBE HISTORY, a statement per table.

    Args:
        runner: runs the statements.
        addressing: how tables are addressed.
        parallelism: how many statements to have under way at once, at most.
    """

    def __init__(self, runner: SqlRunner, addressing: Addressing, *, parallelism: int = 4) -> None:
        self._runner = runner
        self._addressing = addressing
        self._parallelism = parallelism

    def read(self, tables: Sequence[QualifiedName]) -> Mapping[str, tuple[Commit, ...]]:
        """Return commits by `QualifiedName.key`; see `TableHistoryReader.read`."""
        with query_threads(self._parallelism) as pool:
            found = pool.map(self._read, tables)
            return {
                table.key: commits
                for table, commits in zip(tables, found, strict=True)
                if commits is not None
            }

    def _read(self, table: QualifiedName) -> tuple[Commit, ...] | None:
        sql = sql_describe_history(self._addressing.table(table), COMMITS_TO_LOOK_AT)
        try:
            return tuple(map(_commit, self._runner.run(sql)))
        except StatementError:  # the report is poorer without it, and still true
            return None


def _commit(row: Row) -> Commit:
    parameters = row.get("operationParameters")
    return Commit(
        version=int(str(row["version"])),
        at=utc_moment(row.get("timestamp")),
        who=_text(row.get("userName")) or _text(row.get("userId")),
        operation=_text(row.get("operation")) or "",
        parameters=read_only(
            {str(key): str(value) for key, value in parameters.items()}
            if isinstance(parameters, Mapping)
            else {}
        ),
        job=_part(row.get("job"), "jobName") or _part(row.get("job"), "jobId"),
        notebook=_part(row.get("notebook"), "notebookId"),
    )


def _part(struct: object, name: str) -> str | None:
    return _text(struct.get(name)) if isinstance(struct, Mapping) else None


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)
