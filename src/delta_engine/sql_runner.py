"""The port through which every statement reaches a platform, and threads that ask it many things at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Protocol, TypeAlias, runtime_checkable

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


@runtime_checkable
class InterruptibleSqlRunner(SqlRunner, Protocol):
    """One whose statements can take as long as a warehouse needs to start, and can be given up."""

    def interrupt(self) -> None:
        """Give up the statements that are under way in all threads; later ones run as ever."""
        ...


@contextmanager
def asking(runner: SqlRunner, parallelism: int) -> Iterator[ThreadPoolExecutor]:
    """Open threads that ask a runner.

    After an error nothing more is asked. Ctrl-C, which only the main thread hears, also gives up what is under way,
    so that nobody waits for it.

    Args:
        runner: what they ask.
        parallelism: how many threads, at most.
    """
    with ThreadPoolExecutor(parallelism, thread_name_prefix="ask") as pool:
        try:
            yield pool
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, (KeyboardInterrupt, SystemExit)) and isinstance(
                runner, InterruptibleSqlRunner
            ):
                runner.interrupt()
            raise


def utc_moment(value: object) -> datetime | None:
    """Return a timestamp of a result as UTC, and None for a NULL.

    Spark gives timestamps to Python as naive local times, whatever the session's time zone; others give text.
    """
    if value is None:
        return None
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment.astimezone(timezone.utc)
