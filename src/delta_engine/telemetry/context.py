"""The context of a run: what its log records, spans and messages share, and its ids and time stamps."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timezone
from types import MappingProxyType

_CONTEXT: ContextVar[Mapping[str, str]] = ContextVar("delta_engine_run", default=MappingProxyType({}))


def current_context() -> Mapping[str, str]:
    """Return the known part of `run_id`, `project`, `environment`, `operation` and `table`.

    `interface` is `python` in calls of the Python API.
    """
    return _CONTEXT.get()


def command(arguments: str, environment: str | None = None) -> str:
    """Return a command to suggest, in backticks, for an environment, by default the current one, else `ENV`."""
    context = current_context()
    environment = environment or context.get("environment")
    options = f"-e {shlex.quote(environment) if environment else 'ENV'}"
    options += f" -p {shlex.quote(context['project'])}" if "project" in context else ""
    return f"`delta-engine {options} {arguments}`"


def spoken(on_command_line: str, in_python: str) -> str:
    """Return what a message tells the user to write: an option, or the argument that a call takes in its place."""
    return in_python if current_context().get("interface") == "python" else on_command_line


def learn(**facts: str) -> None:
    """Add to the context, until the surrounding `in_context` ends."""
    _CONTEXT.set(MappingProxyType({**_CONTEXT.get(), **facts}))


@contextmanager
def in_context(**facts: str) -> Iterator[None]:
    """Add to the context, in this thread and in threads that copy its context."""
    token = _CONTEXT.set(MappingProxyType({**_CONTEXT.get(), **facts}))
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def utc_now() -> datetime:
    """Return the time, UTC."""
    return datetime.now(timezone.utc)


def new_id() -> str:
    """Return a unique id."""
    return uuid.uuid4().hex
