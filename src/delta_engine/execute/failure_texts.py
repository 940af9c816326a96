"""Failures of an apply as text: at most ten rows of a terminal for each cause.

Outcomes, JSON documents, logs and the deployment state keep messages and statements whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from delta_engine.execute.outcomes import AnyOutcome
from delta_engine.sql.text import without_name
from delta_engine.telemetry.context import spoken
from delta_engine.telemetry.visible import FEWEST_GROUPED, counted, first_rows, fits, listed, rows_of

_MOST_ROWS: Final = 10
_MOST_ROWS_OF_A_MESSAGE: Final = 5


def failure_lines(outcomes: Iterable[AnyOutcome]) -> Iterator[str]:
    """Yield a text for each failure; several resources that failed with one message have one text."""
    causes: dict[tuple[str, str], list[AnyOutcome]] = {}
    for outcome in outcomes:
        causes.setdefault((outcome.name.kind, _cause(outcome)), []).append(outcome)
    for (_, cause), failed in causes.items():
        if len(failed) < FEWEST_GROUPED:
            yield from map(_failure, failed)
        else:
            yield _failures(cause, failed)


def shortened(text: str) -> str:
    """Return a text about one failure; cut if it is too long, then with a note where all of it is."""
    return text if fits(text, _MOST_ROWS) else _cut(text)


def _failure(outcome: AnyOutcome) -> str:
    message, sql = f"{_place(outcome)}: {_message(outcome)}", _sql(outcome)
    progress = f"({_progress(outcome)}{f', in: {sql}' if sql else ''})"
    if fits(f"{message} {progress}", _MOST_ROWS):
        return f"{message} {progress}"
    return _cut(f"{first_rows(message, _MOST_ROWS_OF_A_MESSAGE)} {progress}")


def _failures(cause: str, failed: Sequence[AnyOutcome]) -> str:
    places = [f"{_place(outcome)} ({_progress(outcome)})" for outcome in failed]
    message = f"{counted(len(failed), failed[0].name.kind)}: {cause}"
    shown = first_rows(message, _MOST_ROWS_OF_A_MESSAGE)
    note = [_cut_note()] if shown != message or any(map(_sql, failed)) else []
    room = _MOST_ROWS - rows_of(shown) - len(note)
    places_shown = (
        len(places) if len(places) <= room else room - 1
    )  # the last row says how many more there are
    return "\n".join([shown, *listed(places, places_shown), *note])


def _cause(outcome: AnyOutcome) -> str:
    return without_name(_message(outcome), str(outcome.name), f"<{outcome.name.kind}>")


def _message(outcome: AnyOutcome) -> str:
    return outcome.failure.message if outcome.failure else "an executor gave no reason"


def _sql(outcome: AnyOutcome) -> str:
    return outcome.failure.sql if outcome.failure else ""


def _place(outcome: AnyOutcome) -> str:
    return f"{outcome.name.kind} {outcome.name}"


def _progress(outcome: AnyOutcome) -> str:
    return f"after {counted(outcome.statements, 'statement')}"


def _cut(text: str) -> str:
    return f"{first_rows(text, _MOST_ROWS - 1)}\n{_cut_note()}"


def _cut_note() -> str:
    place = spoken("--json", "the error's outcomes")
    return f"  ({place} and the log have full messages and statements)"
