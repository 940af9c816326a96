"""OpenTelemetry spans: run, table, statement. Without the extra `otel`, or a configured provider, they do nothing.

Which provider and exporter there is, is the application's business: `opentelemetry-instrument` and OTEL_… variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from delta_engine.telemetry.redaction import redacted

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

Attribute: TypeAlias = "str | int | float | bool"


class OpenSpan:
    """A span that has begun.

    Args:
        span: OpenTelemetry's; None where there is none.
    """

    def __init__(self, span: Span | None = None) -> None:
        self._span = span

    def tell(self, **attributes: Attribute) -> None:
        """Add facts, below `delta_engine.`."""
        if self._span is not None:
            self._span.set_attributes({f"delta_engine.{key}": _told(one) for key, one in attributes.items()})

    def fail(self, reason: str) -> None:
        """Mark it as failed."""
        if self._span is not None:
            from opentelemetry.trace import Status, StatusCode

            self._span.set_status(Status(StatusCode.ERROR, redacted(reason)))


@contextmanager
def span(name: str, *, sql: str = "", **attributes: Attribute) -> Iterator[OpenSpan]:
    """Span what happens inside; an error that leaves it marks it as failed.

    Args:
        name: what it is.
        sql: the statement that it is about, if it is about one.
        attributes: its facts; they go below `delta_engine.`.
    """
    tracer = _tracer()
    if tracer is None:
        yield OpenSpan()
        return
    # An exception's own event would have its message, secrets and all: the status says what is needed.
    with tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as begun:
        opened = OpenSpan(begun)
        opened.tell(**attributes)
        if sql:
            begun.set_attribute("db.query.text", redacted(sql))
        try:
            yield opened
        except Exception as error:
            opened.fail(f"{type(error).__name__}: {error}")
            raise


def _told(value: Attribute) -> Attribute:
    return redacted(value) if isinstance(value, str) else value


@cache
def _tracer() -> Tracer | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("delta_engine")
