"""How long to wait for what may pass in a while (`error_conditions.transience`), and how often to try."""

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
    Transience.UNAVAILABLE: 1200.0,  # so answers a cluster that starts, too
    Transience.CONFLICT: 120.0,  # whoever gets ahead for so long does not stop
}
"""For how many seconds of waiting a statement is tried again, by what is in its way."""

_RUNNER_PATIENCE_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits that grow: a second, two, four, up to half a minute; drawn from the upper half, so that many part ways.

    Args:
        draw: returns a number from 0 to 1.
    """

    draw: Callable[[], float] = random.random

    def delay(self, reason: Transience, retries: int, waited: float) -> float | None:
        """Return how many seconds to wait before the next attempt; None if there shall be none.

        Args:
            reason: what is in the way.
            retries: how many attempts there were after the first.
            waited: for how many seconds in all.
        """
        seconds = min(2.0 ** min(retries, 10), _LONGEST_DELAY_SECONDS) * (1 + self.draw()) / 2
        return seconds if waited + seconds <= PATIENCE_SECONDS[reason] else None


def past_throttling(
    ask: Callable[[], Answer],
    sql: str,
    *,
    pause: Callable[[float], None] = pause,
    clock: Callable[[], float] = time.monotonic,
) -> Answer:
    """Return the answer of a statement, which is sent again while it is turned away for too many requests.

    Such a statement was not looked at, so that questions and changes are safe to send again alike.

    Args:
        ask: sends it.
        sql: the statement.
        pause: waits for so many seconds, or less if what the thread works for is to end.
        clock: tells seconds that only grow.

    Raises:
        StoppedError: what the thread works for is to end, and the statement did not run.
        StatementError: it did not succeed.
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
