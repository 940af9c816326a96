"""What a benchmark returns, and how work is timed."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One figure.

    Args:
        work: what was measured; what may be asked of it stands under this name in `targets`.
        value: the figure.
        unit: what it counts.
        bare: what the bare work takes that no engine can do without, in the same unit; None where there is no such.
    """

    work: str
    value: float
    unit: str = "s"
    bare: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times the bare work it takes."""
        return self.value / self.bare if self.bare else None


def measured(benchmark: str) -> list[Measurement]:
    """Return what a module of this folder measures: whatever its `measure()` yields."""
    return list(import_module(f"benchmarks.{benchmark}").measure())


def best_seconds(
    work: Callable[[], object], rounds: int = 5, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return how long work takes at best: whatever else a machine does can only add to that.

    Args:
        work: what to do.
        rounds: how often.
        clock: what tells the time; `time.process_time` for work that waits for nothing and runs in one thread: what
            it takes of a processor is how long it takes on a machine that does nothing else.
    """
    return min(seconds_of(work, clock) for _ in range(rounds))


def peak_memory() -> float:
    """Return the most memory that this process had so far, in MiB."""
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def seconds_of(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return how long work takes, once; `clock` as for `best_seconds`."""
    began = clock()
    work()
    return clock() - began
