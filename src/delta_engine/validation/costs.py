"""Estimates what a plan rewrites, before it runs: from the tables' own metadata, and only for those that need it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from statistics import median
from typing import Final

from delta_engine.actions import AlignTable, Cost, TablePlan
from delta_engine.aspects.backfill_actions import FillColumn
from delta_engine.aspects.columns import ColumnAdd
from delta_engine.aspects.partitioning import RewriteTable
from delta_engine.aspects.storage import RETURNS_FOR_DAYS, SetManaged
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.sql_runner import Row, SqlRunner, query_each
from delta_engine.errors import StatementError
from delta_engine.sql.backfills import sql_files_to_fill
from delta_engine.sql.queries import sql_count_rows, sql_describe_detail, sql_describe_history
from delta_engine.state.states import CatalogState, TableState

KEPT_FILES: Final = "delta.deletedFileRetentionDuration"
"""The property that says how long the files of former versions are kept."""

KEPT_BY_DEFAULT: Final = "interval 7 days"
"""Its default (Delta documentation, "Delta table properties reference")."""

_LATEST_COMMITS: Final = 50
_WRITTEN: Final = ("numRemovedBytes", "numAddedBytes", "numOutputBytes")
"""The metrics of commits that say how many bytes were written (Delta documentation, "Operation metrics")."""


@dataclass(frozen=True, slots=True)
class CostEstimator:
    """Asks tables how large they are, and how fast earlier commits wrote them: three statements, in parallel."""

    runner: SqlRunner
    addressing: Addressing
    _: KW_ONLY
    parallelism: int = 4

    def with_costs(self, plan: TablePlan, observed: CatalogState) -> TablePlan:
        """Return a plan with the costs of the tables whose rows it rewrites; unreadable sizes stay unknown."""
        written = [align for align in plan.align_tables if align.writes_rows]
        if not written:
            return plan
        estimates = query_each(
            lambda align: self._cost(align, observed.table(align.table)), written, self.parallelism
        )
        costs = {align.table.key: cost for align, cost in estimates}
        return plan.with_aligned_tables(
            replace(align, cost=costs.get(align.table.key)) for align in plan.align_tables
        )

    def _cost(self, align: AlignTable, observed: TableState) -> Cost:
        table = self.addressing.table(observed.former_name or align.table)
        detail = self._row(sql_describe_detail(table))
        rows = _number(self._row(sql_count_rows(table)), "row_count")
        files, size = _number(detail, "numFiles"), _number(detail, "sizeInBytes")
        if conditions := _of_few_rows(align):
            part = self._row(sql_files_to_fill(table, conditions))
            files, size = _number(part, "files"), _number(part, "size")
        passes = len(list(_passes(align)))
        size = None if size is None else size * passes
        speed = self._bytes_per_second(table) if size else None
        return Cost(
            rows=rows,
            files=files,
            size=size,
            seconds=size / speed if size and speed else None,
            kept_for=f"interval {RETURNS_FOR_DAYS} days"
            if align.of_type(SetManaged)
            else observed.table_properties.get(KEPT_FILES, KEPT_BY_DEFAULT),
        )

    def _bytes_per_second(self, table: str) -> float | None:
        """Return the median speed of the latest commits that wrote files; None without any."""
        try:
            commits = self.runner.run(sql_describe_history(table, _LATEST_COMMITS))
        except StatementError:
            return None
        return median(speeds) if (speeds := list(_speeds(commits))) else None

    def _row(self, sql: str) -> Row:
        try:
            return next(iter(self.runner.run(sql)), {})
        except StatementError:  # without a right to read it, the size is not known
            return {}


def _passes(align: AlignTable) -> Iterator[str]:
    """Yield what writes the rows: all fills of a table share one statement."""
    if align.of_type(FillColumn):
        yield "fill"
    if align.of_type(RewriteTable):
        yield "rewrite"
    if align.of_type(SetManaged):
        yield "copy"


def _of_few_rows(align: AlignTable) -> list[str]:
    """Return the conditions of the rows to fill, if only rows without a value are written; empty if all may be."""
    fills, added = align.of_type(FillColumn), {add.desired.key for add in align.of_type(ColumnAdd)}
    is_whole = any(fill.is_converted or fill.name.lower() in added for fill in fills)
    is_whole = is_whole or bool(align.of_type(RewriteTable) or align.of_type(SetManaged))
    return [] if is_whole else [fill.assignment.condition for fill in fills]


def _speeds(commits: Sequence[Row]) -> Iterator[float]:
    for commit in commits:
        metrics = commit.get("operationMetrics")
        if isinstance(metrics, Mapping):
            seconds = (_number(metrics, "executionTimeMs") or 0) / 1000
            size = next((written for key in _WRITTEN if (written := _number(metrics, key))), None)
            if size and seconds:
                yield size / seconds


def _number(row: Mapping[str, object], key: str) -> int | None:
    value = row.get(key)
    return None if value is None else int(str(value))
