"""Suggested entries of `conf/consents.yml`, with what to do with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from delta_engine.telemetry.context import command

_ENTRY: Final = "\n  - "
_MOST_ENTRIES: Final = 5


def consent_heading() -> str:
    """Return what to do with the entries that would allow what a plan refuses."""
    written = command("plan --write-consents")
    return f"To consent in the pull request, add to conf/consents.yml, or run {written}:"


def entry_lines(entries: str, *, heading: str | None = None, is_full: bool = True) -> Iterator[str]:
    """Yield entries as they are to be pasted, below a heading; without another one, that of plans."""
    if not entries:
        return
    yield consent_heading() if heading is None else heading
    first, *others = entries.rstrip("\n").split(_ENTRY)
    shown = others if is_full else others[:_MOST_ENTRIES]
    yield from _ENTRY.join((first, *shown)).splitlines()
    if hidden := len(others) - len(shown):
        yield f"  # and {hidden:,} more: --full shows all"
