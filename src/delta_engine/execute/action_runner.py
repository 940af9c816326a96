"""Applies a plan: schemas first, then tables in parallel. One table's failure never stops the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from enum import Enum

from delta_engine.actions import AlignTable, CreateTable, DropTable, TableAction, TablePlan
from delta_engine.addressing import Addressing
from delta_engine.capabilities import Capabilities
from delta_engine.errors import DeltaEngineError
from delta_engine.execute.align_executor import AlignExecutor
from delta_engine.execute.create_executor import CreateExecutor
from delta_engine.execute.ddl import DeltaDDL, InterruptedStatementsError
from delta_engine.execute.guarded_sql_runner import GuardedSqlRunner
from delta_engine.models import QualifiedName
from delta_engine.sql import sql_drop_table
from delta_engine.sql_runner import SqlRunner


class OutcomeKind(Enum):
    """What became of a table."""

    CREATED = "created"
    CHANGED = "changed"
    DROPPED = "dropped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutcome:
    """What became of one table of a plan.

    Args:
        table: the table.
        kind: created, changed, dropped or failed.
        statements: how many statements ran to the end.
        failure: the statement that failed and why; None unless the kind is failed.
        is_verified: whether the table was read once more, and is as it was meant to be.
    """

    table: QualifiedName
    kind: OutcomeKind
    statements: int
    is_verified: bool = False
    failure: InterruptedStatementsError | None = None


class ApplyFailedError(DeltaEngineError):
    """At least one table failed; the others were applied. A further run goes on from there.

    Args:
        outcomes: what became of every table of the plan.
    """

    def __init__(self, outcomes: tuple[TableOutcome, ...]) -> None:
        self.outcomes = outcomes
        failed = [outcome for outcome in outcomes if outcome.failure]
        lines = "\n".join(
            f"table {outcome.table}: {outcome.failure.message} (after {outcome.statements} statements, "
            f"in: {outcome.failure.sql})"
            for outcome in failed
            if outcome.failure
        )
        super().__init__(f"{len(failed)} of {len(outcomes)} tables failed:\n{lines}")

    @property
    def is_partial(self) -> bool:
        """Whether anything was applied at all."""
        return any(outcome.statements for outcome in self.outcomes)


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
            InterruptedStatementsError: a schema could not be created; no table was touched.
        """
        self._ddl.run(
            self._addressing.create_schema(schema.catalog_name, schema.schema_name)
            for schema in plan.create_schemas
        )
        tell = on_outcome or (lambda _outcome: None)
        outcomes = self._apply_tables((*plan.create_tables, *plan.align_tables), tell)
        outcomes += self._apply_tables(plan.drop_tables, tell)
        if any(outcome.kind is OutcomeKind.FAILED for outcome in outcomes):
            raise ApplyFailedError(outcomes)
        return outcomes

    def _apply_tables(
        self, actions: Sequence[TableAction], on_outcome: Callable[[TableOutcome], None]
    ) -> tuple[TableOutcome, ...]:
        outcomes: list[TableOutcome] = []
        with ThreadPoolExecutor(self._parallelism, thread_name_prefix="apply") as pool:
            futures = [pool.submit(self._apply_table, action) for action in actions]
            try:
                for future in as_completed(futures):
                    outcomes.append(future.result())
                    on_outcome(outcomes[-1])
            except BaseException:
                _cancel(futures)  # what runs finishes its statement; nothing new is started
                raise
        return tuple(sorted(outcomes, key=lambda outcome: outcome.table.key))

    def _apply_table(self, action: TableAction) -> TableOutcome:
        try:
            match action:
                case CreateTable():
                    kind, done = OutcomeKind.CREATED, self._creator.apply(action)
                case AlignTable():
                    kind, done = OutcomeKind.CHANGED, self._aligner.apply(action)
                case DropTable(table):
                    statement = sql_drop_table(self._addressing.table(table))
                    kind, done = OutcomeKind.DROPPED, self._ddl.run([statement])
        except InterruptedStatementsError as failure:
            return TableOutcome(
                table=action.table,
                kind=OutcomeKind.FAILED,
                statements=failure.statements_done,
                failure=failure,
            )
        return TableOutcome(table=action.table, kind=kind, statements=done)


def _cancel(futures: list[Future[TableOutcome]]) -> None:
    for future in futures:
        future.cancel()
