"""Whether a statement that did not get through is still what its table needs: a fresh read says so.

A conflict means that somebody else changed the table since it was read, and a lost answer may hide that the statement
is done. So the table is planned once more: what it needs now has to be what is left of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from delta_engine.errors import StatementError
from delta_engine.models import QualifiedName
from delta_engine.telemetry.context import command

Look = Callable[[QualifiedName], Sequence[str]]
"""Reads a table anew, and returns the statements that it needs now. Raises StatementError if it cannot."""


class StaleTableError(StatementError):
    """What was planned for a table does not fit it any more."""


class StillNeeded:
    """Compares what is left of a plan with what tables need now.

    Args:
        script: makes all statements of the plan, by the keys of their tables; called only if ever asked.
        look: reads and plans one table.
    """

    def __init__(self, script: Callable[[], Mapping[str, Sequence[str]]], look: Look) -> None:
        self._script = script
        self._look = look

    def __call__(self, table: QualifiedName, done: int, error: StatementError) -> bool:
        """Return whether a statement has to be sent again; if not, it is done.

        Args:
            table: its table.
            done: how many statements of the table ran before it.
            error: why it did not get through.

        Raises:
            StaleTableError: the plan does not fit the table any more.
            StatementError: nobody can tell.
        """
        left, needed = list(self._planned.get(table.key, ())[done:]), list(self._look(table))
        if needed == left:
            return True
        if needed == left[1:]:
            return False
        raise StaleTableError(
            "somebody else changed the table while it was being changed, and what was planned does not fit it any "
            f"more. Look at it with {command('plan')}, and run again. The platform said: {error.message}",
            sql=error.sql,
            **error.facts,
        )

    @cached_property
    def _planned(self) -> Mapping[str, Sequence[str]]:
        return self._script()
