"""The orchestrator: read, plan, validate, apply. It decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delta_engine.actions import TablePlan
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import UnsafePlanError, raise_all
from delta_engine.execute.action_runner import ActionRunner, TableOutcome
from delta_engine.models import Table
from delta_engine.state.catalog_reader import CatalogReader
from delta_engine.validation.validator import PlanValidator


class Orchestrator:
    """Runs the pipeline over injected parts.

    Args:
        reader: reads what exists.
        action_runner: applies plans.
        planner: makes plans.
        validator: refuses bad models and unsafe plans.
    """

    def __init__(
        self,
        *,
        reader: CatalogReader,
        action_runner: ActionRunner,
        planner: TablePlanner | None = None,
        validator: PlanValidator | None = None,
    ) -> None:
        self._reader = reader
        self._action_runner = action_runner
        self._planner = planner or TablePlanner()
        self._validator = validator or PlanValidator()

    def sync_tables(self, tables: Sequence[Table]) -> tuple[TableOutcome, ...]:
        """Bring the catalog to the models.

        Args:
            tables: the models.

        Returns:
            What became of each table that needed something; empty if nothing had to be done.

        Raises:
            InvalidModelError: a model breaks a rule; nothing was read or changed. First violation wins.
            CatalogReadError: a table cannot be read; nothing was changed.
            UnsafePlanError: the plan breaks a rule; nothing was changed. First violation wins.
            ApplyFailedError: some tables failed; all others were applied.
        """
        self._validator.validate_models(tables)
        plan = self._planner.plan(tables, self._reader.snapshot(tables))
        self._validator.validate_plan(plan)
        return self.apply(plan)

    def plan_tables(self, tables: Sequence[Table]) -> TablePlan:
        """Return what has to be done, before the plan rules have judged it; changes nothing.

        Raises:
            InvalidModelError, CatalogReadError: as `sync_tables` does.
            RefusalGroup: several of them; unlike `sync_tables`, all are collected.
        """
        raise_all(self._validator.model_violations(tables))
        return self._planner.plan(tables, self._reader.snapshot(tables))

    def refusals(self, plan: TablePlan) -> tuple[UnsafePlanError, ...]:
        """Return why the plan must not be applied; empty if it may."""
        return tuple(self._validator.plan_violations(plan))

    def apply(
        self, plan: TablePlan, on_outcome: Callable[[TableOutcome], None] | None = None
    ) -> tuple[TableOutcome, ...]:
        """Apply a validated plan; see `ActionRunner.apply`."""
        return self._action_runner.apply(plan, on_outcome)
