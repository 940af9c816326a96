"""How many rows tables have: what people want to know before one is dropped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from delta_engine.backends.addressing import Addressing
from delta_engine.backends.sql_runner import SqlRunner, query_threads
from delta_engine.models import QualifiedName
from delta_engine.sql import sql_count_rows


class RowCounter(Protocol):
    """Counts rows."""

    def count(self, tables: Iterable[QualifiedName]) -> dict[str, int]:
        """Return how many rows each table has, by `QualifiedName.key`.

        Raises:
            StatementError: one cannot be counted.
        """
        ...


class SqlRowCounter:
    """Counts rows with a statement per table.

    Args:
        runner: runs the statements.
        addressing: how tables are addressed.
        parallelism: how many statements to have under way at once, at most.
    """

    def __init__(self, runner: SqlRunner, addressing: Addressing, *, parallelism: int = 4) -> None:
        self._runner = runner
        self._addressing = addressing
        self._parallelism = parallelism

    def count(self, tables: Iterable[QualifiedName]) -> dict[str, int]:
        """Count in parallel; see `RowCounter.count`."""
        names = list(tables)
        with query_threads(self._parallelism) as pool:
            return {name.key: rows for name, rows in zip(names, pool.map(self._count, names), strict=True)}

    def _count(self, table: QualifiedName) -> int:
        (row,) = self._runner.run(sql_count_rows(self._addressing.table(table)))
        return int(str(row["row_count"]))
