"""The port for every statement, threads that run many queries at once, and retries of transient refusals."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timezone
from itertools import count
from typing import Final, Protocol, TypeAlias, TypeVar

from delta_engine.backends.cancellation import Stop, StoppedError, current_stop, pause
from delta_engine.backends.error_conditions import Transience, transience
from delta_engine.errors import StatementError
from delta_engine.telemetry.context import current_context, learn

Row: TypeAlias = Mapping[str, object]
"""One row of a result, by column name."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_LONGEST_DELAY_SECONDS: Final = 30.0

PATIENCE_SECONDS: Final[Mapping[Transience, float]] = {
    Transience.THROTTLED: 1200.0,
    Transience.UNAVAILABLE: 1200.0,  # also the answer of a cluster that is starting
    Transience.CONFLICT: 120.0,  # a longer series of conflicts will not end
}
"""How many seconds a run tries a statement, by the reason of its refusal."""

_RUNNER_PATIENCE_SECONDS: Final = 300.0
"""How many of them a runner spends on a throttled statement itself, before the run takes over."""


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


def backoff_delay(
    reason: Transience, retries: int, waited: float, draw: Callable[[], float] = random.random
) -> float | None:
    """Return the seconds to wait before the next attempt; None to stop retrying.

    The backoff is exponential: 1, 2, 4 … up to 30 seconds, half of it random, so that clients do not retry at once.
    """
    seconds = min(2.0 ** min(retries, 10), _LONGEST_DELAY_SECONDS) * (1 + draw()) / 2
    return seconds if waited + seconds <= PATIENCE_SECONDS[reason] else None


def past_throttling(
    ask: Callable[[], Answer],
    sql: str,
    *,
    pause: Callable[[float], None] = pause,
    clock: Callable[[], float] = time.monotonic,
) -> Answer:
    """Return the answer of a statement, retried while the platform throttles it; StoppedError if the run stops.

    The platform did not process a throttled statement, so retrying a query or a change is equally safe.
    """
    start, paused = clock(), 0.0
    for retries in count():
        try:
            return ask()
        except StatementError as error:
            if transience(error) is not Transience.THROTTLED:
                raise
            waited = max(paused, clock() - start)
            delay = backoff_delay(Transience.THROTTLED, retries, waited)
            if delay is None or waited + delay > _RUNNER_PATIENCE_SECONDS:
                raise
            paused += delay
            stop = current_stop()
            if not stop.is_requested():
                pause(delay)
            if stop.is_requested():
                raise StoppedError(sql) from error
    raise AssertionError("attempts never end")
