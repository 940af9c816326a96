"""Applies a compiled plan in parallel; a failure stops only the dependents of the failed table or schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delta_engine.actions import TablePlan
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.capabilities import Capabilities
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.compile.compiler import compile_plan
from delta_engine.errors import DeltaEngineError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import (
    AnyOutcome,
    OnOutcome,
    OutcomeKind,
    SchemaOutcome,
    TableOutcome,
    of_schemas,
    of_tables,
)
from delta_engine.execute.statement_runner import Reread
from delta_engine.execute.step_loop import StepLoop
from delta_engine.execute.step_runner import StepRunner


class ApplyFailedError(DeltaEngineError):
    """At least one schema or table failed; the others were applied. Another run applies the rest."""

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
    def is_partial(self) -> bool:
        """Whether any statement succeeded."""
        return any(one.statements for one in self.outcomes)

    def _message(self) -> str:
        schemas = [outcome for outcome in self.schemas if outcome.kind is OutcomeKind.FAILED]
        tables = [outcome for outcome in self.tables if outcome.kind is OutcomeKind.FAILED]
        counts = [f"{len(schemas)} of {len(self.schemas)} schemas"] if schemas else []
        counts += [f"{len(tables)} of {len(self.tables)} tables"] if tables or not schemas else []
        lines = [f"schema {outcome.name}: {_failure_line(outcome)}" for outcome in schemas]
        lines += [f"table {outcome.name}: {_failure_line(outcome)}" for outcome in tables]
        return "\n".join((f"{' and '.join(counts)} failed:", *lines))


class ApplyStoppedError(ApplyFailedError):
    """The run was stopped, mostly before all tables were done. Another run applies the rest."""

    def _message(self) -> str:
        if not any(one.failure for one in self.outcomes):
            return f"all {len(self.tables)} tables were done before the stop."
        stopped = [outcome for outcome in self.tables if outcome.kind is OutcomeKind.STOPPED]
        begun = [outcome for outcome in stopped if outcome.statements]
        lines = [
            f"{len(self.tables) - len(stopped)} of {len(self.tables)} tables were done, {len(begun)} in "
            f"part, {len(stopped) - len(begun)} not begun. Run again to apply the rest."
        ]
        lines += [f"table {one.name}: stopped after {one.statements} statements" for one in begun]
        if any(one.kind is OutcomeKind.FAILED for one in self.outcomes):
            lines.append(super()._message())
        return "\n".join(lines)


def _failure_line(outcome: AnyOutcome) -> str:
    if outcome.failure is None:
        return ""
    sql = f", in: {outcome.failure.sql}" if outcome.failure.sql else ""
    return f"{outcome.failure.message} (after {outcome.statements} statements{sql})"


class ActionRunner:
    """Compiles plans for one platform and applies them, changing at most `parallelism` tables and schemas at once."""

    def __init__(
        self,
        runner: SqlRunner,
        addressing: Addressing,
        capabilities: Capabilities,
        *,
        parallelism: int = 4,
    ) -> None:
        self._runner = runner
        self._addressing = addressing
        self._capabilities = capabilities
        self._parallelism = parallelism

    def compile(self, plan: TablePlan) -> CompiledPlan:
        """Return the statements of a plan for this platform."""
        return compile_plan(plan, self._addressing, self._capabilities)

    def apply(
        self,
        plan: CompiledPlan,
        on_outcome: OnOutcome = lambda _outcome: None,
        *,
        control: ApplyControl | None = None,
        check: Callable[[], None] = lambda: None,
        reread: Reread | None = None,
    ) -> tuple[AnyOutcome, ...]:
        """Run every statement of a plan, and no other changes; return the outcomes, sorted by name.

        Args:
            on_outcome: called in the calling thread after each table and schema.
            check: called before every statement; its errors end the apply.
            reread: re-reads and re-plans a table after an ambiguous error; without it, such an error is a failure.

        Raises:
            ApplyStoppedError: the run was stopped before it was complete.
            ApplyFailedError: at least one schema or table failed; all independent ones were tried.
        """
        runner = StepRunner(
            runner=self._runner, plan=plan, control=control or ApplyControl(), reread=reread, check=check
        )
        outcomes = StepLoop(runner, on_outcome, parallelism=self._parallelism).run()
        kinds = {outcome.kind for outcome in outcomes}
        if OutcomeKind.STOPPED in kinds:
            raise ApplyStoppedError(outcomes)
        if OutcomeKind.FAILED in kinds:
            raise ApplyFailedError(outcomes)
        return outcomes
