"""Every order in which a plan's statements may reach a platform, whatever the parallelism."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from typing_extensions import assert_never

from delta_engine.actions import AlignTable, CreateTable, DropTable, TablePlan
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.execute.align_executor import AlignExecutor
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.create_executor import CreateExecutor
from delta_engine.execute.ddl import DeltaDDL
from delta_engine.execute.recording_sql_runner import RecordingSqlRunner
from delta_engine.execute.schema_executor import SchemaExecutor, SchemaOutcome
from delta_engine.execute.steps import Step, steps_of
from delta_engine.sql import sql_drop_table

Choose = Callable[[Sequence[int]], int]
"""Chooses one of some numbers."""


def apply_in_some_order(plan: TablePlan, runner: SqlRunner, choose: Choose) -> None:
    """Run a plan's statements as any number of workers may: those of steps that are under way, in any mixture.

    Args:
        plan: a validated plan; its schemas come first, and are given away last.
        runner: what the statements go to.
        choose: says which of the steps that may be under way gets on by a statement.

    Raises:
        StatementError, InterruptedStatementsError: a statement was refused.
    """
    schemas = SchemaExecutor(runner, CatalogAddressing(), DATABRICKS, ApplyControl())
    prepared = _done(schemas.apply(plan))
    _apply_tables(plan, runner, choose)
    _done(schemas.give_away(plan, prepared, None))


def _done(outcomes: tuple[SchemaOutcome, ...]) -> tuple[SchemaOutcome, ...]:
    for outcome in outcomes:
        if outcome.failure is not None:
            raise outcome.failure
    return outcomes


def _apply_tables(plan: TablePlan, runner: SqlRunner, choose: Choose) -> None:
    steps = steps_of(plan)
    left = {position: statements_of(step) for position, step in enumerate(steps)}
    while left:
        is_ending = all(steps[position].is_last for position in left)
        free = [
            position
            for position in left
            if not left.keys() & set(steps[position].after) and (is_ending or not steps[position].is_last)
        ]
        position = choose(free)
        if left[position]:
            runner.run(left[position].pop(0))
        if not left[position]:
            del left[position]


def statements_of(step: Step) -> list[str]:
    """Return a step's statements, in order."""
    recorder = RecordingSqlRunner()
    ddl = DeltaDDL(recorder)
    for part in step.parts:
        match part:
            case CreateTable():
                CreateExecutor(ddl, CatalogAddressing(), DATABRICKS).apply(part)
            case AlignTable():
                AlignExecutor(ddl, CatalogAddressing(), DATABRICKS).apply(part)
            case DropTable(table):
                ddl.run([sql_drop_table(CatalogAddressing().table(table))])
            case _:
                assert_never(part)
    return list(recorder.statements)
