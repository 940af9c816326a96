"""OpenTelemetry spans of runs, tables and statements; without the extra `otel` or a provider they do nothing.

The application chooses provider and exporter, for example with `opentelemetry-instrument`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from delta_engine.telemetry.logs import redacted

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

Attribute: TypeAlias = "str | int | float | bool"


class OpenSpan:
    """A span that has begun; does nothing without OpenTelemetry."""

    def __init__(self, span: Span | None = None) -> None:
        self._span = span

    def add(self, **attributes: Attribute) -> None:
        """Add facts below `delta_engine.`."""
        if self._span is not None:
            for key, value in attributes.items():
                shown = redacted(value) if isinstance(value, str) else value
                self._span.set_attribute(f"delta_engine.{key}", shown)

    def fail(self, reason: str) -> None:
        """Mark the span as failed."""
        if self._span is not None:
            from opentelemetry.trace import Status, StatusCode

            self._span.set_status(Status(StatusCode.ERROR, redacted(reason)))


@contextmanager
def span(name: str, *, sql: str = "", **attributes: Attribute) -> Iterator[OpenSpan]:
    """Record the enclosed work as a span, with its statement and attributes; an error marks it as failed."""
    tracer = _tracer()
    if tracer is None:
        yield OpenSpan()
        return
    # OpenTelemetry's event of an exception would carry its message with secrets: the redacted status suffices.
    with tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as begun:
        opened = OpenSpan(begun)
        opened.add(**attributes)
        if sql:
            begun.set_attribute("db.query.text", redacted(sql))
        try:
            yield opened
        except Exception as error:
            opened.fail(f"{type(error).__name__}: {error}")
            raise


@cache
def _tracer() -> Tracer | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("delta_engine")
