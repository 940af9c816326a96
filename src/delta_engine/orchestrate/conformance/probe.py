"""What a probe is: one question about the platform, whose answer is a fact and never a failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.backends.capabilities import Feature
from delta_engine.errors import StatementError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.models import QualifiedName
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.conformance.place import Place
from delta_engine.orchestrate.conformance.statement_log import StatementLog, error_form
from delta_engine.orchestrate.conformance.walk import Walk, Walked
from delta_engine.report.conformance_report import ErrorForm, Holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a probe found.

    Args:
        holds: whether the engine's assumption holds.
        findings: what happened, line by line.
    """

    holds: Holds
    findings: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What probes work with.

    Args:
        backend: the platform.
        log: notes the statements.
        place: where they may make tables.
        control: waits, and ends the run early.
        walk: makes tables.
        walked: the groups of tables, as the walk left them.
        made: takes in the names of tables that are made without the walk.
    """

    backend: Backend
    log: StatementLog
    place: Place
    control: ApplyControl
    walk: Walk
    walked: Sequence[Walked]
    made: set[QualifiedName]

    def existing(self, name: str) -> QualifiedName | None:
        """Return a scratch table of the walk; None if it is not there."""
        wanted = self.place.table(name)
        is_there = any(one.states[wanted.key].exists for one in self.walked if wanted.key in one.states)
        return wanted if is_there else None

    def attempt(self, sql: str) -> ErrorForm | None:
        """Send a statement that may be refused; return the refusal, or None if there was none."""
        try:
            self.backend.runner.run(sql)
        except StatementError as error:
            return error_form(error)
        return None

    def statements(self, plan: TablePlan) -> list[str]:
        """Return the statements of a plan, without sending them."""
        return list(self.walk.action_runner.compile(plan).sql())

    def align_statements(self, align: AlignTable) -> list[str]:
        """Return the statements that change one table, without sending them."""
        return self.statements(TablePlan(align_tables=(align,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One question.

    Args:
        name: the probe.
        question: what it asks.
        assumption: what the engine takes for granted.
        ask: finds out.
        needs: the features without which there is nothing to ask.
    """

    name: str
    question: str
    assumption: str
    ask: Callable[[Scene], Answer]
    needs: tuple[Feature, ...] = ()


def told(refusal: ErrorForm | None) -> str:
    """Return a refusal, or that there was none, in one line."""
    if refusal is None:
        return "it was accepted"
    message = " ".join(refusal.message.split())
    return f"condition {refusal.condition or 'none'}, SQLSTATE {refusal.sql_state or 'none'}: {message}"
