"""Refusals as text: one cause on many tables is one message with the first places, not one message per table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from delta_engine.errors import RefusedError
from delta_engine.sql.text import without_name
from delta_engine.telemetry.visible import FEWEST_GROUPED, counted, listed

MOST_PLACES: Final = 10

_TABLE, _COLUMN = "<table>", "<column>"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalMessage:
    """One message: its lines, and the refusals that it stands for."""

    lines: tuple[str, ...]
    refusals: tuple[RefusedError, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def refusal_messages(refusals: Iterable[RefusedError]) -> list[RefusalMessage]:
    """Return the messages of refusals, in the order of each cause's first refusal. The last has the way out of all."""
    causes: dict[tuple[str, str, int | None], list[RefusedError]] = {}
    for number, refusal in enumerate(refusals):
        causes.setdefault((*_cause(refusal), None if refusal.place else number), []).append(refusal)
    messages = [
        message for (reason, way, _), those in causes.items() for message in _messages(reason, way, those)
    ]
    places: dict[str, list[int]] = {}
    for number, (_, way, _) in enumerate(messages):
        places.setdefault(way, []).append(number)
    return [_message(*message, number, places[message[1]]) for number, message in enumerate(messages)]


_Lines: TypeAlias = tuple[Sequence[str], str, Sequence[RefusedError]]
"""The lines of a message, the way out that follows the first one, and the refusals."""


def _messages(reason: str, way_out: str, refusals: Sequence[RefusedError]) -> Iterator[_Lines]:
    if len(refusals) >= FEWEST_GROUPED:
        columns = {refusal.column for refusal in refusals}
        if len(columns) == 1:
            reason, way_out = (text.replace(_COLUMN, str(*columns)) for text in (reason, way_out))
        yield [*_grouped(reason, refusals)], way_out, refusals
        return
    for refused in refusals:
        yield (
            [": ".join(filter(None, (refused.place, _sentence(refused.reason))))],
            refused.way_out,
            [refused],
        )


def _message(
    lines: Sequence[str], way_out: str, refusals: Sequence[RefusedError], number: int, places: Sequence[int]
) -> RefusalMessage:
    """Return a message; of several with one way out, only the last has it."""
    first, *rest = lines
    if way_out and number == places[-1]:
        start = f"For all {len(places)}: " if len(places) > 1 else ""
        first = f"{first} {start}{way_out}"
    return RefusalMessage(lines=(first, *rest), refusals=tuple(refusals))


def _grouped(reason: str, refusals: Sequence[RefusedError]) -> Iterator[str]:
    yield f"{_count(refusals)}: {reason}"
    yield from listed([refusal.place for refusal in refusals], MOST_PLACES)


def _count(refusals: Sequence[RefusedError]) -> str:
    tables = {refusal.table for refusal in refusals}
    if None in tables:
        return counted(len(refusals), "place")
    if len(tables) == len(refusals):
        return counted(len(tables), "table")
    return f"{counted(len(refusals), 'place')} in {counted(len(tables), 'table')}"


def _cause(refusal: RefusedError) -> tuple[str, str]:
    """Return the reason and the way out without the names that differ from table to table."""
    texts = [_sentence(refusal.reason), refusal.way_out]
    if refusal.table:
        texts = [without_name(text, refusal.table, _TABLE) for text in texts]
    if refusal.column:
        texts = [text.replace(f"({refusal.column})", f"({_COLUMN})") for text in texts]
    return texts[0], texts[1]


def _sentence(reason: str) -> str:
    return f"{reason.removesuffix('.')}."  # platform messages may end with a period
