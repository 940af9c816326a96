"""Shows a running apply to the user, and lets the user stop it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from delta_engine.backends.cancellation import Stop
from delta_engine.models import SecurableName, labelled
from delta_engine.telemetry.visible import counted

_LONGEST_LINE = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningStatement:
    """A sent statement without an answer yet; `since` is the send time by the clock of `ApplyControl`."""

    resource: SecurableName
    sql: str
    since: float

    def line(self, now: float) -> str:
        """Return the statement and its running time as one line."""
        return f"{labelled(self.resource)}  {now - self.since:.0f} s  {' '.join(self.sql.split())}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyControl:
    """Controls one apply, shared by all its threads.

    Args:
        running: the running statements by the `key` of their securable, one for each.
        notify: receives messages for the user about retries and waits, from any thread.
        wait: waits for some seconds, or less if the run is stopped; by default that of `stop`.
    """

    stop: Stop = field(default_factory=Stop)
    running: dict[str, RunningStatement] = field(default_factory=dict)
    notify: Callable[[str], object] = lambda _note: None
    wait: Callable[[float], object] | None = None
    draw: Callable[[], float] = random.random
    seconds: Callable[[], float] = time.monotonic

    def notify_stopping(self) -> None:
        """Notify the user that the run stops; the second time, list the statements that it waits for."""
        running = tuple(self.running.values())
        count = counted(len(running), "running statement")
        if self.stop.requests < 2:
            self.notify(f"stopping: no other statement starts; waiting for {count}. Repeat to list them.")
            return
        now = self.seconds()
        waits = "".join(f"\n  {running_statement.line(now)[:_LONGEST_LINE]}" for running_statement in running)
        self.notify(
            f"still waiting for {count}, so that their results are recorded. A kill (SIGKILL) does not wait; the next "
            f"run finds out what was done.{waits}"
        )

    def pause(self, seconds: float) -> None:
        """Wait before another attempt."""
        (self.wait or self.stop.wait)(seconds)
