"""How every JSON report is written."""

from __future__ import annotations

import json

import msgspec


def json_text(document: object, *, indent: int | None = 2) -> str:
    """Return a document as JSON that fits into any file: half a surrogate pair is spelled as an escape."""
    text = json.dumps(msgspec.to_builtins(document), indent=indent, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
