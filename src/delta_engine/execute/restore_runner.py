"""Runs RESTORE so that no row of another writer is lost: it looks at the table's history before and afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from delta_engine.aspects.restores import RESTORE, RestoreTable
from delta_engine.compile.compiled_plan import Statement
from delta_engine.errors import StatementError
from delta_engine.execute.statement_runner import RetryCheck, StatementRunner, always
from delta_engine.sql.tables import sql_restore
from delta_engine.state.table_queries import LATEST_COMMITS, Commit


def restore(statements: StatementRunner, statement: Statement) -> None:
    """Run RESTORE, unless the table is restored already.

    Raises:
        StatementError: it failed, or writers have added rows meanwhile: they are still there.
    """
    sql = statement.sql
    (action,) = (action for action in statement.actions if isinstance(action, RestoreTable))
    commits = statements.commits(LATEST_COMMITS)
    if action.is_done_by(commits[0]):
        return  # by a run that was killed right afterwards

    def is_needed(_error: StatementError) -> bool:
        now = statements.commits(LATEST_COMMITS)
        if any(commit.version > commits[0].version and action.is_done_by(commit) for commit in now):
            return False
        _refuse(action.lost_rows(now), sql)
        return True

    _refuse(action.lost_rows(commits), sql)
    taken_back, ours = _restored(statements, sql, commits[0].version, is_needed)
    if taken_back:
        _bring_back(statements, sql, taken_back, ours)


def _restored(
    statements: StatementRunner, sql: str, last_seen: int, is_needed: RetryCheck
) -> tuple[list[Commit], int]:
    """Run RESTORE; return the commits between the last look and its own, and the version of its own."""
    statements.run(sql, is_needed)
    later = [commit for commit in statements.commits(LATEST_COMMITS) if commit.version > last_seen]
    ours = min((commit.version for commit in later if commit.operation == RESTORE), default=last_seen)
    return [commit for commit in later if commit.version < ours], ours


def _bring_back(statements: StatementRunner, sql: str, taken_back: list[Commit], ours: int) -> None:
    """Restore the version that had the rows of other writers."""
    table = statements.address
    again, _ = _restored(statements, sql_restore(table, ours - 1), ours, always)
    if again:
        raise StatementError(
            f"writers added rows before and after RESTORE: those of versions {_versions(again)} are no longer in "
            f"the table, but in its history. Read them with {table} VERSION AS OF {again[0].version}, and "
            "add them again",
            sql=sql,
            error_class=None,
        )
    _refuse(taken_back, sql)


def _refuse(commits: Iterable[Commit], sql: str) -> None:
    if lost := list(commits):
        raise StatementError(
            f"other writers added versions ({_versions(lost)}), which RESTORE would undo. The table did not "
            "change",
            sql=sql,
            error_class=None,
        )


def _versions(commits: Sequence[Commit]) -> str:
    return ", ".join(str(commit.version) for commit in reversed(commits))
