"""What a probe is: a question, and how it is put to the platform. An answer never fails a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from delta_engine.backends.capabilities import Feature
from delta_engine.errors import StatementError
from delta_engine.tools.conformance.report import ErrorForm, Holds
from delta_engine.tools.conformance.rounds import Rounds
from delta_engine.tools.conformance.statement_log import error_form

Answer: TypeAlias = tuple[Holds, Sequence[str]]
"""The result of a probe: whether the assumption holds, and what happened, line by line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One question; `needs` are the features without which it makes no sense."""

    name: str
    question: str
    assumption: str
    ask: Callable[[Rounds], Answer]
    needs: tuple[Feature, ...] = ()


def attempted(rounds: Rounds, sql: str) -> ErrorForm | None:
    """Send a statement; return its refusal, or None if the platform accepted it."""
    try:
        rounds.backend.runner.run(sql)
    except StatementError as error:
        return error_form(error)
    return None


def described(refusal: ErrorForm | None) -> str:
    """Return a refusal in a line."""
    if refusal is None:
        return "it was accepted"
    message = " ".join(refusal.message.split())
    return f"condition {refusal.condition or 'none'}, SQLSTATE {refusal.sql_state or 'none'}: {message}"
