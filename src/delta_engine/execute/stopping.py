"""Ends an apply early: statements that run go on to their end, no other one starts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from delta_engine.errors import StatementError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, and what CI and job schedulers send to cancel


class Stop:
    """Somebody's wish that a run comes to its end. `request` is safe in a signal handler: it takes no lock."""

    def __init__(self) -> None:
        self.requests = 0
        self._on_request: Callable[[], object] = _nothing
        self._is_over = threading.Event()

    def request(self) -> None:
        """Ask for the end; may be asked again."""
        self.requests += 1
        self._on_request()

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
                self.end_waits()

    def check(self) -> None:
        """Refuse another statement once the run is to end.

        Raises:
            StoppedError: it is.
        """
        if self.requests:
            raise StoppedError(sql="")

    def end_waits(self) -> None:
        """Let all that wait go on."""
        self._is_over.set()

    def wait(self, seconds: float) -> None:
        """Wait, or return early because the run is to end."""
        self._is_over.wait(seconds)


class StoppedError(StatementError):
    """A statement was not run because the run is to end."""

    def __init__(self, sql: str) -> None:
        super().__init__("the run was stopped before it", sql=sql, error_class=None)


@contextmanager
def stopped_by_signals(stop: Stop) -> Iterator[None]:
    """Make Ctrl-C, and the SIGTERM of a cancelled job, requests to stop. Only the main thread can hear them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def request(_number: int, _frame: FrameType | None) -> None:
        stop.request()

    with ExitStack() as handlers:
        for number in _SIGNALS:
            handlers.enter_context(_handled(number, request))
        yield


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Make SIGTERM what Ctrl-C is, so that locks are released on the way out."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with _handled(signal.SIGTERM, signal.default_int_handler):
        yield


@contextmanager
def _handled(number: signal.Signals, handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    earlier = signal.signal(number, handler)
    try:
        yield
    finally:
        # None is a handler that Python did not set, and cannot set again
        signal.signal(number, signal.SIG_DFL if earlier is None else earlier)


def _nothing() -> None:
    """Do nothing: nobody listens."""
