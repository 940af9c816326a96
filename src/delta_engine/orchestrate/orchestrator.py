"""The orchestrator: lock, load, read, plan, validate, apply, record, unlock. It decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from delta_engine.actions import TablePlan
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.deployment import Deployment, LockedRun
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.recorder import Notify
from delta_engine.deployment.resources import last_applied, table_key
from delta_engine.errors import RefusalGroup, RefusedError, StatementError, UnsafePlanError, raise_all
from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError, TableOutcome
from delta_engine.models import Table
from delta_engine.state.catalog_reader import CatalogReader
from delta_engine.state.states import CatalogState
from delta_engine.state.table_versions import TableVersionReader
from delta_engine.validation.validator import PlanValidator

OnOutcome = Callable[[TableOutcome], None]

_UNREADABLE = (RefusedError, RefusalGroup, StatementError)


class Orchestrator:
    """Runs the pipeline over injected parts.

    Args:
        reader: reads what exists.
        action_runner: applies plans.
        planner: makes plans.
        validator: refuses bad models and unsafe plans.
        deployment: what was applied so far, and the lock; nothing is kept without it.
        versions: asks Delta for the versions of changed tables; they are not recorded without it.
    """

    def __init__(
        self,
        *,
        reader: CatalogReader,
        action_runner: ActionRunner,
        planner: TablePlanner | None = None,
        validator: PlanValidator | None = None,
        deployment: Deployment | None = None,
        versions: TableVersionReader | None = None,
    ) -> None:
        self._reader = reader
        self._action_runner = action_runner
        self._planner = planner or TablePlanner()
        self._validator = validator or PlanValidator()
        self._deployment = deployment or Deployment.unrecorded()
        self._versions = versions

    def sync_tables(self, tables: Sequence[Table]) -> tuple[TableOutcome, ...]:
        """Bring the catalog to the models.

        Args:
            tables: all models.

        Returns:
            What became of each table that needed something; empty if nothing had to be done.

        Raises:
            InvalidModelError: a model breaks a rule; nothing was read or changed. First violation wins.
            LockHeld: somebody else works on the environment.
            CatalogReadError: a table cannot be read; nothing was changed.
            UnsafePlanError: the plan breaks a rule; nothing was changed. First violation wins.
            ApplyFailedError: some tables failed; all others were applied.
        """
        self._validator.validate_models(tables)
        with self.run("sync") as run:
            plan = run.plan(tables)
            self._validator.validate_plan(plan)
            return run.apply(plan)

    def plan_tables(self, tables: Sequence[Table]) -> TablePlan:
        """Return what has to be done, before the plan rules have judged it; changes nothing, takes no lock.

        Raises:
            InvalidModelError, CatalogReadError: as `sync_tables` does.
            RefusalGroup: several of them; unlike `sync_tables`, all are collected.
        """
        raise_all(self._validator.model_violations(tables))
        loaded = self._deployment.peek()
        applied = last_applied(loaded.state) if loaded else {}
        return self._planner.plan(tables, self._reader.snapshot(tables), applied)

    def refusals(self, plan: TablePlan) -> tuple[UnsafePlanError, ...]:
        """Return why the plan must not be applied; empty if it may."""
        return tuple(self._validator.plan_violations(plan))

    @contextmanager
    def run(self, operation: str, notify: Notify = lambda _note: None) -> Iterator[SyncRun]:
        """Hold the environment's lock for a run.

        Args:
            operation: what it is, for whoever has to wait for it.
            notify: is told what people should know.

        Raises:
            LockHeld: somebody else has it.
            StoreError, RefusedError: the deployment state cannot be used.
        """
        with self._deployment.locked(operation, notify) as locked:
            action_runner = self._action_runner.guarded(locked.lease.check)
            yield SyncRun(self._reader, self._planner, self._validator, action_runner, self._versions, locked)


class SyncRun:
    """One locked run: plan, then apply, each at most once."""

    def __init__(
        self,
        reader: CatalogReader,
        planner: TablePlanner,
        validator: PlanValidator,
        action_runner: ActionRunner,
        versions: TableVersionReader | None,
        locked: LockedRun,
    ) -> None:
        self._reader = reader
        self._planner = planner
        self._validator = validator
        self._action_runner = action_runner
        self._versions = versions
        self._lease = locked.lease
        self._recorder = locked.recorder
        self._models: tuple[Table, ...] = ()

    @property
    def state(self) -> DeploymentState:
        """The deployment state as it stands in this run."""
        return self._recorder.state

    def plan(self, tables: Sequence[Table], *, is_partial: bool = False) -> TablePlan:
        """Read the catalog, take in what became of what was applied, and return what has to be done.

        Args:
            tables: the models.
            is_partial: whether other models were left out; then only these tables are looked at.

        Raises:
            InvalidModelError, CatalogReadError, RefusalGroup: as `Orchestrator.plan_tables`.
        """
        raise_all(self._validator.model_violations(tables))
        self._models = tuple(tables)
        applied = last_applied(self._recorder.state)
        observed = self._observe(applied, is_partial=is_partial)
        return self._planner.plan(tables, observed, applied)

    def synchronize(self, tables: Sequence[Table], *, is_partial: bool = False) -> DeploymentState:
        """Record what the catalog shows of everything that was applied; change nothing in it.

        Args:
            tables: the models.
            is_partial: whether other models were left out.

        Raises:
            CatalogReadError, RefusalGroup: a table cannot be read.
            StaleStateError, UnsavedStateError: it could not be recorded.
        """
        self._models = tuple(tables)
        self._observe(last_applied(self._recorder.state), is_partial=is_partial)
        self._recorder.save(TablePlan())
        return self._recorder.state

    def apply(
        self, plan: TablePlan, on_outcome: OnOutcome = lambda _outcome: None
    ) -> tuple[TableOutcome, ...]:
        """Apply a validated plan, and record what it did.

        Args:
            plan: what `plan` returned; may be empty, which still records tables that are as declared.
            on_outcome: called as each table is done.

        Raises:
            ApplyFailedError: some tables failed; that is recorded too.
            LockLost: the lock was lost on the way; the journal has what was done until then.
            StaleStateError, UnsavedStateError: what was applied could not be recorded.
        """
        models = {model.qualified_name.key: model for model in self._models}
        planned = {action.table.key for action in plan.table_actions()}

        def record(outcome: TableOutcome) -> None:
            self._recorder.record(outcome, models[outcome.table.key])
            on_outcome(outcome)

        if plan:
            self._lease.check()
            self._recorder.begin(plan)
        failure: ApplyFailedError | None = None
        try:
            outcomes = self._action_runner.apply(plan, record)
        except ApplyFailedError as error:
            failure, outcomes = error, error.outcomes
        self._confirm([models[key] for key in sorted(planned)])
        self._recorder.adopt([model for key, model in models.items() if key not in planned])
        self._recorder.save(plan)
        if failure is not None:
            raise failure
        return outcomes

    def _observe(self, applied: Mapping[str, Table], *, is_partial: bool) -> CatalogState:
        """Read the models' tables, and take in what became of them."""
        observed = self._reader.snapshot(self._models)
        keys = {model.qualified_name.key for model in self._models}
        managed = None if is_partial else {table_key(model.qualified_name) for model in self._models}
        self._recorder.synchronize(observed, managed=managed)
        if not is_partial:
            self._look_after([table for key, table in applied.items() if key not in keys])
        return observed

    def _look_after(self, undeclared: Sequence[Table]) -> None:
        """Take in what became of tables that were applied once and are not declared any more.

        They are in nobody's way: one that cannot be read is a warning.
        """
        if not undeclared:
            return
        try:
            observed = self._reader.snapshot(undeclared)
        except _UNREADABLE as error:
            self._recorder.warn(
                f"tables that were applied once and are not declared any more cannot be read: {error} "
                "`delta-engine state rm` forgets them."
            )
        else:
            self._recorder.synchronize(observed, managed=None)

    def _confirm(self, changed: Sequence[Table]) -> None:
        """Look at the changed tables once more: what became of them, and at which version."""
        if not changed or self._versions is None:
            return
        self._recorder.note_versions(self._versions)
        try:
            self._recorder.confirm(self._reader.snapshot(changed))
        except _UNREADABLE as error:  # what was applied is recorded all the same
            self._recorder.warn(f"what was applied could not be looked at once more: {error}")
