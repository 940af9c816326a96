"""Runs RESTORE so that no row of another writer is lost: it looks at the table's history before and afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from delta_engine.aspects.restores import RESTORE, RestoreTable
from delta_engine.compile.compiled_plan import Statement
from delta_engine.errors import StatementError
from delta_engine.execute.statement_runner import RetryCheck, StatementRunner, always
from delta_engine.sql.tables import sql_restore
from delta_engine.state.table_queries import LATEST_COMMITS, Commit


@dataclass(frozen=True, slots=True)
class RestoreRunner:
    """Runs the RESTORE of one step.

    Args:
        address: the SQL that addresses the table.
    """

    statements: StatementRunner
    address: str

    def run(self, statement: Statement) -> None:
        """Restore the table, unless that is done already.

        Raises:
            StatementError: it failed, or writers have added rows meanwhile: they are still there.
        """
        sql = statement.sql
        (restore,) = (action for action in statement.actions if isinstance(action, RestoreTable))
        commits = self._commits()
        if restore.is_done_by(commits[0]):
            return  # by a run that was killed right afterwards

        def is_needed(_error: StatementError) -> bool:
            now = self._commits()
            if any(commit.version > commits[0].version and restore.is_done_by(commit) for commit in now):
                return False
            _refuse(restore.lost_rows(now), sql)
            return True

        _refuse(restore.lost_rows(commits), sql)
        taken_back, ours = self._restore(sql, commits[0].version, is_needed)
        if taken_back:
            self._bring_back(sql, taken_back, ours)

    def _restore(self, sql: str, last_seen: int, is_needed: RetryCheck) -> tuple[list[Commit], int]:
        """Run RESTORE; return the commits between the last look and its own, and the version of its own."""
        self.statements.run(sql, is_needed)
        later = [commit for commit in self._commits() if commit.version > last_seen]
        ours = min((commit.version for commit in later if commit.operation == RESTORE), default=last_seen)
        return [commit for commit in later if commit.version < ours], ours

    def _bring_back(self, sql: str, taken_back: list[Commit], ours: int) -> None:
        """Restore the version that had the rows of other writers."""
        again, _ = self._restore(sql_restore(self.address, ours - 1), ours, always)
        if again:
            raise StatementError(
                f"writers added rows before and after RESTORE: those of versions {_versions(again)} are no longer in "
                f"the table, but in its history. Read them with {self.address} VERSION AS OF {again[0].version}, and "
                "add them again",
                sql=sql,
                error_class=None,
            )
        _refuse(taken_back, sql)

    def _commits(self) -> list[Commit]:
        return self.statements.commits(self.address, LATEST_COMMITS)


def _refuse(commits: Iterable[Commit], sql: str) -> None:
    if lost := list(commits):
        raise StatementError(
            f"others have written since (versions {_versions(lost)}), and RESTORE would take that back: the table is "
            "as it was",
            sql=sql,
            error_class=None,
        )


def _versions(commits: Sequence[Commit]) -> str:
    return ", ".join(str(commit.version) for commit in reversed(commits))
