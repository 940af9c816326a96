"""The sections of the troubleshooting page, which the wheel has too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_HEADING: Final = re.compile(r"^### (?P<title>.+)\n", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def sections() -> Mapping[str, str]:
    """Return the texts of all topics by their names."""
    return troubleshooting_sections(_page().read_text("utf-8"))


def troubleshooting_sections(page: str) -> Mapping[str, str]:
    """Return the sections of the page by their anchors, as text without links."""
    _, *parts = _HEADING.split(page)
    texts = (re.split(r"^## ", text, flags=re.MULTILINE)[0].strip() for text in parts[1::2])
    titles = (title.lower().replace(" ", "-") for title in parts[::2])
    return {title: _LINK.sub(r"\1", text) for title, text in zip(titles, texts, strict=True)}


def _page() -> Path:
    """Return the page: a wheel has it next to this module, a checkout in docs/."""
    own = Path(__file__).with_name("troubleshooting.md")
    return own if own.exists() else Path(__file__).parents[3] / "docs" / own.name
