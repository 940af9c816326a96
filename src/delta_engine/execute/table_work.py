"""Does one step of a plan: the executors, over statements that are timed and tried again."""

from __future__ import annotations

from delta_engine.actions import AlignTable, CreateTable, DropTable, TableAction
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.capabilities import Capabilities
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.errors import StatementError
from delta_engine.execute.align_executor import AlignExecutor
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.create_executor import CreateExecutor
from delta_engine.execute.ddl import DeltaDDL, InterruptedStatementsError
from delta_engine.execute.plan_progress import StepResult
from delta_engine.execute.resource_statements import ResourceStatements
from delta_engine.execute.steps import Step
from delta_engine.execute.still_needed import StillNeeded
from delta_engine.models import QualifiedName
from delta_engine.sql import sql_drop_table
from delta_engine.telemetry.context import in_context
from delta_engine.telemetry.spans import span


class TableWork:
    """Does the steps of one apply; several threads may.

    Args:
        runner: what the statements go to.
        addressing: how tables are addressed.
        capabilities: what the platform can do.
        control: of the apply.
        still_needed: tells after a conflict whether a statement is; without it, a conflict is a failure.
    """

    def __init__(
        self,
        runner: SqlRunner,
        addressing: Addressing,
        capabilities: Capabilities,
        control: ApplyControl,
        still_needed: StillNeeded | None = None,
    ) -> None:
        self._runner = runner
        self._addressing = addressing
        self._capabilities = capabilities
        self._control = control
        self._still_needed = still_needed

    def do(self, step: Step, done_before: int = 0) -> StepResult:
        """Do a step, up to the first statement that fails.

        Args:
            step: the step.
            done_before: how many statements of its table ran in earlier steps.
        """
        table = str(step.table)
        with in_context(table=table), span("delta_engine.table", table=table) as told:
            result = self._done(step, done_before)
            told.add(statements=result.statements)
            if result.failure is not None:
                told.fail(result.failure.message)
        return result

    def _done(self, step: Step, done_before: int) -> StepResult:
        statements = self._statements(step.table, done_before)
        ddl = DeltaDDL(statements)
        done = 0
        try:
            for part in step.parts:
                done += run_part(part, ddl, self._addressing, self._capabilities)
        except InterruptedStatementsError as failure:
            done += failure.statements_done
            # what follows the failed one are questions for its message
            return StepResult(statements=done, failure=failure, runs=tuple(statements.runs[: done + 1]))
        return StepResult(statements=done, runs=tuple(statements.runs))

    def _statements(self, table: QualifiedName, done_before: int) -> ResourceStatements:
        still_needed = self._still_needed
        if still_needed is None:
            return ResourceStatements(self._runner, table, self._control)

        def is_needed(done: int, error: StatementError) -> bool:
            return still_needed(table, done_before + done, error)

        return ResourceStatements(self._runner, table, self._control, is_needed)


def run_part(part: TableAction, ddl: DeltaDDL, addressing: Addressing, capabilities: Capabilities) -> int:
    """Run what one part of a step takes; return how many statements that were.

    Raises:
        InterruptedStatementsError: one failed.
    """
    match part:
        case CreateTable():
            return CreateExecutor(ddl, addressing, capabilities).apply(part)
        case AlignTable():
            return AlignExecutor(ddl, addressing, capabilities).apply(part)
        case DropTable(table):
            return ddl.run([sql_drop_table(addressing.table(table))])
