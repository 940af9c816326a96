"""Applies a plan: schemas first, then tables in parallel, as far as foreign keys leave them free.

One table's failure never stops those that do not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue

from delta_engine.actions import AlignTable, CreateTable, DropTable, TablePlan
from delta_engine.addressing import Addressing
from delta_engine.aspects import schemas
from delta_engine.capabilities import Capabilities
from delta_engine.errors import DeltaEngineError
from delta_engine.execute.align_executor import AlignExecutor
from delta_engine.execute.create_executor import CreateExecutor
from delta_engine.execute.ddl import DeltaDDL, InterruptedStatementsError
from delta_engine.execute.guarded_sql_runner import GuardedSqlRunner
from delta_engine.execute.plan_progress import OutcomeKind, PlanProgress, StepResult, TableOutcome
from delta_engine.execute.recording_sql_runner import RecordingSqlRunner
from delta_engine.execute.steps import Step, drop_steps, steps_of
from delta_engine.sql import sql_drop_table
from delta_engine.sql_runner import SqlRunner

__all__ = ["ActionRunner", "ApplyFailedError", "OutcomeKind", "ScriptLine", "TableOutcome", "by_table"]


class ApplyFailedError(DeltaEngineError):
    """At least one table failed; the others were applied. A further run goes on from there.

    Args:
        outcomes: what became of every table of the plan.
    """

    def __init__(self, outcomes: tuple[TableOutcome, ...]) -> None:
        self.outcomes = outcomes
        failed = [outcome for outcome in outcomes if outcome.failure]
        lines = "\n".join(
            f"table {outcome.table}: {outcome.failure.message} (after {outcome.statements} statements"
            f"{f', in: {outcome.failure.sql}' if outcome.failure.sql else ''})"
            for outcome in failed
            if outcome.failure
        )
        super().__init__(f"{len(failed)} of {len(outcomes)} tables failed:\n{lines}")

    @property
    def is_partial(self) -> bool:
        """Whether anything was applied at all."""
        return any(outcome.statements for outcome in self.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptLine:
    """One statement of a plan.

    Args:
        table: the key of the table that it changes; empty for a schema.
        sql: the statement.
    """

    table: str
    sql: str


def by_table(script: Iterable[ScriptLine]) -> Mapping[str, Sequence[str]]:
    """Return a script's statements by the keys of their tables."""
    statements: dict[str, list[str]] = {}
    for line in script:
        statements.setdefault(line.table, []).append(line.sql)
    return statements


class ActionRunner:
    """Applies plans.

    Args:
        runner: what the statements go to.
        addressing: how tables are addressed.
        capabilities: what the platform can do.
        parallelism: how many tables to change at once, at most; within one, statements run in order.
    """

    def __init__(
        self,
        runner: SqlRunner,
        addressing: Addressing,
        capabilities: Capabilities,
        *,
        parallelism: int = 4,
    ) -> None:
        self._runner = runner
        self._capabilities = capabilities
        self._ddl = DeltaDDL(runner)
        self._addressing = addressing
        self._creator = CreateExecutor(self._ddl, addressing, capabilities)
        self._aligner = AlignExecutor(self._ddl, addressing, capabilities)
        self._parallelism = parallelism

    def guarded(self, check: Callable[[], None]) -> ActionRunner:
        """Return a runner that makes a check before every statement; what the check raises ends the apply."""
        return ActionRunner(
            GuardedSqlRunner(self._runner, check),
            self._addressing,
            self._capabilities,
            parallelism=self._parallelism,
        )

    def apply(
        self, plan: TablePlan, on_outcome: Callable[[TableOutcome], None] | None = None
    ) -> tuple[TableOutcome, ...]:
        """Apply every action of a plan.

        Args:
            plan: a validated plan.
            on_outcome: called in the calling thread as each table is done.

        Returns:
            What became of each table, sorted by name.

        Raises:
            ApplyFailedError: at least one table failed; all were tried.
            InterruptedStatementsError: a schema could not be created or changed; no table was touched.
        """
        self._prepare_schemas(plan)
        tell = on_outcome or (lambda _outcome: None)
        outcomes = self._apply_steps(steps_of(plan), tell)
        outcomes += self._apply_steps(drop_steps(plan), tell)
        if any(outcome.kind is OutcomeKind.FAILED for outcome in outcomes):
            raise ApplyFailedError(outcomes)
        return outcomes

    def script(self, plan: TablePlan) -> tuple[ScriptLine, ...]:
        """Return the exact statements of a plan in a valid order, without running them."""
        recorder = RecordingSqlRunner()
        recording = ActionRunner(recorder, self._addressing, self._capabilities, parallelism=1)
        recording._prepare_schemas(plan)
        lines = [ScriptLine(table="", sql=sql) for sql in recorder.statements]
        for step in (*steps_of(plan), *drop_steps(plan)):
            recorder.statements.clear()
            recording._do(step)
            lines += [ScriptLine(table=step.table.key, sql=sql) for sql in recorder.statements]
        return tuple(lines)

    def _prepare_schemas(self, plan: TablePlan) -> None:
        self._ddl.run(
            self._addressing.create_schema(schema.catalog_name, schema.schema_name, schema.comment)
            for schema in plan.create_schemas
        )
        for align in plan.align_schemas:
            self._ddl.run(schemas.render(align, self._addressing, self._capabilities))

    def _apply_steps(
        self, steps: Sequence[Step], on_outcome: Callable[[TableOutcome], None]
    ) -> tuple[TableOutcome, ...]:
        progress = PlanProgress(steps)
        outcomes: list[TableOutcome] = []
        finished: SimpleQueue[tuple[int, Future[StepResult]]] = SimpleQueue()
        under_way = 0
        # What runs at an interrupt finishes its statement; nothing new is started.
        with ThreadPoolExecutor(self._parallelism, thread_name_prefix="apply") as pool:
            while not progress.is_over:
                for position, step in progress.start(self._parallelism - under_way):
                    future = pool.submit(self._do, step)
                    future.add_done_callback(partial(_put, finished, position))
                    under_way += 1
                if under_way:
                    position, future = finished.get()
                    under_way -= 1
                    progress.finish(position, future.result())
                for outcome in progress.take_outcomes():
                    outcomes.append(outcome)
                    on_outcome(outcome)
        return tuple(sorted(outcomes, key=lambda outcome: outcome.table.key))

    def _do(self, step: Step) -> StepResult:
        done = 0
        for part in step.parts:
            try:
                match part:
                    case CreateTable():
                        done += self._creator.apply(part)
                    case AlignTable():
                        done += self._aligner.apply(part)
                    case DropTable(table):
                        done += self._ddl.run([sql_drop_table(self._addressing.table(table))])
            except InterruptedStatementsError as failure:
                return StepResult(statements=done + failure.statements_done, failure=failure)
        return StepResult(statements=done)


def _put(
    finished: SimpleQueue[tuple[int, Future[StepResult]]], position: int, future: Future[StepResult]
) -> None:
    finished.put((position, future))
