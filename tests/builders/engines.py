"""Engines without a project around them: over fakes on Databricks' terms, and over backends."""

from delta_engine.actions.policy import NO_POLICY, Policy
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS, Capabilities
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.deployment import Deployment
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.models import Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.histories import RunHistory
from delta_engine.orchestrate.orchestrator import Orchestrator, plan_sync
from delta_engine.orchestrate.runs import open_run
from delta_engine.state.catalog_reader import CatalogReader
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.table_queries import RowCounter, TableVersionReader
from delta_engine.validation.preflight import Preflight
from delta_engine.validation.validator import PlanValidator


def runner_on(
    runner: SqlRunner, capabilities: Capabilities = DATABRICKS, *, parallelism: int = 1
) -> ActionRunner:
    return ActionRunner(runner, CatalogAddressing(), capabilities, parallelism=parallelism)


def engine_on(
    reader: CatalogReader,
    runner: SqlRunner,
    deployment: Deployment | None = None,
    policy: Policy = NO_POLICY,
    *,
    capabilities: Capabilities = DATABRICKS,
    parallelism: int = 1,
    versions: TableVersionReader | None = None,
    row_counter: RowCounter | None = None,
    preflight: Preflight | None = None,
    principals: PrincipalReader | None = None,
    run_history: RunHistory | None = None,
) -> Orchestrator:
    return Orchestrator(
        reader=reader,
        action_runner=runner_on(runner, capabilities, parallelism=parallelism),
        planner=TablePlanner(policy, capabilities),
        validator=PlanValidator(policy),
        deployment=deployment or Deployment.unrecorded(),
        versions=versions,
        row_counter=row_counter,
        preflight=preflight,
        principals=principals,
        run_history=run_history,
    )


def engine_over(
    backend: Backend,
    deployment: Deployment | None = None,
    policy: Policy = NO_POLICY,
    *,
    runner: SqlRunner | None = None,
    parallelism: int = 4,
    with_histories: bool = False,
) -> Orchestrator:
    """Return an engine over a backend; with histories, it tells replaced tables and the authors of drift."""
    return Orchestrator(
        reader=backend.reader,
        action_runner=ActionRunner(
            runner or backend.runner, backend.addressing, backend.capabilities, parallelism=parallelism
        ),
        planner=TablePlanner(policy),
        validator=PlanValidator(policy),
        deployment=deployment or Deployment.unrecorded(),
        versions=backend.versions if with_histories else None,
        history=backend.history if with_histories else None,
    )


def apply_anyway(engine: Orchestrator, *models: Table) -> None:
    """Bring the catalog to the models without asking the plan rules."""
    with open_run(engine, "test") as run:
        apply_planned(run, plan_sync(run, models)).result()
