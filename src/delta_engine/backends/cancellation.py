"""Cooperative cancellation: requests to end a run, also by Ctrl-C and SIGTERM, and waits that end at a request."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Final

from delta_engine.errors import StatementError

_POLL_SECONDS: Final = 0.1
"""How often a wait checks for a request. A request cannot wake it: its signal handler may run in a thread that holds
the lock that waking needs."""


class Stop:
    """A request to end a run. `request` takes no lock, so that signal handlers may call it.

    Args:
        within: the stop of a larger unit of work, which also ends this one.
        seconds: after this time the end counts as requested, without a call of callbacks.
    """

    def __init__(self, within: Stop | None = None, *, seconds: float = math.inf) -> None:
        self._within = within
        self._deadline = time.monotonic() + seconds
        self._requests = 0
        self._callback: Callable[[], object] = _nothing

    @property
    def requests(self) -> int:
        """The number of requests to end."""
        requests = self._requests + (time.monotonic() >= self._deadline)
        return requests + (self._within.requests if self._within else 0)

    def request(self) -> None:
        """Request the end; may be repeated."""
        self._requests += 1
        self._callback()

    def is_requested(self) -> bool:
        """Return whether the end was requested."""
        return self.requests > 0

    @contextmanager
    def on_request(self, callback: Callable[[], object]) -> Iterator[None]:
        """Call something at every request; it must be safe in a signal handler."""
        self._callback = callback
        try:
            yield
        finally:
            self._callback = _nothing

    @contextmanager
    def requested_at_errors(self) -> Iterator[None]:
        """Request the end at an error, after which the results of other threads are not needed."""
        is_over = False
        try:
            yield
            is_over = True
        finally:
            if not is_over:
                self.request()

    @contextmanager
    def as_current(self) -> Iterator[None]:
        """Make this the stop of this thread, inside the context; see `current_stop`."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def make_current(self) -> None:
        """Make this the stop of this thread permanently."""
        _CURRENT.set(self)

    def check(self, sql: str = "") -> None:
        """Refuse another statement after a request (StoppedError)."""
        if self.is_requested():
            raise StoppedError(sql)

    def wait(self, seconds: float) -> None:
        """Wait; return early at a request."""
        until = time.monotonic() + seconds
        while not self.is_requested() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _POLL_SECONDS))


class StoppedError(StatementError):
    """A statement was not run because the run is ending."""

    topic = "stopped"

    def __init__(self, sql: str) -> None:
        super().__init__("the run was stopped before it", sql=sql, error_class=None)


def current_stop() -> Stop:
    """Return the stop of this thread's work, or else a new one."""
    return _CURRENT.get(None) or Stop()


def pause(seconds: float) -> None:
    """Wait, at most until the current stop is requested; if it already is, wait the whole time."""
    stop = current_stop()
    if stop.is_requested():
        time.sleep(seconds)
    else:
        stop.wait(seconds)


def stopped_by_signals(stop: Stop) -> AbstractContextManager[None]:
    """Convert Ctrl-C and SIGTERM, which CI and job schedulers send to cancel, to requests to stop."""

    def request(_number: int, _frame: FrameType | None) -> None:
        stop.request()

    return _handled(request, signal.SIGINT, signal.SIGTERM)


def terminated_as_interrupted() -> AbstractContextManager[None]:
    """Make SIGTERM raise KeyboardInterrupt, as Ctrl-C does, so that locks are released."""
    return _handled(signal.default_int_handler, signal.SIGTERM)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Finish the enclosed work, then raise KeyboardInterrupt if Ctrl-C or SIGTERM arrived."""
    stop = Stop()
    with stopped_by_signals(stop):
        yield
    if stop.requests:
        raise KeyboardInterrupt


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], object], *numbers: signal.Signals) -> Iterator[None]:
    """Handle signals in the main thread, the only one that receives them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier_handler in earlier.items():
            # None: a handler that Python did not set and cannot restore
            signal.signal(number, signal.SIG_DFL if earlier_handler is None else earlier_handler)


_CURRENT: ContextVar[Stop] = ContextVar("stop")


def _nothing() -> None:
    """Do nothing."""
