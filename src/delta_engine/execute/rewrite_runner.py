"""Verifies a rewrite by the versions of the table before and after it, and takes it back if rows are missing."""

from __future__ import annotations

from typing import Final

from delta_engine.actions import Phase
from delta_engine.aspects.restores import REPLACES, RestoreTable
from delta_engine.backends.error_conditions import is_unknown_column
from delta_engine.compile.compiled_plan import Statement
from delta_engine.errors import StatementError
from delta_engine.execute.restore_runner import restore
from delta_engine.execute.statement_runner import StatementRunner, always
from delta_engine.sql.backfills import at_versions
from delta_engine.sql.tables import sql_restore

_LATEST_COMMITS: Final = 100


def verify_rewrite(statements: StatementRunner, statement: Statement) -> None:
    """Compare the rows before and after a rewrite: that of this step, or of a run which was killed right after it.

    Raises:
        StatementError: they differ; without a later commit, the former version is restored.
    """
    commits = statements.commits(_LATEST_COMMITS)
    rewrite = next((commit for commit in commits if commit.operation.startswith(REPLACES)), None)
    if rewrite is None:
        return  # it is not among the latest commits: an earlier run went on from it
    before = rewrite.version - 1
    try:
        statements.run(at_versions(statement.sql, before, rewrite.version), always)
    except StatementError as error:
        if is_unknown_column(error):
            return  # a later run has verified it, and changed columns before it ended
        if error.is_outcome_unknown or statements.commits(_LATEST_COMMITS)[0].version != rewrite.version:
            raise  # a later commit may be of a writer
        _take_back(statements, before, rewrite.version, error)
        raise StatementError(
            f"{error.message} The table was restored to version {before}",
            sql=error.sql,
            error_class=None,
        ) from error


def _take_back(statements: StatementRunner, before: int, rewrite: int, reason: StatementError) -> None:
    action = RestoreTable(version=before, until=rewrite, is_rewritten=True)
    sql = sql_restore(statements.address, before)
    try:
        restore(statements, Statement(sql=sql, actions=(action,), phase=Phase.RESTORE_TABLE))
    except StatementError as error:
        message = f"{reason.message}; it could not be restored: {error.message}"
        raise StatementError(message, sql=error.sql, error_class=None) from reason
