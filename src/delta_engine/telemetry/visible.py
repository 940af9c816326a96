"""Text that users read: counted nouns, and foreign text made safe to show, such as names and platform messages.

Terminals obey control characters, and bidirectional marks reorder a line, so both are spelled out. So are decomposed
characters, which look like composed ones and make another name. JSON and SQL keep them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from functools import lru_cache
from typing import Final
from unicodedata import is_normalized, normalize

# Invisible characters, and those that change how others are read: controls (not tab and line feed), soft hyphen,
# zero-width and bidirectional marks, line separators, surrogates (which no file can hold), non-characters, and tags.
# Joiners stay: scripts and emojis need them.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")

_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")
"""Surrogates: JSON and Java write a character beyond U+FFFF as a pair; Python reads each as a character."""

_WORD: Final = re.compile(r"""(?:`[^`]*`|(?<!\w)'[^']*'(?!\w)|(?<!\w)"[^"]*"(?!\w)|\S)+""")

_UNITS: Final = ("B", "KB", "MB", "GB", "TB", "PB")
_STEP: Final = 1000
_NO_FRACTION: Final = 100
_SIZE: Final = re.compile(r"(\d{1,18}(?:\.\d{1,3})?)\s*([KMGTP]?B)?", re.IGNORECASE | re.ASCII)


FEWEST_GROUPED: Final = 3
"""Fewer messages with one cause are shown as they are."""

_ROW: Final = 80
"""The width of a row, as terminals show messages."""


def visible(text: str) -> str:
    r"""Return text with invisible and decomposed characters spelled out, such as `\u001b` and `e\u0301`.

    Line feeds stay, and so do characters that Unicode has only decomposed.
    """
    text = _UNSEEN.sub(_spelled, text)
    return text if is_normalized("NFC", text) else _NOT_ASCII.sub(_composed_or_spelled, text)


def appearance(name: str) -> str:
    """Return what names have in common that differ only in case and in how Unicode composes their characters.

    Delta and Unity Catalog do not promise to treat such names as equal, so the engine compares them by code points.
    """
    return name.lower() if name.isascii() else normalize("NFC", name.lower())


def code_points(name: str) -> str:
    r"""Return a name in quotes, with each character beyond ASCII spelled out, as YAML and Python read it."""
    return f"'{_NOT_ASCII.sub(_spelled, name)}'"


def has_half_a_character(text: str) -> bool:
    """Whether a text has an unpaired surrogate, which UTF-8 cannot encode, so no file and no statement can hold it."""
    return not text.isascii() and _HALF_CHARACTER.search(text) is not None


def in_one_line(text: str) -> str:
    """Return text on one line, with invisible characters, line feeds and tabs spelled out."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def wrapped(text: str, width: int, *, first: int = 0) -> str:
    """Return text with line breaks between words, so that lines fit a width where words do.

    What is quoted stays whole, to be copied: names, values and commands. Continued lines are indented by two more.

    Args:
        first: how many characters of the first line are taken already.
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        indent = paragraph[: len(paragraph) - len(paragraph.lstrip(" "))]
        line, room = indent, width - (0 if lines else first)
        for word in _WORD.findall(paragraph):
            if line.strip() and len(line) + 1 + len(word) > room:
                lines.append(line)
                line, room = f"{indent}  {word}", width
            else:
                line = f"{line} {word}" if line.strip() else f"{line}{word}"
        lines.append(line)
    return "\n".join(lines)


def rows_of(text: str) -> int:
    """Return how many rows of a terminal a text takes."""
    return sum(max(1, -(-len(row) // _ROW)) for row in wrapped(text, _ROW).split("\n"))


def fits(text: str, most: int) -> bool:
    """Whether a text takes at most so many rows of a terminal."""
    return len(text) <= most * _ROW and rows_of(text) <= most


def first_rows(text: str, most: int) -> str:
    """Return a text, cut if it takes more than so many rows of a terminal."""
    if fits(text, most):
        return text
    kept = "\n".join(text.split("\n", most)[:most])[: most * _ROW]
    while rows_of(f"{kept} …") > most:
        kept = kept[:-1]
    return f"{kept.rstrip()} …"


def listed(places: Sequence[str], most: int) -> Iterator[str]:
    """Yield an indented line for each of the first places, and how many more there are."""
    yield from (f"  {place}" for place in places[:most])
    if len(places) > most:
        yield f"  and {len(places) - most:,} more"


@lru_cache(maxsize=1024)  # the records of a run share its moments
def shown_moment(at: datetime) -> str:
    """Return a moment as all text shows it: `2026-11-24 04:07:12 UTC`. Without a time zone, it is UTC already."""
    moment = at if at.tzinfo is None else at.astimezone(timezone.utc)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 table` and `2 tables`."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return a regular noun in the plural, such as `tables` and `policies`."""
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"


def shared_plural(kinds: Iterable[str]) -> str:
    """Return the kind that all have in the plural; `resources` for several kinds, `tables` for none."""
    kind, *others = {*kinds} or {"table"}
    return "resources" if others else plural(kind)


def in_plural(kinds: Iterable[str]) -> str:
    """Return kinds in the plural, each once, such as `tables and policies`; `tables` for none."""
    return joined(dict.fromkeys(map(plural, kinds)) or ["tables"])


def joined(texts: Iterable[str]) -> str:
    """Return one or more texts as a list in words, such as `a, b and c`."""
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last


def described_size(size: int) -> str:
    """Return a number of bytes in decimal units, such as `1.2 GB`."""
    number, unit = float(size), "B"
    for unit in _UNITS:
        if number < _STEP or unit == _UNITS[-1]:
            break
        number /= _STEP
    return f"{number:,.0f} {unit}" if unit == "B" or number >= _NO_FRACTION else f"{number:.1f} {unit}"


def parsed_size(text: str) -> int:
    """Return the bytes in a text such as `200 GB`, `1.5TB` or `1000`; ValueError for others."""
    size = _SIZE.fullmatch(text.strip())
    if size is None:
        raise ValueError(f"{text!r} is not a size")
    exponent = _UNITS.index((size[2] or "B").upper())
    return int(float(size[1]) * _STEP**exponent)


def counted_resources(kinds: Iterable[str]) -> str:
    """Return how many of each kind there are, tables last; `0 tables` for none."""
    counts = Counter(kinds)
    tables = counts.pop("table", 0)
    if tables or not counts:
        counts["table"] = tables
    return ", ".join(counted(number, kind) for kind, number in counts.items())


def _composed_or_spelled(match: re.Match[str]) -> str:
    """Return a character, spelled out if Unicode composes it with the previous one or another looks like it."""
    before = match.string[match.start() - 1] if match.start() else " "
    composed = len(normalize("NFC", before + match.group())) == 1
    other = normalize("NFC", match.group())
    return _spelled(match) if composed or (len(other) == 1 and other != match.group()) else match.group()


def _spelled(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
