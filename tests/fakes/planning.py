"""Plans as the engine makes them, and their statements on Databricks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from delta_engine.actions import TablePlan
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS, Capabilities
from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.compile.compiler import compile_plan
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import Table
from delta_engine.state.states import CatalogState
from delta_engine.validation.relations import checked_plan
from tests.builders.deployment import records_of


def planned(
    models: Sequence[Table],
    state: CatalogState,
    last_applied: Mapping[str, Table] = MappingProxyType({}),
    planner: TablePlanner | None = None,
) -> TablePlan:
    """Return a plan; refuse models that do not fit what exists."""
    used = planner or TablePlanner()
    return checked_plan(models, state, lambda: used.plan(models, state, records_of(last_applied.values())))


def compiled(plan: TablePlan, capabilities: Capabilities = DATABRICKS) -> CompiledPlan:
    return compile_plan(plan, CatalogAddressing(), capabilities)


def statements_of(plan: TablePlan, capabilities: Capabilities = DATABRICKS) -> list[str]:
    return list(compiled(plan, capabilities).sql())
