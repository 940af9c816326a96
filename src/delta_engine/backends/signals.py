"""What Ctrl-C, and the SIGTERM of a cancelled job, are to what goes on: a wish, or an end at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from delta_engine.backends.cancellation import Stop

_SIGNALS = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, and what CI and job schedulers send to cancel


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
def heard_afterwards() -> Iterator[None]:
    """Let what goes on inside come to its end before Ctrl-C or SIGTERM is heard.

    Raises:
        KeyboardInterrupt: one of them came.
    """
    stop = Stop()
    with stopped_by_signals(stop):
        yield
    if stop.requests:
        raise KeyboardInterrupt


@contextmanager
def _handled(number: signal.Signals, handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    earlier = signal.signal(number, handler)
    try:
        yield
    finally:
        # None is a handler that Python did not set, and cannot set again
        signal.signal(number, signal.SIG_DFL if earlier is None else earlier)
