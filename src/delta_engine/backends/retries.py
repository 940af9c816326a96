"""When and how long a statement is retried that the platform refused for a moment.

`backends.error_conditions.transience` decides which refusals these are.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from itertools import count
from typing import Final, TypeVar

from delta_engine.backends.cancellation import StoppedError, current_stop, pause
from delta_engine.backends.error_conditions import Transience, transience
from delta_engine.errors import StatementError

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
