"""Runs statements that compute values for existing rows, and the queries that verify them.

All of them may run again at any time: a fill touches only rows that need a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from delta_engine.actions import Phase
from delta_engine.aspects.backfill_actions import (
    FillColumn,
    FillSwappedColumn,
    VerifyRows,
    VerifySwappedRows,
    targets,
)
from delta_engine.aspects.conversions import is_reserved_name
from delta_engine.aspects.restores import MERGE, UPDATE, may_be_fill
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.compiled_plan import Statement
from delta_engine.execute.statement_runner import StatementRunner, always
from delta_engine.sql.backfills import AFTER, BEFORE, at_versions
from delta_engine.sql.queries import sql_describe_history

MOST_ROUNDS: Final = 10
"""How often a fill is repeated while writers add rows; the fill after the swap gets the rest."""

_ROUNDS_OF_GIVEN_VALUES: Final = 2
"""The same for values that differ each time: no condition knows the rows that stay without one."""

_Verifying: TypeAlias = VerifyRows | VerifySwappedRows
_VERIFYING: Final = (Phase.VERIFY_ROWS, Phase.VERIFY_SWAPPED_ROWS)
_LATEST_COMMITS: Final = 1000


@dataclass(slots=True)
class FillRunner:
    """Runs the fills of one step and verifies them by the versions of the table that they have written.

    Args:
        address: the SQL that addresses the table.
    """

    statements: StatementRunner
    address: str
    _since: int = -1

    def run(self, statement: Statement) -> None:
        """Run a fill until no row lacks a value, or a query that verifies it.

        Raises:
            StatementError: it failed, or the rows are not as they should be.
        """
        if statement.phase in _VERIFYING:
            self._verify(statement)
            return
        if self._since < 0:
            self._since = max((_version(row) for row in self._history(1)), default=-1)
        is_given = statement.sql.startswith(MERGE)
        for _ in range(_ROUNDS_OF_GIVEN_VALUES if is_given else MOST_ROUNDS):
            rows = self.statements.run(statement.sql, always)
            has_filled = any(int(str(row.get("num_affected_rows") or 0)) for row in rows)
            if not has_filled or self._saw_all(statement):
                return

    def _saw_all(self, statement: Statement) -> bool:
        """Whether a fill is the latest commit, and no other one came between its reading and its writing."""
        fills = [one for one in statement.actions if isinstance(one, FillColumn | FillSwappedColumn)]
        filled = targets(fills, are_deterministic=statement.sql.startswith(UPDATE))
        return any(
            self._is_fill(row, filled) and str(row.get("readVersion")) == str(_version(row) - 1)
            for row in self._history(1)
        )

    def _verify(self, statement: Statement) -> None:
        """Look at the rows, or compare those before and after each fill: of this run, or of a killed one before it."""
        if not (BEFORE in statement.sql and AFTER in statement.sql):
            self.statements.run(statement.sql, always)
            return
        verified = [one for one in statement.actions if isinstance(one, _Verifying)]
        fills = [fill for one in verified for fill in one.fills]
        filled = {
            UPDATE: targets(fills, are_deterministic=True),
            MERGE: targets(fills, are_deterministic=False),
        }
        versions = [
            _version(row)
            for row in reversed(self._history(_LATEST_COMMITS))
            if self._is_fill(row, filled.get(str(row.get("operation")), ()))
        ]
        for first, last in _without_gaps(versions):
            self.statements.run(at_versions(statement.sql, first - 1, last), always)

    def _is_fill(self, row: Row, filled: Sequence[str]) -> bool:
        """Whether a commit has filled the columns: its condition names them all."""
        if not filled or not may_be_fill(str(row["operation"]), row.get("operationParameters")):
            return False
        condition = str(row.get("operationParameters")).lower()
        is_of_engine = _version(row) > self._since or any(map(is_reserved_name, filled))
        return is_of_engine and all(name.lower() in condition for name in filled)

    def _history(self, commits: int) -> Sequence[Row]:
        return self.statements.runner.run(sql_describe_history(self.address, commits))


def _without_gaps(versions: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and the last of versions that follow each other: no other commit is between them."""
    found: list[tuple[int, int]] = []
    for version in versions:
        if found and version == found[-1][1] + 1:
            found[-1] = (found[-1][0], version)
        else:
            found.append((version, version))
    return found


def _version(row: Row) -> int:
    return int(str(row["version"]))
