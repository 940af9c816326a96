"""Refusals as text: one cause on many tables is one message with the first places, not one message per table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from delta_engine.errors import RefusedError
from delta_engine.telemetry.visible import counted

FEWEST_GROUPED: Final = 3
"""Fewer refusals with one cause are shown as they are."""

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
    """Return the messages of refusals, in the order of each cause's first refusal."""
    causes: dict[tuple[str, int | None], list[RefusedError]] = {}
    for number, refusal in enumerate(refusals):
        causes.setdefault((_cause(refusal), None if refusal.place else number), []).append(refusal)
    return [message for (cause, _), found in causes.items() for message in _messages(cause, found)]


def _messages(cause: str, refusals: Sequence[RefusedError]) -> Iterator[RefusalMessage]:
    if len(refusals) >= FEWEST_GROUPED:
        yield RefusalMessage(lines=tuple(_grouped(cause, refusals)), refusals=tuple(refusals))
        return
    for refusal in refusals:
        yield RefusalMessage(lines=(str(refusal),), refusals=(refusal,))


def _grouped(cause: str, refusals: Sequence[RefusedError]) -> Iterator[str]:
    columns = {refusal.column for refusal in refusals}
    shown = cause.replace(_COLUMN, str(*columns)) if len(columns) == 1 else cause
    yield f"{_count(refusals)}: {shown}"
    for refusal in refusals[:MOST_PLACES]:
        yield f"  {refusal.place}"
    if len(refusals) > MOST_PLACES:
        yield f"  and {len(refusals) - MOST_PLACES:,} more"


def _count(refusals: Sequence[RefusedError]) -> str:
    tables = {refusal.table for refusal in refusals}
    if None in tables:
        return counted(len(refusals), "place")
    if len(tables) == len(refusals):
        return counted(len(tables), "table")
    return f"{counted(len(refusals), 'place')} in {counted(len(tables), 'table')}"


def _cause(refusal: RefusedError) -> str:
    """Return reason and way out without the names that differ from table to table."""
    text = refusal.message
    if refusal.table:
        text = text.replace(refusal.table, _TABLE)
    return text.replace(f"({refusal.column})", f"({_COLUMN})") if refusal.column else text
