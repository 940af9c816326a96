"""Plans as their comments in pull requests show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from delta_engine.actions import TablePlan
from delta_engine.compile.compiled_plan import CompiledPlan, Operation, Statement, Step
from delta_engine.drift.observation import Observation
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import RefusedError
from delta_engine.models import QualifiedName, Table
from delta_engine.state.states import CatalogState, TableState
from delta_engine.tools.pull_requests.markdown import planned_markdown


def plan_markdown(
    plan: TablePlan,
    statements: Mapping[str, Sequence[str]],
    *,
    environment: str,
    refusals: Sequence[RefusedError] = (),
    warnings: Sequence[str] = (),
    entries: str = "",
    adopted: Sequence[QualifiedName] = (),
    owners: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> str:
    """Return the comment of a plan with its statements by `Step.table_key`; `adopted` exist and are not recorded."""
    models = tuple(Table(name.catalog, name.schema, name.table, ()) for name in adopted)
    observed = CatalogState(tables={name.key: TableState() for name in adopted})
    planned = PlannedRun(
        plan=plan,
        compiled=_compiled(plan, statements),
        basis=Observation(models=models, observed=observed),
        refusals=tuple(refusals),
        consent_entries=entries,
        judged_warnings=tuple(warnings),
    )
    return planned_markdown(planned, environment, owners)


def _compiled(plan: TablePlan, statements: Mapping[str, Sequence[str]]) -> CompiledPlan:
    left = dict(statements)
    steps = []
    for change in plan.changes:
        step = Step(name=change.name, operation=Operation.ALTER, statements=())
        sent = tuple(Statement(sql=sql, actions=()) for sql in left.pop(step.table_key, ()))
        steps.append(replace(step, statements=sent))
    assert not left, "a plan has statements for its changes alone"
    return CompiledPlan(steps=tuple(steps))
