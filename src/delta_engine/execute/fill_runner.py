"""Runs statements that compute values for existing rows, and the queries that verify them.

All of them may run again at any time: a fill touches only rows that need a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, TypeAlias

from delta_engine.actions import Phase
from delta_engine.aspects.backfill_actions import (
    FillColumn,
    FillSwappedColumn,
    VerifyRows,
    VerifySwappedRows,
    targets,
)
from delta_engine.aspects.conversions import is_reserved_name, new_name, old_name
from delta_engine.aspects.restores import (
    COLUMN_CHANGES,
    MERGE,
    RENAME,
    UPDATE,
    may_be_fill,
    may_change_values,
    names_column,
    unquoted,
)
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.compiled_plan import Statement
from delta_engine.execute.statement_runner import StatementRunner, always
from delta_engine.sql.backfills import AFTER, BEFORE, at_versions, sql_refuse_rows
from delta_engine.sql.queries import sql_describe_history
from delta_engine.sql.text import quote_ident
from delta_engine.state.table_queries import LATEST_COMMITS, commit_of

MOST_ROUNDS: Final = 10
"""How often a fill is repeated while writers add rows; the fill after the swap gets the rest."""

_ROUNDS_OF_GIVEN_VALUES: Final = 2
"""The same for values that differ each time: no condition knows the rows that stay without one."""

_Verifying: TypeAlias = VerifyRows | VerifySwappedRows
_VERIFYING: Final = (Phase.VERIFY_ROWS, Phase.VERIFY_SWAPPED_ROWS)


@dataclass(slots=True)
class FillRunner:
    """Runs the fills of one step and verifies them by the versions of the table that they have written."""

    statements: StatementRunner
    _since: int = -1
    _seen: int = -1
    _before_swap: dict[str, Statement] = field(default_factory=dict)
    _read_at: dict[str, int] = field(default_factory=dict)
    _compared: set[tuple[int, int]] = field(default_factory=set)

    def run(self, statement: Statement) -> None:
        """Run a fill until no row lacks a value, or a query that verifies it.

        Raises:
            StatementError: it failed, or the rows are not as they should be.
        """
        if statement.phase is Phase.VERIFY_ROWS:
            self._before_swap[statement.sql] = statement
        if statement.phase not in _VERIFYING:
            self._fill(statement)
            return
        history = self._verify(statement)
        if statement.phase is Phase.VERIFY_SWAPPED_ROWS:
            self._refuse_outdated_rows(statement, history)
        elif _compares_versions(statement):
            self._fill_changed_rows(statement)

    def _fill(self, statement: Statement) -> None:
        verb = statement.sql.partition(" ")[0]
        if statement.phase is Phase.FILL_COLUMNS:
            self._before_swap[verb] = statement  # the last one is of all rows
        if self._since < 0:
            self._since = self._seen = max((_version(row) for row in self._history(1)), default=-1)
        for _ in range(_ROUNDS_OF_GIVEN_VALUES if verb == MERGE else MOST_ROUNDS):
            self._read_at[verb] = self._seen
            rows = self.statements.run(statement.sql, always)
            has_filled = any(int(str(row.get("num_affected_rows") or 0)) for row in rows)
            if not has_filled:
                return
            if self._saw_all(statement):
                self._read_at[verb] = self._seen
                return

    def _fill_changed_rows(self, verifying: Statement) -> None:
        """Fill and verify again if writers changed rows since the last fill, until it is the last change of rows."""
        if not any(isinstance(fill, FillColumn) and fill.is_converted for fill in _fills(verifying)):
            return  # a present value stays
        for _ in range(MOST_ROUNDS):
            last_seen, filled = min(self._read_at.values(), default=-1), _targets(verifying)
            later = [row for row in self._history(LATEST_COMMITS) if _version(row) > last_seen]
            if not any(self._may_change_values(row, filled) for row in later):
                return
            again = list(self._before_swap.values())
            for statement in again:
                if statement.phase is Phase.FILL_COLUMNS:
                    self._fill(statement)
            for statement in again:
                if statement.phase is Phase.VERIFY_ROWS:
                    self._verify(statement)

    def _refuse_outdated_rows(self, verifying: Statement, history: Sequence[Row]) -> None:
        """Fail if writers changed former values between the last fill and the swap: the new ones are of before that."""
        for fill in _fills(verifying):
            if not (isinstance(fill, FillSwappedColumn) and fill.is_deterministic):
                continue
            swap = next((_version(row) for row in history if _sets_aside(row, fill.name)), -1)
            filled = {UPDATE: [new_name(fill.name)], MERGE: [new_name(fill.name)]}
            earlier = [row for row in history if _version(row) < swap]
            since = next((_version(row) for row in earlier if self._is_own(row, filled)), -1)
            between = [row for row in earlier if _version(row) > since]
            if any(self._may_change_values(row, filled) for row in between):
                self.statements.run(_outdated_rows(self.statements.address, swap, fill), always)

    def _may_change_values(self, row: Row, filled: Mapping[str, Sequence[str]]) -> bool:
        """Whether a commit of another writer may have changed values of existing rows."""
        return not self._is_own(row, filled) and may_change_values(commit_of(row))

    def _is_own(self, row: Row, filled: Mapping[str, Sequence[str]]) -> bool:
        return self._is_fill(row, filled.get(str(row.get("operation")), ()))

    def _saw_all(self, statement: Statement) -> bool:
        """Whether a fill is the latest commit, and no other one came between its reading and its writing."""
        fills = [action for action in statement.actions if isinstance(action, FillColumn | FillSwappedColumn)]
        filled = targets(fills, are_deterministic=statement.sql.startswith(UPDATE))
        latest = self._history(1)
        self._seen = max(map(_version, latest), default=self._seen)
        return any(
            self._is_fill(row, filled) and str(row.get("readVersion")) == str(_version(row) - 1)
            for row in latest
        )

    def _verify(self, statement: Statement) -> Sequence[Row]:
        """Look at the rows, or compare those before and after each fill: of this run, or of a killed one before it.

        Returns:
            The history that it has read, latest commit first.
        """
        if not _compares_versions(statement):
            self.statements.run(statement.sql, always)
            return ()
        filled = _targets(statement)
        history = self._history(LATEST_COMMITS)
        since = takewhile(lambda row: not _changes_columns(row), history)
        versions = [_version(row) for row in since if self._is_own(row, filled)][::-1]
        for first, last in _without_gaps(versions):
            if (first, last) not in self._compared:
                self.statements.run(at_versions(statement.sql, first - 1, last), always)
                self._compared.add((first, last))
        return history

    def _is_fill(self, row: Row, filled: Sequence[str]) -> bool:
        """Whether a commit has filled the columns: its condition names them all."""
        if not filled or not may_be_fill(str(row["operation"]), row.get("operationParameters")):
            return False
        is_of_engine = _version(row) > self._since or any(map(is_reserved_name, filled))
        return is_of_engine and all(names_column(row.get("operationParameters"), name) for name in filled)

    def _history(self, commits: int) -> Sequence[Row]:
        return self.statements.runner.run(sql_describe_history(self.statements.address, commits))


def _compares_versions(statement: Statement) -> bool:
    return BEFORE in statement.sql and AFTER in statement.sql


def _fills(verifying: Statement) -> list[FillColumn | FillSwappedColumn]:
    """Return the fills that a statement verifies."""
    return [fill for action in verifying.actions if isinstance(action, _Verifying) for fill in action.fills]


def _targets(verifying: Statement) -> Mapping[str, Sequence[str]]:
    """Return the columns that the verified fills assign, by the operation of their commits."""
    fills = _fills(verifying)
    return {
        UPDATE: targets(fills, are_deterministic=True),
        MERGE: targets(fills, are_deterministic=False),
    }


def _changes_columns(row: Row) -> bool:
    """Whether versions before a commit may lack columns, or have other names; an earlier conversion ends with one."""
    return str(row.get("operation")).startswith(COLUMN_CHANGES)


def _sets_aside(row: Row, column: str) -> bool:
    """Whether a commit gave a column the reserved name of the former one."""
    commit = commit_of(row)
    renamed = commit.parameters.get("newColumnPath", "")
    return commit.operation == RENAME and unquoted(renamed) == unquoted(old_name(column))


def _outdated_rows(address: str, version: int, fill: FillSwappedColumn) -> str:
    """Return the query that fails if the new values did not follow from the former ones at the swap."""
    new, old = quote_ident(new_name(fill.name)), quote_ident(old_name(fill.name))
    outdated = f"{new} IS NOT NULL AND NOT ({new} <=> {fill.value})"
    then = f"{address} VERSION AS OF {version}"
    message = (
        f"rows had another value in {fill.name} when the last fill read them: a writer changed them right before the "
        f"swap. See them: SELECT * FROM {then} WHERE {outdated}. Correct them from {old}, and drop that column"
    )
    return sql_refuse_rows(then, outdated, message)


def _without_gaps(versions: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and the last of versions that follow each other: no other commit is between them."""
    ranges: list[tuple[int, int]] = []
    for version in versions:
        if ranges and version == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], version)
        else:
            ranges.append((version, version))
    return ranges


def _version(row: Row) -> int:
    return int(str(row["version"]))
