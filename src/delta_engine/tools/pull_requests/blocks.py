"""Foreign text in Markdown: code spans and blocks, where CommonMark, GitHub and GitLab render nothing.

They render no markup, mentions, mathematics or HTML there. The delimiters have to be longer than any inside (CommonMark
0.31, 4.5 and 6.1).
"""

from __future__ import annotations

import re
from typing import Final

from delta_engine.telemetry.visible import in_one_line, visible

_BACKTICKS: Final = re.compile("`+")


def code_span(text: str) -> str:
    """Return any text as inline code on one line."""
    line = in_one_line(text)
    fence = "`" * (_longest_run(line) + 1)
    needs_room = not line or line[0] in "` " or line[-1] in "` "
    return f"{fence} {line} {fence}" if needs_room else f"{fence}{line}{fence}"


def folded(summary: str, block: str) -> str:
    """Return a collapsible block; its empty lines make the content Markdown again."""
    return f"<details><summary>{summary}</summary>\n\n{block}\n\n</details>"


def fenced(language: str, text: str) -> str:
    """Return any text as a block of code."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{visible(text)}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)
