"""The orchestrator: the Python API. It plans and syncs tables over injected parts."""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine.actions import TablePlan
from delta_engine.actions.drift_policy import DriftPolicy
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.deployment import Deployment
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.execute.outcomes import TableOutcome
from delta_engine.models import Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.environment import Environment
from delta_engine.orchestrate.histories import RunHistory
from delta_engine.orchestrate.locked_run import open_run, plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.state.catalog_reader import CatalogReader
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.table_queries import (
    AuditLogReader,
    RowCounter,
    TableHistoryReader,
    TableVersionReader,
)
from delta_engine.validation.preflight import Preflight
from delta_engine.validation.validator import PlanValidator


class Orchestrator:
    """Plans and syncs over an environment of injected parts; `Environment` describes them."""

    def __init__(
        self,
        *,
        reader: CatalogReader,
        action_runner: ActionRunner,
        planner: TablePlanner | None = None,
        validator: PlanValidator | None = None,
        deployment: Deployment | None = None,
        versions: TableVersionReader | None = None,
        history: TableHistoryReader | None = None,
        row_counter: RowCounter | None = None,
        preflight: Preflight | None = None,
        drift_policy: DriftPolicy | None = None,
        run_history: RunHistory | None = None,
        audit_log: AuditLogReader | None = None,
        principals: PrincipalReader | None = None,
    ) -> None:
        self.environment = Environment(
            reader=reader,
            action_runner=action_runner,
            planner=planner or TablePlanner(),
            validator=validator or PlanValidator(),
            deployment=deployment or Deployment.unrecorded(),
            drift_policy=drift_policy or DriftPolicy(),
            versions=versions,
            history=history,
            row_counter=row_counter,
            preflight=preflight,
            run_history=run_history,
            audit_log=audit_log,
            principals=principals,
        )

    def sync_tables(self, tables: Sequence[Table]) -> tuple[TableOutcome, ...]:
        """Bring the catalog to the models.

        Args:
            tables: all models.

        Returns:
            The outcome of each table that needed a change; empty if none did.

        Raises:
            InvalidModelError: a model breaks a rule; nothing was read or changed. First violation wins.
            LockHeld: another run holds the lock.
            CatalogReadError: a table cannot be read; nothing was changed.
            DriftRefusal: it would revert a change made outside the engine; nothing was changed.
            UnsafePlanError: the plan breaks a rule; nothing was changed. First violation wins.
            ApplyStoppedError: Ctrl-C or SIGTERM stopped it; what was done is recorded.
            ApplyFailedError: some tables failed; all others were applied. One kind of it, `UnrecordedApplyError`,
                says that the result could not be recorded.
        """
        self.environment.validator.validate_models(tables)
        with open_run(self.environment, "sync") as run:
            planned = plan_sync(run, tables)
            for refusal in planned.refusals:
                raise refusal
            return apply_planned(run, planned).result()

    def plan_tables(self, tables: Sequence[Table]) -> TablePlan:
        """Return what has to be done, without the verdict of the plan rules; changes nothing and takes no lock.

        Raises:
            InvalidModelError, CatalogReadError: as `sync_tables` does.
            RefusalGroup: several of them; unlike `sync_tables`, all are collected.
        """
        return plan_unlocked(self.environment, tables).plan
