"""Applies a compiled plan in parallel; a failure stops only the dependents of the failed securable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final, Protocol, TypeAlias

from delta_engine.actions import Phase, TablePlan
from delta_engine.aspects import kind_of
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.capabilities import Capabilities
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.compile.compiled_plan import CompiledPlan, Step
from delta_engine.compile.compiler import compile_plan
from delta_engine.errors import DeltaEngineError, StatementError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.failure_texts import failure_lines
from delta_engine.execute.fill_runner import FillRunner
from delta_engine.execute.outcomes import (
    AnyOutcome,
    OnOutcome,
    OutcomeKind,
    SchemaOutcome,
    StepResult,
    TableOutcome,
    of_schemas,
    of_tables,
)
from delta_engine.execute.plan_progress import PlanProgress
from delta_engine.execute.restore_runner import restore
from delta_engine.execute.rewrite_runner import verify_rewrite
from delta_engine.execute.statement_runner import (
    Reread,
    RetryCheck,
    StatementRunner,
    always,
    explained,
    has_to_run,
    is_needless,
)
from delta_engine.models import QualifiedName
from delta_engine.sql.queries import sql_current_user
from delta_engine.telemetry.context import in_context
from delta_engine.telemetry.spans import span
from delta_engine.telemetry.visible import counted, plural, shared_plural

_Finished: TypeAlias = "tuple[int, Future[StepResult]]"

_POLL_SECONDS: Final = 0.2
"""How often the wait for results ends, so that Python can handle a signal. The system may deliver the signal to
another thread, or right before the wait begins; neither ends the wait."""


class ApplyFailedError(DeltaEngineError):
    """At least one securable failed; the others were applied. Another run applies the rest."""

    topic = "failed-tables"

    def __init__(self, outcomes: Sequence[AnyOutcome]) -> None:
        self.outcomes = tuple(outcomes)
        super().__init__(self._message())

    @property
    def tables(self) -> tuple[TableOutcome, ...]:
        """The outcomes of all tables."""
        return of_tables(self.outcomes)

    @property
    def schemas(self) -> tuple[SchemaOutcome, ...]:
        """The outcomes of all schemas."""
        return of_schemas(self.outcomes)

    @property
    def is_applied_in_part(self) -> bool:
        """Whether any statement succeeded."""
        return any(outcome.statements for outcome in self.outcomes)

    def _message(self) -> str:
        failed = [outcome for outcome in self.outcomes if outcome.kind is OutcomeKind.FAILED]
        failed.sort(key=lambda outcome: outcome.name.kind)
        of_kinds = Counter(outcome.name.kind for outcome in failed) or {"table": 0}
        all_of = Counter(outcome.name.kind for outcome in self.outcomes)
        counts = (f"{number} of {all_of[kind]} {plural(kind)}" for kind, number in of_kinds.items())
        return "\n".join((f"{' and '.join(counts)} failed:", *failure_lines(failed)))


class ApplyStoppedError(ApplyFailedError):
    """The run was stopped, mostly before all resources were done. Another run applies the rest."""

    topic = "stopped"

    @property
    def is_complete(self) -> bool:
        """Whether all resources were done before the stop."""
        return not any(outcome.failure for outcome in self.outcomes)

    def _message(self) -> str:
        outcomes = [outcome for outcome in self.outcomes if not outcome.is_empty]
        total, what = len(outcomes), shared_plural(outcome.name.kind for outcome in outcomes)
        if self.is_complete:
            return f"all {total} {what} were done before the stop."
        stopped = [outcome for outcome in outcomes if outcome.kind is OutcomeKind.STOPPED]
        begun = [outcome for outcome in stopped if outcome.statements]
        lines = [
            f"{total - len(stopped)} of {total} {what} were done, {len(begun)} in part, {len(stopped) - len(begun)} "
            "not begun. Run again to apply the rest."
        ]
        lines += [
            f"{outcome.name.kind} {outcome.name}: stopped after {counted(outcome.statements, 'statement')}"
            for outcome in begun
        ]
        if any(outcome.kind is OutcomeKind.FAILED for outcome in self.outcomes):
            lines.append(super()._message())
        return "\n".join(lines)


class Executor(Protocol):
    """Applies plans in place of an `ActionRunner`, such as a dry run."""

    def apply(self, plan: TablePlan) -> Iterable[AnyOutcome] | None:
        """Apply a plan that is not empty; return the outcomes of the securables that it changed, if any.

        Raises:
            ApplyFailedError: a schema or table failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class ActionRunner:
    """Compiles plans for one platform and applies them, changing at most `parallelism` securables at once."""

    runner: SqlRunner
    addressing: Addressing
    capabilities: Capabilities
    _: KW_ONLY
    parallelism: int = 4

    def compile(self, plan: TablePlan) -> CompiledPlan:
        """Return the statements of a plan for this platform."""
        return compile_plan(plan, self.addressing, self.capabilities)

    def apply(
        self,
        plan: TablePlan | CompiledPlan,
        on_outcome: OnOutcome = lambda _outcome: None,
        *,
        control: ApplyControl | None = None,
        check: Callable[[], None] = lambda: None,
        reread: Reread | None = None,
        principal: str | None = None,
    ) -> tuple[AnyOutcome, ...]:
        """Run every statement of a plan, and no other changes; return the outcomes, sorted by name.

        It records nothing, so it cannot tell later which parts of a table are the engine's: an `Orchestrator` can.

        Args:
            plan: also one that is compiled already.
            on_outcome: called in the calling thread after each securable.
            check: called before every statement; its errors end the apply.
            reread: re-reads and re-plans a table after an ambiguous error; without it, such an error is a failure.
            principal: who runs the statements. A statement that changes nothing for this principal is not sent.

        Raises:
            ApplyStoppedError: the run was stopped before it was complete.
            ApplyFailedError: at least one schema or table failed; all independent ones were tried.
        """
        outcomes = _RunningApply(
            runner=self.runner,
            addressing=self.addressing,
            plan=self.compile(plan) if isinstance(plan, TablePlan) else plan,
            control=control or ApplyControl(),
            reread=reread,
            principal=principal,
            check=check,
            on_outcome=on_outcome,
            parallelism=self.parallelism,
        ).run()
        kinds = {outcome.kind for outcome in outcomes}
        if OutcomeKind.STOPPED in kinds:
            raise ApplyStoppedError(outcomes)
        if OutcomeKind.FAILED in kinds:
            raise ApplyFailedError(outcomes)
        return outcomes


@dataclass(slots=True, kw_only=True)
class _RunningApply:
    """One apply in progress. Steps run in the threads of a pool; only the caller's thread uses the progress."""

    runner: SqlRunner
    addressing: Addressing
    plan: CompiledPlan
    control: ApplyControl
    reread: Reread | None
    principal: str | None
    check: Callable[[], None]
    on_outcome: OnOutcome
    parallelism: int
    _progress: PlanProgress = field(init=False)
    _running: int = 0
    _finished: SimpleQueue[_Finished | None] = field(default_factory=SimpleQueue)
    _outcomes: list[AnyOutcome] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._progress = PlanProgress(self.plan.steps)

    def run(self) -> tuple[AnyOutcome, ...]:
        """Run all steps that can run; return the outcomes of all securables, sorted by name."""
        with self.control.stop.on_request(partial(self._finished.put, None)):
            try:
                with (
                    ThreadPoolExecutor(self.parallelism, thread_name_prefix="apply") as pool,
                    self.control.stop.requested_at_errors(),
                ):
                    while not self._progress.is_over:
                        self._start(pool)
                        self._await_one()
                        self._report()
            except BaseException:
                self._report_the_rest()
                raise
        return tuple(sorted(self._outcomes, key=lambda outcome: outcome.name.key))

    def _start(self, pool: ThreadPoolExecutor) -> None:
        if self.control.stop.is_requested():
            self._progress.stop()
        for position, step in self._progress.start(self.parallelism - self._running):
            future = pool.submit(copy_context().run, self._run_step, position, step)
            future.add_done_callback(partial(self._put, position))
            self._running += 1

    def _put(self, position: int, future: Future[StepResult]) -> None:
        self._finished.put((position, future))

    def _run_step(self, position: int, step: Step) -> StepResult:
        """Run a step's statements up to the first failure."""
        kind = step.name.kind
        table = self.addressing.table(step.name) if isinstance(step.name, QualifiedName) else ""
        statements = StatementRunner(
            runner=self.runner, name=step.name, control=self.control, check=self.check, address=table
        )
        named, failure = {kind: str(step.name)}, None
        fills = FillRunner(statements)
        with in_context(**named), span(f"delta_engine.{kind}", **named) as opened:
            for place, statement in enumerate(step.statements):
                if is_needless(statement, self.principal):
                    continue
                try:
                    if statement.phase is Phase.RESTORE_TABLE:
                        restore(statements, statement)
                    elif statement.phase is Phase.VERIFY_REWRITE:
                        verify_rewrite(statements, statement)
                    elif statement.is_repeatable:
                        fills.run(statement)
                    else:
                        statements.run(statement.sql, self._retry_check(position, place))
                except StatementError as error:
                    failure = explained(statement, error, self._current_user)
                    opened.fail(failure.message)
                    break
            opened.add(statements=sum(run.is_done for run in statements.runs))
        return tuple(statements.runs), failure

    def _retry_check(self, position: int, place: int) -> RetryCheck | None:
        """Return the check for the statement at a place of a step."""
        step, reread = self.plan.steps[position], self.reread
        name = step.name
        if kind_of(name).is_repeatable:
            return always
        if reread is None or not isinstance(name, QualifiedName):
            return None

        def is_needed(error: StatementError) -> bool:
            later = [later for later in self.plan.steps[position + 1 :] if later.resource == step.resource]
            left = [
                *step.statements[place:],
                *(statement for later_step in later for statement in later_step.statements),
            ]
            return has_to_run(
                [statement.sql for statement in left if not statement.is_repeatable], reread(name), error
            )

        return is_needed

    def _current_user(self) -> str:
        try:
            rows = self.runner.run(sql_current_user())
        except (StatementError, OSError):
            rows = ()
        return next((str(value) for row in rows for value in row.values()), "the current user")

    def _await_one(self) -> None:
        """Handle the next result or request to stop; return early without one."""
        if not self._running:
            assert self._progress.is_over, "steps wait for each other"
            return
        try:
            done = self._finished.get(timeout=_POLL_SECONDS)
        except Empty:
            return
        if done is None:
            self.control.notify_stopping()
        else:
            self._running -= 1
            self._progress.finish(done[0], done[1].result())

    def _report(self) -> None:
        for outcome in self._progress.take_outcomes():
            self._outcomes.append(outcome)
            self.on_outcome(outcome)

    def _report_the_rest(self) -> None:
        """After an error, report the finished steps, not the failed step's table, whose outcome is unknown."""
        while not self._finished.empty():
            done = self._finished.get()
            if done is not None and done[1].exception() is None:
                self._progress.finish(done[0], done[1].result())
        self._progress.stop()
        for _ in self._progress.start(1):
            raise AssertionError("no step starts after a stop")
        with ExitStack() as reports:  # report every outcome, also if one report raises
            for outcome in reversed(list(self._progress.take_outcomes())):
                reports.callback(self.on_outcome, outcome)
