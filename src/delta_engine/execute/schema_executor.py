"""Creates and changes schemas before any table: each by itself, so that one that fails stops none of the others.

What may take rights from whoever runs this comes after all tables, and waits for another run while one is not done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from delta_engine.actions import TablePlan
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.capabilities import Capabilities
from delta_engine.backends.error_conditions import is_existing_schema
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import StatementError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.ddl import DeltaDDL, InterruptedStatementsError
from delta_engine.execute.plan_progress import OutcomeKind, kind_of_failure
from delta_engine.execute.resource_statements import ResourceStatements, StatementRun
from delta_engine.execute.schema_work import SchemaWork, schema_works
from delta_engine.models import QualifiedName, SchemaName
from delta_engine.telemetry.context import in_context


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaOutcome:
    """What became of one schema of a plan.

    Args:
        name: the schema.
        kind: created, changed or failed; stopped if the run was to end before the schema was done, or begun.
        statements: how many statements ran to the end.
        failure: the statement that failed and why; None unless the kind is failed or stopped.
        runs: the statements that were sent, in order.
    """

    name: SchemaName
    kind: OutcomeKind
    statements: int
    failure: InterruptedStatementsError | None = None
    runs: tuple[StatementRun, ...] = ()

    def __str__(self) -> str:
        return str(self.name)


class SchemaExecutor:
    """Applies what a plan says about schemas.

    Args:
        runner: what the statements go to.
        addressing: how schemas are addressed.
        capabilities: what the platform can do.
        control: of the apply.
    """

    def __init__(
        self, runner: SqlRunner, addressing: Addressing, capabilities: Capabilities, control: ApplyControl
    ) -> None:
        self._runner = runner
        self._addressing = addressing
        self._capabilities = capabilities
        self._control = control

    def apply(
        self, plan: TablePlan, on_outcome: Callable[[SchemaOutcome], object] = lambda _outcome: None
    ) -> tuple[SchemaOutcome, ...]:
        """Create schemas, then change them, but for what comes after all tables.

        Args:
            plan: the plan.
            on_outcome: called as each schema is done.

        Returns:
            What became of each schema so far, sorted by name.
        """
        outcomes = []
        for work in schema_works(plan):
            kind = OutcomeKind.CHANGED if work.create is None else OutcomeKind.CREATED
            untouched = SchemaOutcome(name=work.name, kind=kind, statements=0)
            outcome = self._with(untouched, work.statements_before(self._addressing, self._capabilities))
            outcomes.append(outcome)
            if not _is_given_away(outcome, work):
                on_outcome(outcome)
        return tuple(outcomes)

    def give_away(
        self,
        plan: TablePlan,
        outcomes: Sequence[SchemaOutcome],
        undone: QualifiedName | None,
        on_outcome: Callable[[SchemaOutcome], object] = lambda _outcome: None,
    ) -> tuple[SchemaOutcome, ...]:
        """Change what may take rights away, after all tables.

        Args:
            plan: the plan.
            outcomes: what `apply` returned.
            undone: a table that is not done, for which the rights are needed.
            on_outcome: called as each schema is done.

        Returns:
            What became of each schema, sorted by name.
        """
        final = []
        for work, outcome in zip(schema_works(plan), outcomes, strict=True):
            if not _is_given_away(outcome, work):
                final.append(outcome)
                continue
            if undone is not None and not self._control.stop.is_requested():
                final.append(_failed(outcome, InterruptedStatementsError(_waiting_for(undone), 0)))
            else:
                late = work.statements_after(self._addressing, self._capabilities)
                final.append(self._with(outcome, late))
            on_outcome(final[-1])
        return tuple(final)

    def _with(self, outcome: SchemaOutcome, sqls: Sequence[str]) -> SchemaOutcome:
        """Run statements of a schema, and return its outcome with them."""
        statements = _SchemaStatements(self._runner, outcome.name, self._control)
        try:
            with in_context(schema=str(outcome.name)):
                done = DeltaDDL(statements).run(sqls)
        except InterruptedStatementsError as error:
            outcome = _failed(outcome, error)
        else:
            outcome = replace(outcome, statements=outcome.statements + done)
        return replace(outcome, runs=(*outcome.runs, *statements.runs))


class _SchemaStatements:
    """Runs statements of one schema. Said twice, they do no harm, so that none needs a look before it is sent again.

    Args:
        runner: what they go to.
        name: the schema.
        control: of the apply.
    """

    def __init__(self, runner: SqlRunner, name: SchemaName, control: ApplyControl) -> None:
        self._statements = ResourceStatements(runner, name, control, lambda _done, _error: True)
        self.runs = self._statements.runs

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement; see `SqlRunner.run`. A schema that is there after an answer was lost is created."""
        try:
            return self._statements.run(sql)
        except StatementError as error:
            if not (is_existing_schema(error) and self.runs[-1].retries):
                raise
        self.runs[-1] = replace(self.runs[-1], is_done=True)
        return ()


def _failed(outcome: SchemaOutcome, error: InterruptedStatementsError) -> SchemaOutcome:
    done = outcome.statements + error.statements_done
    return replace(outcome, kind=kind_of_failure(error), statements=done, failure=error)


def _is_given_away(outcome: SchemaOutcome, work: SchemaWork) -> bool:
    """Whether something is left to do after all tables."""
    return outcome.failure is None and work.after is not None


def _waiting_for(table: QualifiedName) -> StatementError:
    reason = (
        f"its owner changes and its privileges are revoked after all tables, and table {table} is not done"
    )
    return StatementError(reason, sql="", error_class=None)
