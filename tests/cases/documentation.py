"""The pages of the documentation, and the blocks of code in them."""

from __future__ import annotations

import re
import shlex
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

_VARIABLE = re.compile(r"\w+=\S*")


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
    for match in _FENCED.finditer(text):
        yield Block(
            page=page,
            line=text.count("\n", 0, match.start()) + 1,
            language=match["language"],
            title=match["title"] or "",
            text=dedent(match["text"]),
        )


def console_steps(block: Block) -> Iterator[tuple[str, str]]:
    """Yield the commands of a block of a terminal, each with what it prints."""
    _, *steps = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    for step in steps:
        command, _, printed = step.partition("\n")
        yield command, printed


def simple_commands(block: Block) -> Iterator[list[str]]:
    """Yield the commands of a script as words, without variables, comments and where output goes."""
    script = re.sub(r"\\\n", " ", block.text)
    for line in script.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        command: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set("|&;<>"):
                if command and word[0] not in "<>":
                    yield from _without_variables(command)
                    command = []
                elif word[0] in "<>":
                    command.append("")  # the file that follows is no argument
            elif command and command[-1] == "":
                command.pop()
            else:
                command.append(word)


def _without_variables(command: list[str]) -> Iterator[list[str]]:
    while command and _VARIABLE.fullmatch(command[0]):
        command = command[1:]
    if command:
        yield command
