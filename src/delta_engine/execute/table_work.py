"""Does one step of a plan: the executors, over statements that are timed and tried again."""

from __future__ import annotations

from delta_engine.actions import AlignTable, CreateTable, DropTable, TableAction
from delta_engine.addressing import Addressing
from delta_engine.capabilities import Capabilities
from delta_engine.errors import StatementError
from delta_engine.execute.align_executor import AlignExecutor
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.create_executor import CreateExecutor
from delta_engine.execute.ddl import DeltaDDL, InterruptedStatementsError
from delta_engine.execute.plan_progress import StepResult
from delta_engine.execute.steps import Step
from delta_engine.execute.still_needed import StillNeeded
from delta_engine.execute.table_statements import TableStatements
from delta_engine.models import QualifiedName
from delta_engine.sql import sql_drop_table
from delta_engine.sql_runner import SqlRunner


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
        statements = self._statements(step.table, done_before)
        ddl = DeltaDDL(statements)
        done = 0
        try:
            for part in step.parts:
                done += self._run(part, ddl)
        except InterruptedStatementsError as failure:
            done += failure.statements_done
            # what follows the failed one are questions for its message
            return StepResult(statements=done, failure=failure, runs=tuple(statements.runs[: done + 1]))
        return StepResult(statements=done, runs=tuple(statements.runs))

    def _statements(self, table: QualifiedName, done_before: int) -> TableStatements:
        still_needed = self._still_needed
        if still_needed is None:
            return TableStatements(self._runner, table, self._control)

        def is_needed(done: int, error: StatementError) -> bool:
            return still_needed(table, done_before + done, error)

        return TableStatements(self._runner, table, self._control, is_needed)

    def _run(self, part: TableAction, ddl: DeltaDDL) -> int:
        match part:
            case CreateTable():
                return CreateExecutor(ddl, self._addressing, self._capabilities).apply(part)
            case AlignTable():
                return AlignExecutor(ddl, self._addressing, self._capabilities).apply(part)
            case DropTable(table):
                return ddl.run([sql_drop_table(self._addressing.table(table))])
