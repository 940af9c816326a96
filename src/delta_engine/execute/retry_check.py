"""Decides by a fresh read of the table whether a statement must be sent again after a lost attempt.

A conflict means that another principal has changed the table since it was read. A lost answer may hide that the
statement succeeded. The new plan of the table must equal exactly the rest of the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from delta_engine.errors import StatementError
from delta_engine.models import QualifiedName
from delta_engine.telemetry.context import command

Reread: TypeAlias = Callable[[QualifiedName], Sequence[str]]
"""Re-reads a table and returns the statements that it needs now; raises StatementError if it cannot."""


class StaleTableError(StatementError):
    """The plan no longer fits a table."""


def has_to_run(planned: Sequence[str], needed: Sequence[str], error: StatementError) -> bool:
    """Return whether the first `planned` statement must be sent again; if not, it succeeded.

    Raises:
        StaleTableError: the table needs something else.
    """
    if list(needed) == list(planned):
        return True
    if list(needed) == list(planned[1:]):
        return False
    raise StaleTableError(
        "another principal changed the table during the run, and the plan does not fit it any more. Check it with "
        f"{command('plan')}, and run again. The platform's answer: {error.message}",
        sql=error.sql,
        **error.facts,
    )
