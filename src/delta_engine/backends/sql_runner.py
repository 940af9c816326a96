"""The port for every statement, and threads that run many queries at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Final, Protocol, TypeAlias, TypeVar

from delta_engine.backends.cancellation import Stop, current_stop
from delta_engine.telemetry.context import current_context, learn

Row: TypeAlias = Mapping[str, object]
"""One row of a result, by column name."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class SqlRunner(Protocol):
    """Runs one SQL statement at a time; safe to call from several threads."""

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement and return its rows, if it has any; StatementError if the platform refuses it."""
        ...


class NoRows:
    """Answers each query of a source that the platform does not have: with no rows, without a statement."""

    def run(self, _sql: str) -> Sequence[Row]:
        """Return no rows."""
        return ()


NO_ROWS: Final = NoRows()


@contextmanager
def query_threads(parallelism: int) -> Iterator[ThreadPoolExecutor]:
    """Open threads that run queries; an error or Ctrl-C starts no further query and abandons running ones."""
    stop, context = Stop(within=current_stop()), current_context()

    def begin() -> None:
        stop.make_current()
        learn(**context)

    with (
        ThreadPoolExecutor(parallelism, thread_name_prefix="query", initializer=begin) as pool,
        stop.requested_at_errors(),
    ):
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def query_each(
    query: Callable[[Item], Answer], items: Iterable[Item], parallelism: int
) -> list[tuple[Item, Answer]]:
    """Run a query for each item, several at a time; return the items with their answers, in order."""
    asked = list(items)
    with query_threads(parallelism) as pool:
        return list(zip(asked, pool.map(query, asked), strict=True))


def utc_moment(value: object) -> datetime | None:
    """Return a timestamp of a result as UTC, and None for NULL.

    Spark returns naive local times, whatever the session's time zone; other platforms return text.
    """
    if value is None:
        return None
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment.astimezone(timezone.utc)
