"""Runs the steps of a compiled plan, and explains failures that the platform reports unclearly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from delta_engine.actions import CreateTable, Phase
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.backends.cancellation import StoppedError
from delta_engine.backends.error_conditions import is_existing_table
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.compile.compiled_plan import CompiledPlan, Statement, Step, securable_kind
from delta_engine.errors import StatementError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import RunStatement
from delta_engine.execute.statement_runner import Reread, RetryCheck, StatementRunner, always, has_to_run
from delta_engine.models import SchemaName
from delta_engine.sql.queries import sql_current_user, sql_references_to
from delta_engine.sql.text import quote_ident
from delta_engine.telemetry.context import in_context
from delta_engine.telemetry.spans import span


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """The result of a step: the sent statements, and the failure of the last one."""

    runs: tuple[RunStatement, ...] = ()
    failure: StatementError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRunner:
    """Runs the steps of one apply; safe to call from several threads.

    Args:
        reread: re-reads a table after an ambiguous error; without it, such an error is a failure.
        check: raises if no further statement may run.
    """

    runner: SqlRunner
    plan: CompiledPlan
    control: ApplyControl
    reread: Reread | None
    check: Callable[[], None]

    def run(self, step: Step, done_before: int) -> StepResult:
        """Run a step's statements up to the first failure; `done_before` counts those of earlier steps."""
        kind = securable_kind(step.name)
        statements = StatementRunner(
            runner=self.runner,
            name=step.name,
            control=self.control,
            retry_check=self._retry_check(step, done_before),
            check=self.check,
        )
        named, failure = {kind: str(step.name)}, None
        with in_context(**named), span(f"delta_engine.{kind}", **named) as opened:
            for statement in step.statements:
                try:
                    statements.run(statement.sql)
                except StatementError as error:
                    failure = explained(statement, error, self._current_user)
                    opened.fail(failure.message)
                    break
            opened.add(statements=sum(run.is_done for run in statements.runs))
        return StepResult(runs=tuple(statements.runs), failure=failure)

    def _retry_check(self, step: Step, done_before: int) -> RetryCheck | None:
        name, reread = step.name, self.reread
        if isinstance(name, SchemaName):
            return always  # idempotent statements
        if reread is None:
            return None

        def is_needed(done: int, error: StatementError) -> bool:
            return has_to_run(self.plan.sql_of(name)[done_before + done :], reread(name), error)

        return is_needed

    def _current_user(self) -> str:
        try:
            rows = self.runner.run(sql_current_user())
        except (StatementError, OSError):
            rows = ()
        return next((str(value) for row in rows for value in row.values()), "the current user")


def explained(statement: Statement, error: StatementError, current_user: Callable[[], str]) -> StatementError:
    """Return the error of a statement with the plan's knowledge about its cause.

    Unity Catalog hides relations from principals without rights on them, and lists foreign keys by catalog.
    """
    if isinstance(error, StoppedError) or error.is_outcome_unknown:
        return error
    message = None
    if _creates_table(statement) and is_existing_table(error):
        message = (
            f"it was absent or not visible to {current_user()} when the catalog was read, and it exists. Ask for "
            f"BROWSE and SELECT on it, or run again if another principal has just created it. {error.message}"
        )
    for drop in statement.actions:
        if isinstance(drop, PrimaryKeyDrop) and _drops_constraint(statement, drop.name):
            message = (
                f"{error.message} A foreign key that was not visible when the catalog was read may reference primary "
                f"key {drop.name}: of a table in another catalog, or of one that {current_user()} may not see; "
                f"{sql_references_to(drop.name)} shows the visible ones of all catalogs. Drop it first, or keep the "
                "primary key as it is."
            )
    return StatementError(message, sql=error.sql, **error.facts) if message else error


def _creates_table(statement: Statement) -> bool:
    return statement.phase is None and isinstance(statement.actions[0], CreateTable)


def _drops_constraint(statement: Statement, name: str) -> bool:
    """Whether a statement drops a constraint, rather than the table property that represents one."""
    return statement.phase is Phase.DROP_PRIMARY_KEY and statement.sql.endswith(
        f"DROP CONSTRAINT {quote_ident(name)}"
    )
