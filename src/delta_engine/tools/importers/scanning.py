"""Scans SQL scripts: their statements, with the place and the words of each.

sqlglot's tree would lose places, comments of struct fields and the spelling of expressions, so statements keep their
text. `statements` reads the words.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from delta_engine.errors import SourceLocation
from delta_engine.sql.string_literals import COMMENT, LITERAL

_WORD: Final = re.compile(
    rf"(?P<skip>(?:\s|{COMMENT})+)|(?P<text>{LITERAL})|(?P<body>\$\$.*?\$\$)|(?P<quoted>`(?:[^`]|``)+`)"
    r"|(?P<word>\w+)|(?P<mark>\|\||/\*|.)",
    re.DOTALL,
)
_REST: Final = re.compile(
    rf"(?P<skip>{COMMENT})|(?P<text>{LITERAL})|(?P<body>\$\$.*?\$\$)|(?P<quoted>`(?:[^`]|``)+`)"
    r"|(?P<word>\b(?:create|alter)\s+\w+)|(?P<mark>[;'\"`]|/\*)",
    re.DOTALL | re.IGNORECASE,
)
"""What counts in the rest of a statement without effect: where it ends, and what looks like another statement."""

_FIRST_WORDS: Final = """
( analyze begin cache commit copy declare delete desc describe explain from fsck insert list merge msck optimize
refresh remove reset rollback select set show start truncate uncache update vacuum values with
"""

WITHOUT_EFFECT: Final = frozenset(_FIRST_WORDS.split())
"""First words of statements that leave models as they are: they change rows, the session, or nothing."""

_WITH_EFFECT: Final = ("set tag", "set catalog")
_CELL: Final = re.compile(r"^--\s*COMMAND\s*-{5,}\s*$", re.MULTILINE)
_MAGIC: Final = re.compile(r"^--\s*MAGIC\s?(?P<code>.*)$", re.MULTILINE)
_HARMLESS_LANGUAGES: Final = ("%md", "%md-sandbox", "%sql")
_UNCLOSED: Final = {"'": "a string", '"': "a string", "`": "a quoted name", "/*": "a comment"}
_TRANSACTION: Final = re.compile(r"\s*(?:;|TRANSACTION|WORK)", re.IGNORECASE)


class Word(NamedTuple):
    """A word, a quoted name, a string, a body between `$$`, or a mark, with its place in the script."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        """A plain word in lower case, a mark as it is; empty for what is quoted."""
        return self.text.lower() if self.kind in ("word", "mark") else ""


@dataclass(frozen=True)
class Script:
    """A script.

    Args:
        file: its name, for messages.
        text: its SQL, with stand-ins for variables.
        shown: returns a text with the variables in place of the stand-ins.
    """

    file: str
    text: str
    shown: Callable[[str], str] = str

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self.text)]

    def place(self, position: int) -> SourceLocation:
        """Return the line of a position."""
        return SourceLocation(self.file, bisect_right(self._line_ends, position - 1) + 1)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement: its words, without the semicolon.

    Of one without effect it has the first two words, and each CREATE and ALTER with the word behind it.

    Args:
        problem: why it cannot be read; empty if its words are whole.
        fix: of the problem; empty if the model needs the statement's content by hand.
    """

    script: Script
    words: tuple[Word, ...]
    problem: str = ""
    fix: str = ""

    @property
    def place(self) -> SourceLocation:
        """The line of its first word."""
        return self.script.place(self.words[0].start)

    def text(self, start: int, end: int | None = None) -> str:
        """Return the SQL between two words, as it is written; without `end`, to the statement's end."""
        last = len(self.words) if end is None else end
        return self.script.text[self.words[start].start : self.words[last - 1].end] if last > start else ""


def statements(script: Script) -> Iterator[Statement]:
    """Yield the statements of a script, or of a notebook that was exported as one, in order."""
    cells = [0, *(match.end() for match in _CELL.finditer(script.text)), len(script.text)]
    for start, end in pairwise(cells):
        yield from _other_language(script, start, end)
        yield from _in_cell(script, start, end)


def _other_language(script: Script, start: int, end: int) -> Iterator[Statement]:
    """Yield a statement for a cell of another language, which may change tables unseen."""
    code = [match for match in _MAGIC.finditer(script.text, start, end) if match["code"].strip()]
    if not code or (language := code[0]["code"].split()[0]) in _HARMLESS_LANGUAGES:
        return
    lines = [match["code"].strip() for match in code[1:] if not match["code"].strip().startswith("#")]
    if language == "%python" and all(line.startswith("dbutils.widgets.") for line in lines):
        return
    word = Word("mark", language, code[0].start("code"), code[0].end())
    yield Statement(script, (word,), f"a cell of another language, {language}, is not read")


def _in_cell(script: Script, start: int, end: int) -> Iterator[Statement]:
    words: list[Word] = []
    while match := (_REST if _is_without_effect(words) else _WORD).search(script.text, start, end):
        start, kind = match.end(), match.lastgroup or ""
        is_content = match.re is _REST and kind in ("text", "body", "quoted")
        if kind == "skip" or is_content or (kind == "mark" and match[0] == "\ufeff"):
            continue
        word = Word(kind, match[0], match.start(), match.end())
        if kind == "mark" and match[0] in _UNCLOSED:
            problem = f"{_UNCLOSED[match[0]]} does not end, so the rest of the file is not read"
            yield Statement(script, (*words, word), problem, "Close it.")
            return
        if match[0] != ";" or kind != "mark":
            words.append(word)
        elif words:
            yield Statement(script, tuple(words))
            words = []
        if word.lower == "begin" and _is_block(words) and not _TRANSACTION.match(script.text, word.end):
            yield Statement(script, (*words,), "a block of SQL scripting, and what follows it, is not read")
            return
    if words:
        yield Statement(script, tuple(words))


def _is_without_effect(words: list[Word]) -> bool:
    """Whether the first two words say that a statement leaves models as they are."""
    if len(words) < 2 or words[0].lower not in WITHOUT_EFFECT:
        return False
    return f"{words[0].lower} {words[1].lower}" not in _WITH_EFFECT


def _is_block(words: list[Word]) -> bool:
    """Whether BEGIN, the last word, begins a block, also that of a procedure."""
    return len(words) == 1 or "procedure" in [word.lower for word in words[:4]]
