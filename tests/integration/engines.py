"""The pipeline over a backend, without a project around it."""

from __future__ import annotations

from delta_engine.execute.action_runner import ActionRunner
from delta_engine.models import Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.orchestrator import Orchestrator, plan_sync
from delta_engine.orchestrate.runs import open_run


def engine_over(backend: Backend) -> Orchestrator:
    runner = ActionRunner(backend.runner, backend.addressing, backend.capabilities)
    return Orchestrator(reader=backend.reader, action_runner=runner)


def apply_anyway(engine: Orchestrator, *models: Table) -> None:
    """Bring the catalog to the models without asking the plan rules."""
    with open_run(engine, "test") as run:
        apply_planned(run, plan_sync(run, models)).result()
