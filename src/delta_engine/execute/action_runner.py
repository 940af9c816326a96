"""Applies a plan: schemas first, then tables in parallel, as far as foreign keys leave them free.

One table's failure never stops those that do not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from delta_engine.actions import TablePlan
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.capabilities import Capabilities
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.errors import DeltaEngineError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.ddl import DeltaDDL
from delta_engine.execute.guarded_sql_runner import GuardedSqlRunner
from delta_engine.execute.plan_progress import OutcomeKind, PlanProgress, TableOutcome
from delta_engine.execute.recording_sql_runner import RecordingSqlRunner
from delta_engine.execute.reviewed_sql_runner import ReviewedSqlRunner
from delta_engine.execute.schema_executor import SchemaExecutor, SchemaOutcome
from delta_engine.execute.schema_work import schema_works
from delta_engine.execute.step_loop import OnOutcome, StepLoop
from delta_engine.execute.steps import steps_of
from delta_engine.execute.still_needed import Look, StillNeeded
from delta_engine.execute.table_work import TableWork, run_part

__all__ = [
    "ActionRunner",
    "ApplyFailedError",
    "ApplyStoppedError",
    "OnOutcome",
    "OnSchema",
    "OutcomeKind",
    "SchemaOutcome",
    "ScriptLine",
    "TableOutcome",
    "by_table",
]

OnSchema: TypeAlias = Callable[[SchemaOutcome], object]
"""Told what became of a schema."""


class ApplyFailedError(DeltaEngineError):
    """At least one schema or table failed; the others were applied. A further run goes on from there.

    Args:
        outcomes: what became of every table of the plan.
        schemas: what became of every schema of the plan.
    """

    def __init__(self, outcomes: tuple[TableOutcome, ...], schemas: tuple[SchemaOutcome, ...] = ()) -> None:
        self.outcomes = outcomes
        self.schemas = schemas
        super().__init__(self._message())

    @property
    def is_partial(self) -> bool:
        """Whether anything was applied at all."""
        return any(one.statements for one in self.outcomes) or any(one.statements for one in self.schemas)

    def _message(self) -> str:
        schemas = [outcome for outcome in self.schemas if outcome.kind is OutcomeKind.FAILED]
        tables = [outcome for outcome in self.outcomes if outcome.kind is OutcomeKind.FAILED]
        counts = [f"{len(schemas)} of {len(self.schemas)} schemas"] if schemas else []
        counts += [f"{len(tables)} of {len(self.outcomes)} tables"] if tables or not schemas else []
        lines = [f"schema {outcome}: {_told(outcome)}" for outcome in schemas]
        lines += [f"table {outcome.table}: {_told(outcome)}" for outcome in tables]
        return "\n".join((f"{' and '.join(counts)} failed:", *lines))


class ApplyStoppedError(ApplyFailedError):
    """The run was stopped, mostly before all tables were done. A further run goes on from there."""

    def _message(self) -> str:
        failures = [*(one.failure for one in self.outcomes), *(one.failure for one in self.schemas)]
        if not any(failures):
            return f"all {len(self.outcomes)} tables were done by then; nothing is left to do."
        stopped = [outcome for outcome in self.outcomes if outcome.kind is OutcomeKind.STOPPED]
        begun = [outcome for outcome in stopped if outcome.statements]
        lines = [
            f"{len(self.outcomes) - len(stopped)} of {len(self.outcomes)} tables were done, {len(begun)} in "
            f"part, {len(stopped) - len(begun)} not begun. Run again to go on from there."
        ]
        lines += [f"table {one.table}: stopped after {one.statements} statements" for one in begun]
        kinds = [*(one.kind for one in self.outcomes), *(one.kind for one in self.schemas)]
        if OutcomeKind.FAILED in kinds:
            lines.append(super()._message())
        return "\n".join(lines)


def _told(outcome: TableOutcome | SchemaOutcome) -> str:
    if outcome.failure is None:
        return ""
    sql = f", in: {outcome.failure.sql}" if outcome.failure.sql else ""
    return f"{outcome.failure.message} (after {outcome.statements} statements{sql})"


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
        self._addressing = addressing
        self._parallelism = parallelism

    def guarded(self, check: Callable[[], None]) -> ActionRunner:
        """Return a runner that makes a check before every statement; what the check raises ends the apply."""
        return self._over(GuardedSqlRunner(self._runner, check))

    def reviewed(self, script: Iterable[ScriptLine]) -> ActionRunner:
        """Return a runner that runs the statements of a script and no others; another one ends the apply."""
        return self._over(ReviewedSqlRunner(self._runner, (line.sql for line in script)))

    def apply(
        self,
        plan: TablePlan,
        on_outcome: OnOutcome = lambda _outcome: None,
        *,
        on_schema: OnSchema = lambda _outcome: None,
        control: ApplyControl | None = None,
        look: Look | None = None,
    ) -> tuple[TableOutcome, ...]:
        """Apply every action of a plan.

        Args:
            plan: a validated plan.
            on_outcome: called in the calling thread as each table is done, or as far as it is to be.
            on_schema: called as each schema is done.
            control: what to see of it, and how to end it.
            look: reads and plans one table anew, after somebody else changed it; without it that is a failure.

        Returns:
            What became of each table, sorted by name.

        Raises:
            ApplyStoppedError: the run was to end before all was done.
            ApplyFailedError: at least one schema or table failed; all were tried, but for the tables of schemas
                that failed.
        """
        control = control or ApplyControl()
        still_needed = StillNeeded(lambda: by_table(self.script(plan)), look) if look else None
        schema_executor = SchemaExecutor(self._runner, self._addressing, self._capabilities, control)
        schemas = schema_executor.apply(plan, on_schema)
        failed = [outcome.name.key for outcome in schemas if outcome.kind is OutcomeKind.FAILED]
        work = TableWork(self._runner, self._addressing, self._capabilities, control, still_needed)
        progress = PlanProgress(steps_of(plan), failed_schemas=failed)
        outcomes = StepLoop(progress, work, control, on_outcome, parallelism=self._parallelism).run()
        undone = next((outcome.table for outcome in outcomes if outcome.failure), None)
        schemas = schema_executor.give_away(plan, schemas, undone, on_schema)
        kinds = {*(outcome.kind for outcome in schemas), *(outcome.kind for outcome in outcomes)}
        if OutcomeKind.STOPPED in kinds:
            raise ApplyStoppedError(outcomes, schemas)
        if OutcomeKind.FAILED in kinds:
            raise ApplyFailedError(outcomes, schemas)
        return outcomes

    def script(self, plan: TablePlan) -> tuple[ScriptLine, ...]:
        """Return the exact statements of a plan in a valid order, without running them."""
        platform = (self._addressing, self._capabilities)
        works, lines = schema_works(plan), []
        before = [sql for work in works for sql in work.statements_before(*platform)]
        after = [sql for work in works for sql in work.statements_after(*platform)]
        recorder = RecordingSqlRunner()
        ddl = DeltaDDL(recorder)
        for step in steps_of(plan):
            recorder.statements.clear()
            for part in step.parts:
                run_part(part, ddl, *platform)
            lines += [ScriptLine(table=step.table.key, sql=sql) for sql in recorder.statements]
        return (
            *(ScriptLine(table="", sql=sql) for sql in before),
            *lines,
            *(ScriptLine(table="", sql=sql) for sql in after),
        )

    def _over(self, runner: SqlRunner) -> ActionRunner:
        return ActionRunner(runner, self._addressing, self._capabilities, parallelism=self._parallelism)
