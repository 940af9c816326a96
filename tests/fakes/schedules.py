"""Every order in which a plan's statements may reach a platform, whatever the parallelism."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delta_engine.actions import TablePlan
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.compile.compiler import compile_plan

Choose = Callable[[Sequence[int]], int]
"""Chooses one of some numbers."""


def apply_in_some_order(plan: TablePlan, runner: SqlRunner, choose: Choose) -> None:
    """Run a plan's statements as any number of workers may: those of running steps, in any mixture.

    Args:
        choose: picks the step, of those that may run, whose next statement is sent.

    Raises:
        StatementError: a statement was refused.
    """
    steps = compile_plan(plan, CatalogAddressing(), DATABRICKS).steps
    left = {position: [one.sql for one in step.statements] for position, step in enumerate(steps)}
    while left:
        current = min(steps[position].round for position in left)
        free = [
            position
            for position in left
            if not left.keys() & set(steps[position].after) and steps[position].round == current
        ]
        position = choose(free)
        if left[position]:
            runner.run(left[position].pop(0))
        if not left[position]:
            del left[position]
