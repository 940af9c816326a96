"""Aligns existing tables: the statements of each phase, in the order of the phases."""

from __future__ import annotations

from delta_engine import aspects
from delta_engine.actions import AlignTable
from delta_engine.addressing import Addressing
from delta_engine.aspects.aspect import RenderContext
from delta_engine.capabilities import Capabilities
from delta_engine.execute.ddl import DeltaDDL
from delta_engine.sql import sql_on_streaming_table


class AlignExecutor:
    """Applies `AlignTable`.

    Args:
        ddl: runs the statements.
        addressing: how tables are addressed.
        capabilities: what the platform can do.
    """

    def __init__(self, ddl: DeltaDDL, addressing: Addressing, capabilities: Capabilities) -> None:
        self._ddl = ddl
        self._addressing = addressing
        self._capabilities = capabilities

    def apply(self, action: AlignTable) -> int:
        """Run the table's statements one after the other; return how many ran."""
        context = RenderContext(action.table, self._addressing, self._capabilities, action.is_streaming)
        statements = aspects.render(action, context)
        return self._ddl.run(map(sql_on_streaming_table, statements) if action.is_streaming else statements)
