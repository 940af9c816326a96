"""How long to wait for what may pass in a while (`error_conditions.transience`), and how often to try."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from delta_engine.error_conditions import Transience

_LONGEST_DELAY_SECONDS: Final = 30.0

PATIENCE_SECONDS: Final[Mapping[Transience, float]] = {
    Transience.THROTTLED: 1200.0,
    Transience.UNAVAILABLE: 1200.0,  # so answers a cluster that starts, too
    Transience.CONFLICT: 120.0,  # whoever gets ahead for so long does not stop
}
"""For how many seconds of waiting a statement is tried again, by what is in its way."""


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
