"""Somebody's wish that a run comes to its end, and how threads that work for the run hear of it while they wait."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from delta_engine.errors import StatementError

_HEARING_SECONDS: Final = 0.1
"""How long a wait may go on after a request. A request wakes nobody by itself: the signal handler that makes it may run
in a thread that holds the very lock that waking takes."""


class Stop:
    """The wish. `request` is safe in a signal handler: it takes no lock.

    Args:
        within: that of something larger, whose end is the end of this, too.
        seconds: after how long it counts as requested; no listener hears of that.
    """

    def __init__(self, within: Stop | None = None, *, seconds: float = math.inf) -> None:
        self._within = within
        self._deadline = time.monotonic() + seconds
        self._requests = 0
        self._on_request: Callable[[], object] = _nothing

    @property
    def requests(self) -> int:
        """How often somebody asked for the end."""
        requests = self._requests + (time.monotonic() >= self._deadline)
        return requests + (self._within.requests if self._within else 0)

    def request(self) -> None:
        """Ask for the end; may be asked again."""
        self._requests += 1
        self._on_request()

    def is_requested(self) -> bool:
        """Return whether anybody asked for the end."""
        return self.requests > 0

    @contextmanager
    def listened(self, on_request: Callable[[], object]) -> Iterator[None]:
        """Call something at every request; it has to be safe in a signal handler."""
        self._on_request = on_request
        try:
            yield
        finally:
            self._on_request = _nothing

    @contextmanager
    def at_errors(self) -> Iterator[None]:
        """Ask for the end when an error comes by: other threads have nobody left to work for."""
        is_over = False
        try:
            yield
            is_over = True
        finally:
            if not is_over:
                self.request()

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Make this the stop that waits inside, in this thread, end at: see `current_stop`."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def heed(self) -> None:
        """Make this the stop that all waits of this thread end at."""
        _CURRENT.set(self)

    def check(self, sql: str = "") -> None:
        """Refuse another statement once the run is to end.

        Raises:
            StoppedError: it is.
        """
        if self.is_requested():
            raise StoppedError(sql)

    def wait(self, seconds: float) -> None:
        """Wait, or return early because somebody asked for the end."""
        until = time.monotonic() + seconds
        while not self.is_requested() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _HEARING_SECONDS))


class StoppedError(StatementError):
    """A statement was not run because the run is to end."""

    def __init__(self, sql: str) -> None:
        super().__init__("the run was stopped before it", sql=sql, error_class=None)


def current_stop() -> Stop:
    """Return the stop of what this thread works for; a fresh one, if it works for nothing in particular."""
    return _CURRENT.get(None) or Stop()


def pause(seconds: float) -> None:
    """Wait. What this thread works for may come to its end meanwhile: then return early, and wait the next time."""
    stop = current_stop()
    if stop.is_requested():
        time.sleep(seconds)
    else:
        stop.wait(seconds)


_CURRENT: ContextVar[Stop] = ContextVar("stop")


def _nothing() -> None:
    """Do nothing: nobody listens."""
