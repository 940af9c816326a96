"""Which run, environment and table something is about: the same for log records, spans and hints, across threads."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

_CONTEXT: ContextVar[Mapping[str, str]] = ContextVar("delta_engine_run", default=MappingProxyType({}))


def current_context() -> Mapping[str, str]:
    """Return what is known here: `run_id`, `environment`, `operation`, `table`, as far as it is."""
    return _CONTEXT.get()


def command(arguments: str, environment: str | None = None) -> str:
    """Return a command to suggest, in backticks and with its environment; `ENV` stands for one that is not known.

    Args:
        arguments: what stands behind the environment, such as `state unlock`.
        environment: its name; by default the one that is known here.
    """
    environment = environment or current_context().get("environment")
    return f"`delta-engine -e {shlex.quote(environment) if environment else 'ENV'} {arguments}`"


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
