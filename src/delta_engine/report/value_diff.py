"""Splits two values into parts and marks the differences. Works on any text in bounded time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

_TOKEN: Final = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_TOKENS: Final = 300  # SequenceMatcher takes at least quadratic time
_LEAST_ALIKE: Final = 0.35  # below, marks would be noise
_LONG_WORD: Final = 40
_LONGEST_PART: Final = 20_000


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a value.

    `is_changed` marks parts that the other value lacks. `left_out` counts omitted characters, with an empty text.
    """

    text: str
    is_changed: bool = False
    left_out: int = 0


Parts = tuple[Part, ...]


def diff_values(expected: str | None, actual: str | None) -> tuple[Parts | None, Parts | None]:
    """Return the parts of both values, None for an absent one. A value without a counterpart has no marks."""
    if expected is None or actual is None:
        return _whole(expected), _whole(actual)
    before, after = _TOKEN.findall(expected), _TOKEN.findall(actual)
    start, end = _common_ends(before, after)
    pairs = [
        (before[:start], after[:start], False),
        *_changes(before[start : len(before) - end], after[start : len(after) - end]),
        (before[len(before) - end :], after[len(after) - end :], False),
    ]
    texts = [("".join(left), "".join(right), is_changed) for left, right, is_changed in pairs]
    narrow = [piece for pair in texts for piece in _narrowed(*pair)]
    return (
        tuple(_bounded((left, is_changed) for left, _, is_changed in narrow)),
        tuple(_bounded((right, is_changed) for _, right, is_changed in narrow)),
    )


def _whole(text: str | None) -> Parts | None:
    return None if text is None else tuple(_bounded([(text, False)]))


def _common_ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Return the number of items that both share at the start, and at the end after those."""
    shorter = min(len(before), len(after))
    start = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    rest = shorter - start
    end = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    return start, end


def _changes(before: list[str], after: list[str]) -> Iterator[tuple[list[str], list[str], bool]]:
    if max(len(before), len(after)) > _MOST_TOKENS:
        yield before, after, True
        return
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:
        yield before, after, True
        return
    for tag, left, left_end, right, right_end in matcher.get_opcodes():
        # a single blank between two changed words does not interrupt the mark
        is_changed = tag != "equal" or not "".join(before[left:left_end]).strip()
        yield before[left:left_end], after[right:right_end], is_changed


def _narrowed(left: str, right: str, is_changed: bool) -> Iterator[tuple[str, str, bool]]:
    """Yield a changed pair; of a long pair, mark only the difference between the shared ends."""
    if not is_changed or min(len(left), len(right)) < _LONG_WORD:
        yield left, right, is_changed
        return
    start, end = _common_ends(left, right)
    yield left[:start], right[:start], False
    yield left[start : len(left) - end], right[start : len(right) - end], True
    yield left[len(left) - end :], right[len(right) - end :], False


def _bounded(pieces: Iterator[tuple[str, bool]] | list[tuple[str, bool]]) -> Iterator[Part]:
    for text, is_changed in _joined(pieces):
        excess = len(text) - _LONGEST_PART
        if excess <= 0:
            yield Part(text, is_changed)
            continue
        half = _LONGEST_PART // 2
        yield Part(text[:half], is_changed)
        yield Part("", is_changed, left_out=excess)
        yield Part(text[-half:], is_changed)


def _joined(pieces: Iterator[tuple[str, bool]] | list[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """Yield the nonempty pieces; adjacent pieces of one kind are merged."""
    collected, kind = "", False
    for text, is_changed in pieces:
        if is_changed is not kind and text:
            if collected:
                yield collected, kind
            collected, kind = "", is_changed
        collected += text
    if collected:
        yield collected, kind
