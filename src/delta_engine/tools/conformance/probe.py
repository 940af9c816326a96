"""What a probe is: a question, and how it is put to the platform. An answer never fails a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from delta_engine.aspects import KINDS
from delta_engine.backends.capabilities import Feature
from delta_engine.errors import StatementError
from delta_engine.models import Securable
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


def of_scratch(
    model_type: type[Securable], name: str = ""
) -> Callable[[Callable[[Rounds, Any, Any], Answer]], Callable[[Rounds], Answer]]:
    """Let a probe ask about a scratch securable, as its group declared it last and as it was read last.

    Without one that exists, the probe cannot tell.

    Args:
        name: its name without the prefix of the run; by default, any is taken.
    """
    word = next(kind.word for kind in KINDS if kind.model is model_type)

    def made(ask: Callable[[Rounds, Any, Any], Answer]) -> Callable[[Rounds], Answer]:
        def asked(rounds: Rounds) -> Answer:
            key, read = rounds.objects.place.qualified(name).key, rounds.reader.snapshot([])
            declared = (model for walk in rounds.walks for step in walk.group.steps for model in step)
            of_type = [model for model in declared if isinstance(model, model_type)]
            for model in reversed(of_type):
                state = read.of(model.qualified_name)
                if state is not None and state.exists and (not name or model.key == key):
                    return ask(rounds, model, state)
            return Holds.CANNOT_TELL, [f"there is no scratch {word}"]

        return asked

    return made


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
