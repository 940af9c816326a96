"""Results of statements and steps, and the outcomes of the securables of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeAlias, TypeGuard, TypeVar

from delta_engine.errors import StatementError
from delta_engine.models import QualifiedName, SchemaName, SecurableName, resource_key

Name = TypeVar("Name", bound=SecurableName, covariant=True)


class OutcomeKind(Enum):
    """The result of a securable."""

    CREATED = "created"
    CHANGED = "changed"
    DROPPED = "dropped"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatement:
    """A statement that was sent.

    Args:
        seconds: until its last answer, waits for further attempts included.
        retries: how many attempts there were after the first.
        is_done: whether it did what it should.
    """

    sql: str
    seconds: float
    retries: int = 0
    is_done: bool = True


StepResult: TypeAlias = tuple[tuple[RunStatement, ...], StatementError | None]
"""The statements that a step sent, and the failure of the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[Name]):
    """The result of one securable of a plan.

    Args:
        kind: stopped if the run was stopped before it was done, or begun.
        runs: the statements that were sent, in order.
        is_verified: whether the table was read again after the apply, and matches its model.
        failure: the statement that failed and why, without a statement if a dependency failed; None unless the kind
            is failed or stopped.
    """

    name: Name
    kind: OutcomeKind
    runs: tuple[RunStatement, ...] = ()
    is_verified: bool = False
    failure: StatementError | None = None

    @property
    def statements(self) -> int:
        """How many statements succeeded."""
        return sum(run.is_done for run in self.runs)

    @property
    def is_done(self) -> bool:
        """Whether the securable is as planned, as far as statements tell."""
        return self.kind not in (OutcomeKind.FAILED, OutcomeKind.STOPPED)

    @property
    def is_empty(self) -> bool:
        """Whether nothing had to be done: a schema of tables by path is a folder."""
        return self.name.is_container and not self.runs and self.failure is None


TableOutcome: TypeAlias = Outcome[QualifiedName]
SchemaOutcome: TypeAlias = Outcome[SchemaName]
AnyOutcome: TypeAlias = Outcome[SecurableName]

OnOutcome: TypeAlias = Callable[[AnyOutcome], object]
"""Receives what became of each securable."""


def undone_keys(outcomes: Iterable[AnyOutcome]) -> set[str]:
    """Return the resource keys of what failed, or was stopped before it was done."""
    return {resource_key(outcome.name) for outcome in outcomes if not outcome.is_done}


def is_of_table(outcome: AnyOutcome) -> TypeGuard[TableOutcome]:
    """Whether an outcome is a table's."""
    return outcome.name.kind == "table"


def is_of_schema(outcome: AnyOutcome) -> TypeGuard[SchemaOutcome]:
    """Whether an outcome is a schema's."""
    return outcome.name.kind == "schema"


def of_tables(outcomes: Iterable[AnyOutcome]) -> tuple[TableOutcome, ...]:
    """Return the outcomes of tables."""
    return tuple(filter(is_of_table, outcomes))


def of_schemas(outcomes: Iterable[AnyOutcome]) -> tuple[SchemaOutcome, ...]:
    """Return the outcomes of schemas."""
    return tuple(filter(is_of_schema, outcomes))
