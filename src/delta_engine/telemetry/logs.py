"""Log records of the engine, with their run's context and without secrets; JSON lines on request.

Applications and notebooks have their own handlers, so the engine configures logging only on request.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Final, TextIO

from delta_engine.telemetry.context import current_context

LOGGER: Final = logging.getLogger("delta_engine")
LOGGER.addHandler(logging.NullHandler())  # else Python prints warnings to stderr

_FIELDS: Final = "fields"


def log(level: int, event: str, **fields: object) -> None:
    """Log an event: a few constant words; `fields` hold the facts."""
    if LOGGER.isEnabledFor(level):
        context = {**current_context(), **fields}
        LOGGER.log(level, event, extra={_FIELDS: {key: _loggable(value) for key, value in context.items()}})


class JsonLines(logging.Formatter):
    """One JSON object per record: `time`, `level`, `event`, the context and the record's own fields."""

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
        return json.dumps({key: _loggable(value) for key, value in document.items()}, ensure_ascii=False)


def log_json_lines(stream: TextIO | None = None) -> None:
    """Write every record as JSON lines, by default to stderr."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    LOGGER.handlers = [handler]
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False


@contextmanager
def kept_from_libraries() -> Iterator[None]:
    """Keep records from the root handler that a library's first `logging.error` call installs.

    py4j and databricks-sdk make such calls. Existing handlers still get the records.
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
    """Whether `log_json_lines` was called, so that stderr is for machines."""
    return any(isinstance(handler.formatter, JsonLines) for handler in LOGGER.handlers)


def _loggable(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return redacted(str(value))


HIDDEN: Final = "***"

_SECRETS: Final = (
    # a secret's key and value, quoted or not, as in TBLPROPERTIES ('a.password' = 'x')
    re.compile(
        r"""((?:secret|password|passwd|token|credential|(?:api|account|access)[._]?key)[\w.\-]*['"`]?\s*[=:]\s*)"""
        r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s'",;&)]+)""",
        re.IGNORECASE,
    ),
    re.compile(r"([?&;]sig=)([^\s'\"&;]+)", re.IGNORECASE),  # shared access signatures of Azure
    re.compile(r"(\bBearer\s+)([\w.~+/\-]+=*)", re.IGNORECASE),
    re.compile(r"(//[^\s/:@]*:)([^\s/@]+)(?=@)"),  # https://user:password@host
    re.compile(r"(\b)(dapi[0-9a-f]{32}(?:-\d+)?)\b"),  # personal access tokens of Databricks
)

_HINTS: Final = ("secret", "passw", "token", "credential", "key", "bearer", "//", "dapi", "sig=")
"""Every match of a pattern contains one of these, and searching for them is much cheaper."""


def redacted(text: str) -> str:
    """Return a text with recognizable secrets hidden."""
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):
        return text
    for pattern in _SECRETS:
        text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    return text
