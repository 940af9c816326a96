"""Delta's own identity of a table: its id, and the version of its log."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

import msgspec

from delta_engine.backends.addressing import Addressing, PathAddressing
from delta_engine.backends.sql_runner import SqlRunner, query_threads
from delta_engine.errors import StatementError
from delta_engine.models import QualifiedName
from delta_engine.sql import sql_describe_detail, sql_describe_history


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """Where a table stands.

    Args:
        table_id: Delta's id; None where it was not asked for. A table made anew under the same name has another.
        version: the latest version of its log.
    """

    table_id: str | None
    version: int


class TableVersionReader(Protocol):
    """Reads the versions of tables that were just changed: directly, never through `information_schema`."""

    def read(
        self, tables: Sequence[QualifiedName], *, with_id: Collection[str]
    ) -> Mapping[str, TableVersion]:
        """Return versions by `QualifiedName.key`; a table that cannot be asked is left out.

        Args:
            tables: which ones.
            with_id: the keys of those whose id is wanted too, which may cost a statement more.
        """
        ...


class SqlTableVersionReader:
    """Asks in SQL: a statement per table, and one more for its id.

    Args:
        runner: runs the statements.
        addressing: how tables are addressed.
        parallelism: how many statements to have under way at once, at most.
    """

    def __init__(self, runner: SqlRunner, addressing: Addressing, *, parallelism: int = 4) -> None:
        self._runner = runner
        self._addressing = addressing
        self._parallelism = parallelism

    def read(
        self, tables: Sequence[QualifiedName], *, with_id: Collection[str]
    ) -> Mapping[str, TableVersion]:
        """Return versions by `QualifiedName.key`; see `TableVersionReader.read`."""
        with query_threads(self._parallelism) as pool:
            found = pool.map(lambda table: self._read(table, table.key in with_id), tables)
            return {
                table.key: version
                for table, version in zip(tables, found, strict=True)
                if version is not None
            }

    def _read(self, table: QualifiedName, with_id: bool) -> TableVersion | None:
        address = self._addressing.table(table)
        try:
            (commit,) = self._runner.run(sql_describe_history(address, 1))
            detail = self._runner.run(sql_describe_detail(address))[0] if with_id else {"id": None}
        except StatementError:  # the record is poorer without it, and still true
            return None
        table_id = detail["id"]
        return TableVersion(
            table_id=None if table_id is None else str(table_id), version=int(str(commit["version"]))
        )


class _Metadata(msgspec.Struct):
    id: str


class _LogAction(msgspec.Struct):
    metaData: _Metadata | None = None  # noqa: N815 - its name in Delta's log


_COMMITS_TO_LOOK_AT = 10


class DeltaLogVersionReader:
    """Looks into the logs of tables by path: milliseconds, where DESCRIBE DETAIL takes most of a second.

    Args:
        addressing: where the tables' folders are.
    """

    def __init__(self, addressing: PathAddressing) -> None:
        self._addressing = addressing

    def read(
        self,
        tables: Sequence[QualifiedName],
        *,
        with_id: Collection[str],  # noqa: ARG002 - the id costs nothing here
    ) -> Mapping[str, TableVersion]:
        """Return versions by `QualifiedName.key`; see `TableVersionReader.read`."""
        found = ((table.key, self._read(table)) for table in tables)
        return {key: version for key, version in found if version is not None}

    def _read(self, table: QualifiedName) -> TableVersion | None:
        log = self._addressing.folder(table) / "_delta_log"
        commits = sorted((path for path in log.glob("*.json") if path.stem.isdigit()), reverse=True)
        if not commits:
            return None
        ids = (_table_id(commit) for commit in islice(commits, _COMMITS_TO_LOOK_AT))
        return TableVersion(
            table_id=next((table_id for table_id in ids if table_id), None), version=int(commits[0].stem)
        )


def _table_id(commit: Path) -> str | None:
    """Return the table's id, if the commit changed metadata (Delta protocol, "Change Metadata")."""
    for line in commit.read_bytes().splitlines():
        action = msgspec.json.decode(line, type=_LogAction)
        if action.metaData is not None:
            return action.metaData.id
    return None
