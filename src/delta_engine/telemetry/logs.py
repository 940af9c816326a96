"""Log records of the engine: each with the context of its run, as JSON lines where that is wanted, secrets hidden.

The engine logs below the logger `delta_engine` and configures nothing unless it is asked to: applications that embed
it, and notebooks, have their own handlers.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Final, TextIO

from delta_engine.telemetry.context import current_context
from delta_engine.telemetry.redaction import redacted

LOGGER: Final = logging.getLogger("delta_engine")
LOGGER.addHandler(logging.NullHandler())  # warnings of an application without logging go to people, not here

_FIELDS: Final = "fields"


def log(level: int, event: str, **fields: object) -> None:
    """Log what happened.

    Args:
        level: of `logging`.
        event: what happened, in a few words that never change.
        fields: the facts.
    """
    if LOGGER.isEnabledFor(level):
        known = {**current_context(), **fields}
        LOGGER.log(level, event, extra={_FIELDS: {key: _told(value) for key, value in known.items()}})


class JsonLines(logging.Formatter):
    """One JSON object per record: `time`, `level`, `event`, the context, and the record's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record on one line."""
        moment = datetime.fromtimestamp(record.created, timezone.utc)
        document = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return json.dumps({key: _told(value) for key, value in document.items()}, ensure_ascii=False)


def log_json_lines(stream: TextIO | None = None) -> None:
    """Write every record as JSON lines.

    Args:
        stream: where to; stderr by default.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    LOGGER.handlers = [handler]
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False


@contextmanager
def kept_from_libraries() -> Iterator[None]:
    """Keep records from the handler that a library sets up by its own logging, beside the lines for people.

    `logging.error` does so, which py4j's and databricks-sdk's code call. Handlers that are there already get records.
    """
    if logging.getLogger().handlers:
        yield
        return
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.propagate = True


def logs_json_lines() -> bool:
    """Whether `log_json_lines` was called: then stderr is for machines."""
    return any(isinstance(handler.formatter, JsonLines) for handler in LOGGER.handlers)


def _told(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return redacted(str(value))
