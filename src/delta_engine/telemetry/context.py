"""Which run, environment and table something is about: the same for log records and spans, across threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

_CONTEXT: ContextVar[Mapping[str, str]] = ContextVar("delta_engine_run", default=MappingProxyType({}))


def current_context() -> Mapping[str, str]:
    """Return what is known here: `run_id`, `environment`, `operation`, `table`, as far as it is."""
    return _CONTEXT.get()


def learn(**known: str) -> None:
    """Know more from now on, until the surrounding `in_context` ends."""
    _CONTEXT.set(MappingProxyType({**_CONTEXT.get(), **known}))


@contextmanager
def in_context(**known: str) -> Iterator[None]:
    """Know more, in this thread and in those that copy its context."""
    token = _CONTEXT.set(MappingProxyType({**_CONTEXT.get(), **known}))
    try:
        yield
    finally:
        _CONTEXT.reset(token)
