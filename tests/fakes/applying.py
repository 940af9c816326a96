"""Runs plans on a Unity Catalog in memory: what statements mean is said there alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from delta_engine.actions import TablePlan
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.compile.compiler import compile_plan
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import QualifiedName, Table
from delta_engine.models.constraints import resolved
from delta_engine.state.states import CatalogState, TableState
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.stored import Stored

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
    left = {position: [statement.sql for statement in step.statements] for position, step in enumerate(steps)}
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


def apply(plan: TablePlan, catalog: FakeUnityCatalog) -> None:
    """Run a plan's statements; one that the platform would refuse is an error."""
    apply_in_some_order(plan, catalog, min)


def catalog_of(*models: Table) -> FakeUnityCatalog:
    """Return a catalog in which models were just applied."""
    schemas = {f"{model.catalog_name}.{model.schema_name}".lower() for model in models}
    catalog = FakeUnityCatalog(sorted(schemas))
    apply(TablePlanner().plan(models, catalog.snapshot(models)), catalog)
    return catalog


def orders_in(state: TableState) -> CatalogState:
    """Return a snapshot of dev.silver.orders."""
    return CatalogState(tables={"dev.silver.orders": state})


def after(plan: TablePlan, state: CatalogState) -> CatalogState:
    """Return the state after a plan; fails where the platform would."""
    names = {key: QualifiedName(*key.split(".")) for key in state.tables}
    catalog = FakeUnityCatalog(sorted({f"{name.catalog}.{name.schema}" for name in names.values()}))
    catalog.tables = {
        key: Stored(name=names[key], state=_as_written(table))
        for key, table in state.tables.items()
        if table.exists
    }
    apply(plan, catalog)
    return catalog.snapshot([Table(name.catalog, name.schema, name.table, ()) for name in names.values()])


def _as_written(state: TableState) -> TableState:
    """Return a state without the properties that stand for its checks."""
    properties = state.table_properties.items()
    kept = {key: value for key, value in properties if not key.startswith("delta.constraints.")}
    return replace(state, table_properties=kept)


def created(model: Table) -> TableState:
    """Return the state of a table that was just created; the tables that it references need not exist."""
    (whole,) = resolved([model])
    alone = replace(whole, foreign_keys=())
    state = catalog_of(alone).snapshot([alone]).table(alone.qualified_name)
    return replace(state, foreign_keys=whole.foreign_keys)
