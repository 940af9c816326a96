"""Backoff for transient refusals (`error_conditions.transience`): how long to wait, and when to stop retrying."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
"""How many seconds a statement is retried, by the reason of its refusal."""

_RUNNER_PATIENCE_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential backoff: 1, 2, 4 … up to 30 seconds, half of it random, so that clients do not retry at once."""

    draw: Callable[[], float] = random.random

    def delay(self, reason: Transience, retries: int, waited: float) -> float | None:
        """Return the seconds to wait before the next attempt; None to stop retrying."""
        seconds = min(2.0 ** min(retries, 10), _LONGEST_DELAY_SECONDS) * (1 + self.draw()) / 2
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
    start, paused, backoff = clock(), 0.0, Backoff()
    for retries in count():
        try:
            return ask()
        except StatementError as error:
            if transience(error) is not Transience.THROTTLED:
                raise
            waited = max(paused, clock() - start)
            delay = backoff.delay(Transience.THROTTLED, retries, waited)
            if delay is None or waited + delay > _RUNNER_PATIENCE_SECONDS:
                raise
            paused += delay
            stop = current_stop()
            if not stop.is_requested():
                pause(delay)
            if stop.is_requested():
                raise StoppedError(sql) from error
    raise AssertionError("attempts never end")
