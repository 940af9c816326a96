"""Counts the habits of STYLE.md and the reading ease of pages and texts: `python scripts/prose.py [--json] [NAME …]`.

It judges nothing and is no gate: a habit is a phrase to look at. A NAME selects the pages and rooms that contain it.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SOURCES: Final = ROOT / "src" / "delta_engine"
LONG_SENTENCE: Final = 25
"""Words that a sentence has at most."""

HABITS: Final = {
    "negation": r"(?<!there )\b(?:is|are|was|were|has|have|had) (?:no|none)\b(?! longer)",
    "one": r"\bones?\b(?=[.,;:)]|$| (?:that|of|is|are|has|in|for|with|by|at|which)\b)",
    "others": r"\bothers\b|\bthat of\b|\bthose of\b",
    "own": r"\bof (?:its|their|his|our) own\b",
    "old words": r"\b(?:beside|anew|afresh|former|shall|hence|thereby|thus|of a sudden|where there is one)\b",
    "persons": r"\b(?:somebody|nobody|whoever|whose?soever|someone|anybody|everybody|people|he|his|him)\b",
    "says": r"\b(?:says?|said|tells?|told)\b",
    "riddles": r"\b(?:left alone|leaves? alone|taken in|in the way of|goes along|dead hand|held against|stands? for"
    r"|by now|as well as it|is wanted|are wanted|takes? away|taken away|gone by)\b",
    "that is": r"\bthat is,|\bi\.e\.",
    "types": r"\b(?:a text|texts|whole numbers?|a blank|blanks)\b",
    "way out": r"\bways? out\b",
    "semicolon": r";",
}
"""Phrases that the style replaces, as far as an expression can find them."""

_PASSIVE: Final = re.compile(
    r"\b(?:is|are|was|were|be|been|being) (?:\w+ly |not |never |also )?\w+(?:ed|en|wn|de|ld|id|pt)\b(?! by\b)"
)
_WORD: Final = re.compile(r"[A-Za-z][\w'’-]*")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[)\"'”]*\s+(?=[A-Z`(“\"'\[*])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """What was counted in one page or room.

    Args:
        ease: the reading ease after Flesch: 100 is easy, 60 plain, 30 hard. None without a whole sentence.
        habits: how often each habit appears, without those that do not.
    """

    name: str
    words: int
    sentences: int
    long_sentences: int
    passives: int
    ease: float | None
    habits: Mapping[str, int]

    @property
    def total(self) -> int:
        """How often habits appear."""
        return sum(self.habits.values())


def main(arguments: Sequence[str]) -> int:
    """Print what was counted in every selected page and room."""
    names = [argument for argument in arguments if argument != "--json"]
    counted = [prose for prose in all_prose() if not names or any(name in prose.name for name in names)]
    print(_as_json(counted) if "--json" in arguments else _as_table(counted))
    return 0


def all_prose() -> Iterator[Prose]:
    """Count each page of the documentation, and each room of the source."""
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    for page in (*pages, *sorted((ROOT / "docs").rglob("*.md"))):
        yield counted(str(page.relative_to(ROOT)), markdown_prose(page.read_text("utf-8")))
    for room, files in sorted(_rooms().items()):
        trees = [ast.parse(file.read_text("utf-8")) for file in files]
        yield counted(f"messages of {room}", (text for tree in trees for text in messages(tree)))
        yield counted(f"docstrings of {room}", (text for tree in trees for text in docstrings(tree)))


def counted(name: str, texts: Iterable[str]) -> Prose:
    """Count the words, sentences and habits of some texts."""
    texts = list(texts)
    sentences = [sentence for text in texts for sentence in _SENTENCE_END.split(text)]
    whole = [sentence for sentence in sentences if len(_words(sentence)) > 3]
    found = {habit: sum(len(phrase.findall(text)) for text in texts) for habit, phrase in _PHRASES.items()}
    return Prose(
        name=name,
        words=sum(len(_words(text)) for text in texts),
        sentences=len(whole),
        long_sentences=sum(len(_words(sentence)) > LONG_SENTENCE for sentence in whole),
        passives=sum(len(_PASSIVE.findall(text)) for text in texts),
        ease=_ease(whole),
        habits={habit: count for habit, count in found.items() if count},
    )


_PHRASES: Final = {habit: re.compile(phrase, re.IGNORECASE) for habit, phrase in HABITS.items()}


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _ease(sentences: Sequence[str]) -> float | None:
    words = [word for sentence in sentences for word in _words(sentence)]
    if not words:
        return None
    syllables = sum(map(_syllables, words))
    return round(206.835 - 1.015 * len(words) / len(sentences) - 84.6 * syllables / len(words), 1)


def _syllables(word: str) -> int:
    """Return about how many syllables a word has: its groups of vowels, without a silent e."""
    groups = len(re.findall(r"[aeiouy]+", word.lower()))
    is_silent = word.lower().endswith("e") and not word.lower().endswith(("le", "ee"))
    return max(1, groups - is_silent)


def markdown_prose(page: str) -> Iterator[str]:
    """Return the paragraphs, list items and table cells of a page, without code, markup and link targets."""
    page = re.sub(r"<!--.*?-->|^ *(```|~~~).*?^ *\1", "", page, flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )", page):
        lines = [line for line in block.splitlines() if not re.match(r" *#|[ |:-]+$", line)]
        cells = (cell for line in lines if line.startswith("|") for cell in line.strip("| ").split(" | "))
        text = " ".join(line for line in lines if not line.startswith("|"))
        yield from filter(None, map(_plain, (text, *cells)))


def _plain(text: str) -> str:
    """Return Markdown as a reader hears it: code is a word, a link its text."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "code", text)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>|\*\*|^ *(?:[-*>]|\d+\.) ", " ", text)).strip()


def _rooms() -> Mapping[str, Sequence[Path]]:
    rooms: dict[str, list[Path]] = {}
    for file in sorted(SOURCES.rglob("*.py")):
        parts = file.relative_to(SOURCES).parts
        room = "/".join(parts[:2]) if parts[0] == "tools" and len(parts) > 2 else parts[0]
        rooms.setdefault(room.removesuffix(".py"), []).append(file)
    return rooms


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Return the first paragraph of each docstring of a module, and of its public classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            is_private = not isinstance(node, ast.Module) and node.name.startswith("_")
            if (text := ast.get_docstring(node)) and not is_private:
                yield _plain(text.split("\n\n")[0])


def messages(tree: ast.Module) -> Iterator[str]:
    """Return the strings of a module that are prose: messages, explanations, helps. A value in a text is one word."""
    inner = {
        id(part)
        for node in ast.walk(tree)
        for part in ast.walk(node)
        if part is not node and isinstance(node, ast.JoinedStr)
    }
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)} | inner
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in skipped:
            text = _string(node)
            if _is_prose(text):
                yield _plain(text)


def _string(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_string(value) for value in values)
        case ast.FormattedValue():
            return "value"
    return ""


def _is_prose(text: str) -> bool:
    """Whether a string is for readers: some words in lower case, and neither SQL nor a pattern."""
    is_code = re.search(r"\b(?:SELECT|ALTER|CREATE|DROP|MERGE|FROM|WHERE)\b [`\w(]|\\|\(\?|^\s*<", text)
    return not is_code and len(re.findall(r"(?<![\w.`/-])[a-z]{2,}(?![\w`/(-])", text)) >= 3


def _as_json(counted: Iterable[Prose]) -> str:
    return json.dumps(
        [
            {
                "name": prose.name,
                "words": prose.words,
                "sentences": prose.sentences,
                "longSentences": prose.long_sentences,
                "passives": prose.passives,
                "readingEase": prose.ease,
                "habits": prose.habits,
            }
            for prose in counted
        ],
        indent=2,
    )


def _as_table(counted: Sequence[Prose]) -> str:
    width = max((len(prose.name) for prose in counted), default=0)
    head = f"{'':{width}}  {'words':>6}  {'sent.':>5}  {f'> {LONG_SENTENCE}':>5}  {'ease':>5}  {'pass.':>5}  habits"
    return "\n".join((head, *(_line(prose, width) for prose in (*counted, _sum(counted)))))


def _line(prose: Prose, width: int) -> str:
    habits = ", ".join(f"{habit} {count}" for habit, count in prose.habits.items())
    ease = "" if prose.ease is None else f"{prose.ease:.0f}"
    numbers = (
        f"{prose.words:>6}  {prose.sentences:>5}  {prose.long_sentences:>5}  {ease:>5}  {prose.passives:>5}"
    )
    return f"{prose.name:{width}}  {numbers}  {prose.total:>4}{f': {habits}' if habits else ''}"


def _sum(counted: Sequence[Prose]) -> Prose:
    rated = [prose for prose in counted if prose.ease is not None]
    words = sum(prose.words for prose in rated)
    return Prose(
        name="together",
        words=sum(prose.words for prose in counted),
        sentences=sum(prose.sentences for prose in counted),
        long_sentences=sum(prose.long_sentences for prose in counted),
        passives=sum(prose.passives for prose in counted),
        ease=round(sum((prose.ease or 0) * prose.words for prose in rated) / words, 1) if words else None,
        habits={
            habit: count
            for habit in HABITS
            if (count := sum(prose.habits.get(habit, 0) for prose in counted))
        },
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
