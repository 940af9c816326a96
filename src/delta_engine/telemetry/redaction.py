"""Removes secrets from text that is stored or sent: logs, spans, reports."""

from __future__ import annotations

import re
from typing import Final

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
