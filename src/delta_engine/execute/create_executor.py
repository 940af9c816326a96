"""Creates tables: each in one statement, so that it exists whole or not at all, wherever the platform can."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from delta_engine import aspects
from delta_engine.actions import CreateTable
from delta_engine.aspects.aspect import CreateClauses, RenderContext
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.capabilities import Capabilities, InlineClustering
from delta_engine.backends.error_conditions import is_existing_table
from delta_engine.errors import StatementError
from delta_engine.execute.ddl import DeltaDDL, InterruptedStatementsError
from delta_engine.sql import sql_alter_clustering, sql_create_table

_LAST_OF_BMP = 0xFFFF


class CreateExecutor:
    """Applies `CreateTable`.

    Args:
        ddl: runs the statement.
        addressing: how tables are addressed.
        capabilities: what the platform can do.
    """

    def __init__(self, ddl: DeltaDDL, addressing: Addressing, capabilities: Capabilities) -> None:
        self._ddl = ddl
        self._addressing = addressing
        self._capabilities = capabilities

    def apply(self, action: CreateTable) -> int:
        """Create the table with columns, comments, properties, clustering and key; return the statements run.

        Raises:
            InterruptedStatementsError: a statement failed.
        """
        try:
            return self._ddl.run(self._statements(action))
        except InterruptedStatementsError as failure:
            if failure.statements_done or not is_existing_table(failure):
                raise
            raise self._hidden(failure) from failure

    def _statements(self, action: CreateTable) -> Iterator[str]:
        context = RenderContext(action.table, self._addressing, self._capabilities)
        clauses = aspects.create_clauses(action.desired, context)
        whole = _statement(context.table, clauses)
        if clauses.cluster_by and not self._takes_clustering(whole):
            yield _statement(context.table, replace(clauses, cluster_by=()))
            yield sql_alter_clustering(context.table, clauses.cluster_by)
        else:
            yield whole

    def _hidden(self, failure: InterruptedStatementsError) -> InterruptedStatementsError:
        """Return the refusal of a table that nobody saw: Unity Catalog leaves out what a principal may not see."""
        message = (
            f"it was absent or not visible to {self._ddl.current_user()} when the catalog was read, and it is there. "
            f"Ask for BROWSE and SELECT on it, or run again if somebody has just made it. {failure.message}"
        )
        cause = StatementError(message, sql=failure.sql, **failure.facts)
        return InterruptedStatementsError(cause, 0)

    def _takes_clustering(self, statement: str) -> bool:
        is_plain = all(ord(char) <= _LAST_OF_BMP for char in statement)
        return is_plain or self._capabilities.inline_clustering is InlineClustering.ANYWHERE


def _statement(table: str, clauses: CreateClauses) -> str:
    return sql_create_table(
        table,
        columns=clauses.columns,
        constraints=clauses.constraints,
        comment=clauses.comment,
        properties=clauses.properties,
        clauses=clauses.clauses,
        cluster_by=clauses.cluster_by,
    )
