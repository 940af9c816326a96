"""Creates tables: each in one statement, so that it exists whole or not at all."""

from __future__ import annotations

from delta_engine import aspects
from delta_engine.actions import CreateTable
from delta_engine.addressing import Addressing
from delta_engine.capabilities import Capabilities
from delta_engine.execute.ddl import DeltaDDL
from delta_engine.sql import sql_create_table


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
        """Create the table with columns, comments, properties and key; return the statements run."""
        return self._ddl.run([self._statement(action)])

    def _statement(self, action: CreateTable) -> str:
        clauses = aspects.create_clauses(action.desired, self._capabilities)
        return sql_create_table(
            self._addressing.table(action.table),
            columns=clauses.columns,
            constraints=clauses.constraints,
            comment=clauses.comment,
            properties=clauses.properties,
            cluster_by=clauses.cluster_by,
        )
