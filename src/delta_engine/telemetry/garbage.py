"""Python's collection of garbage, kept from work that makes many objects and no cycles among them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Leave the collector off within, as a context or as a decorator.

    Whatever is made there waits for it until the end; it would otherwise look again and again at all that lives,
    which takes a fifth to a third of the time where that is millions of objects.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
