"""The port through which every statement reaches a platform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Protocol, TypeAlias

Row: TypeAlias = Mapping[str, object]
"""One row of a result, by column name."""


class SqlRunner(Protocol):
    """Runs one SQL statement at a time; safe to call from several threads."""

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement.

        Returns:
            The rows, empty for statements that return none.

        Raises:
            StatementError: the platform refused it.
        """
        ...


def utc_moment(value: object) -> datetime | None:
    """Return a timestamp of a result as UTC, and None for a NULL.

    Spark gives timestamps to Python as naive local times, whatever the session's time zone; others give text.
    """
    if value is None:
        return None
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment.astimezone(timezone.utc)
