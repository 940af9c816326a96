"""Aligns existing tables: the statements of each phase, in the order of the phases."""

from __future__ import annotations

from delta_engine import aspects
from delta_engine.actions import AlignTable
from delta_engine.aspects.aspect import RenderContext
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.cancellation import StoppedError
from delta_engine.backends.capabilities import Capabilities
from delta_engine.errors import StatementError
from delta_engine.execute.ddl import DeltaDDL, InterruptedStatementsError
from delta_engine.sql import sql_drop_constraint, sql_on_streaming_table, sql_references_to


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
        """Run the table's statements one after the other; return how many ran.

        Raises:
            InterruptedStatementsError: a statement failed.
        """
        context = RenderContext(action.table, self._addressing, self._capabilities, action.is_streaming)
        statements = aspects.render(action, context)
        try:
            return self._ddl.run(
                map(sql_on_streaming_table, statements) if action.is_streaming else statements
            )
        except InterruptedStatementsError as failure:
            if failure.is_outcome_unknown or isinstance(failure.cause, StoppedError):
                raise
            for drop in action.of_type(PrimaryKeyDrop):
                if failure.sql == sql_drop_constraint(context.table, drop.name):
                    raise self._referenced(drop, failure) from failure
            raise

    def _referenced(
        self, drop: PrimaryKeyDrop, failure: InterruptedStatementsError
    ) -> InterruptedStatementsError:
        """Return the refusal of a drop for which the plan knows no reason: readers see one catalog at a time."""
        message = (
            f"{failure.message} If it is that a foreign key references primary key {drop.name}: none was seen when the "
            f"catalog was read. It belongs to a table of another catalog, or to one that "
            f"{self._ddl.current_user()} may not see; {sql_references_to(drop.name)} shows those of all catalogs "
            "that you may see. Drop it first, or leave the primary key as it is."
        )
        cause = StatementError(message, sql=failure.sql, **failure.facts)
        return InterruptedStatementsError(cause, failure.statements_done)
