"""The pages of the documentation, and the blocks of code in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])

_FENCED = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^ *```",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block of code.

    Args:
        line: where it starts, counted from 1.
        title: the file that it shows; empty for none.
    """

    page: Path
    line: int
    language: str
    title: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of code of a page."""
    text = page.read_text("utf-8")
    for found in _FENCED.finditer(text):
        yield Block(
            page=page,
            line=text.count("\n", 0, found.start()) + 1,
            language=found["language"],
            title=found["title"] or "",
            text=dedent(found["text"]),
        )


def console_steps(block: Block) -> Iterator[tuple[str, str]]:
    """Yield the commands of a block of a terminal, each with what it prints."""
    _, *steps = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    for step in steps:
        command, _, printed = step.partition("\n")
        yield command, printed
