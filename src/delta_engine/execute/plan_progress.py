"""How far a plan has got: which steps may start, what became of each table. Starts nothing itself."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush

from delta_engine.actions import AlignTable, CreateTable, DropTable, TableAction
from delta_engine.backends.cancellation import StoppedError
from delta_engine.errors import StatementError
from delta_engine.execute.ddl import InterruptedStatementsError
from delta_engine.execute.resource_statements import StatementRun
from delta_engine.execute.steps import Step
from delta_engine.models import QualifiedName


class OutcomeKind(Enum):
    """What became of a table."""

    CREATED = "created"
    CHANGED = "changed"
    DROPPED = "dropped"
    FAILED = "failed"
    STOPPED = "stopped"


_KINDS: Mapping[type[TableAction], OutcomeKind] = {
    CreateTable: OutcomeKind.CREATED,
    AlignTable: OutcomeKind.CHANGED,
    DropTable: OutcomeKind.DROPPED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutcome:
    """What became of one table of a plan.

    Args:
        table: the table.
        kind: created, changed, dropped or failed; stopped if the run was to end before the table was done, or begun.
        statements: how many statements ran to the end.
        is_verified: whether the table was read once more, and is as it was meant to be.
        failure: the statement that failed and why, without a statement if the table depends on one that failed;
            None unless the kind is failed or stopped.
        runs: the statements that were sent, in order.
    """

    table: QualifiedName
    kind: OutcomeKind
    statements: int
    is_verified: bool = False
    failure: InterruptedStatementsError | None = None
    runs: tuple[StatementRun, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What became of a step.

    Args:
        statements: how many ran to the end.
        failure: the one that did not.
        runs: those that were sent.
    """

    statements: int
    failure: InterruptedStatementsError | None = None
    runs: tuple[StatementRun, ...] = ()


class PlanProgress:
    """Keeps account of a plan's steps.

    Args:
        steps: as `steps_of` returns them.
        failed_schemas: the keys of schemas whose tables cannot be touched.
    """

    def __init__(self, steps: Sequence[Step], *, failed_schemas: Collection[str] = ()) -> None:
        self._steps = steps
        self._waiting = [len(step.after) for step in steps]
        self._followers: dict[int, list[int]] = defaultdict(list)
        for position, step in enumerate(steps):
            for before in step.after:
                self._followers[before].append(position)
        self._held: list[int] = []  # last ones that wait for nothing but all others
        self._others_left = sum(not step.is_last for step in steps)
        self._ready: list[int] = []
        for position, step in enumerate(steps):
            if not step.after:
                self._free(position)
        self._left = Counter(step.table.key for step in steps)
        self._statements: Counter[str] = Counter()
        self._runs: dict[str, tuple[StatementRun, ...]] = {}
        self._failures = {
            step.table.key: _dependency_failure(f"schema {step.table.catalog}.{step.table.schema}")
            for step in steps
            if step.table.key.rpartition(".")[0] in failed_schemas
        }
        self._failed_steps: set[int] = set()
        self._kinds = {
            step.table.key: _KINDS[type(part)]
            for step in reversed(steps)
            for part in reversed(step.parts)  # the first says it: what completes a CREATE is no change
        } | {step.table.key: OutcomeKind.DROPPED for step in steps if step.is_last}
        self._outcomes: deque[TableOutcome] = deque()
        self._is_stopped = False

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return not self._left

    def start(self, most: int) -> Iterator[tuple[int, Step]]:
        """Yield the next steps that may start, with their positions; those that cannot be done are passed over.

        Args:
            most: how many to start.
        """
        started = 0
        while self._ready and started < most:
            position = heappop(self._ready)
            obstacle = self._obstacle(self._steps[position])
            if obstacle:
                self.finish(position, StepResult(statements=0, failure=obstacle))
            else:
                started += 1
                yield position, self._steps[position]

    def statements_done(self, table: QualifiedName) -> int:
        """Return how many statements of a table ran to the end so far."""
        return self._statements[table.key]

    def finish(self, position: int, result: StepResult) -> None:
        """Take in what became of a step."""
        table = self._steps[position].table
        self._statements[table.key] += result.statements
        if result.runs:
            self._runs[table.key] = (*self._runs.get(table.key, ()), *result.runs)
        if result.failure:
            self._failures.setdefault(table.key, result.failure)
            self._failed_steps.add(position)
        for follower in self._followers[position]:
            self._waiting[follower] -= 1
            if not self._waiting[follower]:
                self._free(follower)
        if not self._steps[position].is_last:
            self._others_left -= 1
            if not self._others_left:
                self._ready, self._held = sorted({*self._ready, *self._held}), []
        self._left[table.key] -= 1
        if not self._left[table.key]:
            del self._left[table.key]
            self._outcomes.append(self._outcome(table))

    def stop(self) -> None:
        """Pass over all steps that have not been started."""
        self._is_stopped = True

    def take_outcomes(self) -> Iterator[TableOutcome]:
        """Yield, and let go of, the outcomes of the tables that were finished and not yielded yet."""
        while self._outcomes:
            yield self._outcomes.popleft()

    def _free(self, position: int) -> None:
        """Take in that a step has none before it any more."""
        is_held = self._steps[position].is_last and self._others_left
        heappush(self._held if is_held else self._ready, position)

    def _obstacle(self, step: Step) -> InterruptedStatementsError | None:
        """Return why a step cannot be done: its table failed before, or one that it depends on, or all is to end."""
        if step.table.key in self._failures:
            return self._failures[step.table.key]
        if self._is_stopped:
            return InterruptedStatementsError(StoppedError(sql=""), 0)
        for before in step.after:
            if before in self._failed_steps:
                return _dependency_failure(f"table {self._steps[before].table}")
        return None

    def _outcome(self, table: QualifiedName) -> TableOutcome:
        failure = self._failures.get(table.key)
        return TableOutcome(
            table=table,
            kind=kind_of_failure(failure) if failure else self._kinds[table.key],
            statements=self._statements[table.key],
            failure=failure,
            runs=self._runs.get(table.key, ()),
        )


def kind_of_failure(failure: InterruptedStatementsError) -> OutcomeKind:
    """Return what became of something that did not get through: it failed, or the run was to end."""
    return OutcomeKind.STOPPED if isinstance(failure.cause, StoppedError) else OutcomeKind.FAILED


def _dependency_failure(what: str) -> InterruptedStatementsError:
    reason = f"it depends on {what}, which failed"
    return InterruptedStatementsError(StatementError(reason, sql="", error_class=None), 0)
