"""The port through which every statement reaches a platform, and threads that ask it many things at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Protocol, TypeAlias

from delta_engine.backends.cancellation import Stop, current_stop
from delta_engine.telemetry.context import current_context, learn

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


@contextmanager
def asking(parallelism: int) -> Iterator[ThreadPoolExecutor]:
    """Open threads that ask a runner many things.

    After an error, and after Ctrl-C, which only the main thread hears, nothing more is asked, and what is under way is
    given up, so that nobody waits for it.

    Args:
        parallelism: how many threads, at most.
    """
    stop, known = Stop(within=current_stop()), current_context()

    def begin() -> None:
        stop.heed()
        learn(**known)

    with (
        ThreadPoolExecutor(parallelism, thread_name_prefix="ask", initializer=begin) as pool,
        stop.at_errors(),
    ):
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def utc_moment(value: object) -> datetime | None:
    """Return a timestamp of a result as UTC, and None for a NULL.

    Spark gives timestamps to Python as naive local times, whatever the session's time zone; others give text.
    """
    if value is None:
        return None
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment.astimezone(timezone.utc)
