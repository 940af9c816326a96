"""How fast this machine is in this moment, beside the one on which the targets in seconds were set."""

import time

_SECONDS_THERE = 0.07


def slowness() -> float:
    """Return by how much work takes longer here and now; 1 where it does not."""
    best = min(_seconds_of_work() for _ in range(3))
    return max(1.0, best / _SECONDS_THERE)


def _seconds_of_work() -> float:
    began = time.perf_counter()
    table = {number: str(number) for number in range(200_000)}
    sum(len(text) for text in sorted(table.values()))
    return time.perf_counter() - began
