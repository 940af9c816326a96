"""The orchestrator: lock, load, read, plan, validate, apply, record, unlock. It decides nothing itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from delta_engine.actions import TablePlan
from delta_engine.actions.drift_policy import DriftPolicy
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.recorded_models import (
    last_applied,
    last_applied_schemas,
    last_applied_to,
    with_recorded_grants,
)
from delta_engine.deployment.recorder import Notify
from delta_engine.deployment.renamed_resources import with_settled_renames
from delta_engine.deployment.run_facts import RunFacts
from delta_engine.deployment.stamps import utc_now
from delta_engine.drift.audited_authors import with_audited_authors
from delta_engine.drift.drift_report import DriftReport, UnmanagedPart
from delta_engine.drift.reporting import DriftFacts, drift_report
from delta_engine.drift.unmanaged import listed_parts
from delta_engine.errors import CatalogReadError, RefusedError, raise_all
from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError
from delta_engine.execute.outcomes import OnTable, TableOutcome
from delta_engine.models import QualifiedName, Schema, Table
from delta_engine.models.resolution import resolved
from delta_engine.orchestrate.pipeline import Pipeline, PlanBasis, PlannedRun
from delta_engine.orchestrate.sync_run import SyncRun
from delta_engine.plan_files.document import Fingerprints
from delta_engine.report.run_history import RunHistory
from delta_engine.state.audit_log import AuditLogReader
from delta_engine.state.catalog_reader import CatalogReader, readable_snapshot, snapshot_with_former_names
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.states import CatalogState
from delta_engine.state.table_queries import RowCounter, TableHistoryReader, TableVersionReader
from delta_engine.validation.preflight import Preflight
from delta_engine.validation.validator import PlanValidator

_MOST_LOOKS = 3
"""How often a report looks again because a run of the engine was under way."""

__all__ = ["ApplyFailedError", "OnTable", "Orchestrator", "Preview", "SyncRun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a sync would do.

    Args:
        plan: what has to be done.
        refusals: why it must not be done; empty if it may.
        basis: what the plan was made from.
        warnings: which rights the plan needs that the principal may lack.
    """

    plan: TablePlan
    refusals: tuple[RefusedError, ...]
    basis: PlanBasis
    warnings: tuple[str, ...] = ()


class Orchestrator:
    """Runs the pipeline over injected parts.

    Args:
        reader: reads what exists.
        action_runner: applies plans.
        planner: makes plans.
        validator: refuses bad models and unsafe plans.
        deployment: what was applied so far, and the lock; nothing is kept without it.
        versions: asks Delta for the versions of changed tables; they are not recorded without it.
        history: asks Delta who changed tables; drift has no author without it.
        row_counter: counts the rows of tables that are to be dropped; none is dropped without it.
        preflight: looks at the rows that a plan puts conditions on; nobody looks without it.
        drift_policy: what to make of drift.
        run_history: keeps what runs did; nobody does without it.
        audit_log: knows the authors of drift that no table's history has.
        principals: tells who runs the statements; without it, plans are not compared with rights.
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
        history: TableHistoryReader | None = None,
        row_counter: RowCounter | None = None,
        preflight: Preflight | None = None,
        drift_policy: DriftPolicy | None = None,
        run_history: RunHistory | None = None,
        audit_log: AuditLogReader | None = None,
        principals: PrincipalReader | None = None,
    ) -> None:
        self._pipeline = Pipeline(
            reader=reader,
            action_runner=action_runner,
            planner=planner or TablePlanner(),
            validator=validator or PlanValidator(),
            drift_policy=drift_policy or DriftPolicy(),
            versions=versions,
            history=history,
            row_counter=row_counter,
            preflight=preflight,
            run_history=run_history,
            principals=principals,
        )
        self._deployment = deployment or Deployment.unrecorded()
        self._audit_log = audit_log

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
            DriftRefusal: it would undo what somebody changed by hand; nothing was changed.
            UnsafePlanError: the plan breaks a rule; nothing was changed. First violation wins.
            ApplyStoppedError: Ctrl-C or SIGTERM ended it; what was done is recorded.
            ApplyFailedError: some tables failed; all others were applied. What could not be recorded is one, too:
                `UnrecordedApplyError`.
        """
        self._pipeline.validator.validate_models(tables)
        with self.run("sync") as run:
            plan = run.plan(tables)
            for refusal in run.refusals(plan):
                raise refusal
            return run.apply(plan)

    def plan_tables(self, tables: Sequence[Table]) -> TablePlan:
        """Return what has to be done, before anything has judged it; changes nothing, takes no lock.

        Raises:
            InvalidModelError, CatalogReadError: as `sync_tables` does.
            RefusalGroup: several of them; unlike `sync_tables`, all are collected.
        """
        return self.preview(tables).plan

    def preview(
        self, tables: Sequence[Table], *, is_partial: bool = False, allow_cached: bool = True
    ) -> Preview:
        """Return what a sync would do, and why it would refuse to; changes nothing, takes no lock.

        Args:
            tables: the models.
            is_partial: whether other models were left out; then only these tables are looked at.
            allow_cached: whether a recent copy of the deployment state will do.

        Raises:
            InvalidModelError, CatalogReadError, RefusalGroup: as `plan_tables`.
        """
        raise_all(self._pipeline.validator.model_violations(tables))
        tables = resolved(tables)
        state = self._deployment.peek_replayed(allow_cached=allow_cached)
        observed = snapshot_with_former_names(
            self._pipeline.reader,
            with_recorded_grants(tables, state),
            with_recorded_grants(self._pipeline.planner.schemas, state),
        )
        planned = self._planned(tables, observed, state, is_partial=is_partial)
        if planned.drift and allow_cached:  # a copy that is too old takes our own last run for somebody else
            state = self._deployment.peek_replayed()
            planned = self._planned(tables, observed, state, is_partial=is_partial)
        violations = self._pipeline.plan_refusals(planned.plan, planned.wanted, observed)
        return Preview(
            plan=planned.plan,
            refusals=(*planned.drift, *violations),
            basis=PlanBasis(models=tables, observed=observed, state=state),
            warnings=tuple(self._pipeline.rights_warnings(planned)),
        )

    def fingerprints(self, preview: Preview) -> Fingerprints:
        """Return the fingerprints of all that a plan was made from; costs statements for the tables that it changes.

        Raises:
            CatalogReadError, RefusalGroup, StatementError: a table that is to be dropped cannot be read.
        """
        return self._pipeline.fingerprints(preview.plan, preview.basis)

    def left_alone(self, preview: Preview) -> tuple[UnmanagedPart, ...]:
        """Return what a sync leaves alone of the declared tables: nobody declared it, and it was never applied."""
        basis = preview.basis
        state = basis.state and with_settled_renames(basis.state, basis.models, basis.observed)
        applied = last_applied_to(basis.models, last_applied(state) if state else {}, basis.observed)
        return tuple(listed_parts(basis.models, basis.observed, applied))

    def run_facts(self) -> RunFacts:
        """Return who runs this, and from where."""
        return self._deployment.facts()

    def drift_report(
        self,
        tables: Sequence[Table],
        *,
        environment: str,
        is_partial: bool = False,
        not_ours: Sequence[QualifiedName] = (),
    ) -> DriftReport:
        """Report what somebody changed since it was applied; changes nothing, takes no lock.

        Args:
            tables: the models.
            environment: the environment's name.
            is_partial: whether other models were left out; then only these tables are looked at.
            not_ours: tables in managed schemas that need no model, such as the report's own history.

        Raises:
            InvalidModelError: as `plan_tables`.
            CatalogReadError: a whole catalog cannot be read; a single table is a finding.
        """
        raise_all(self._pipeline.validator.model_violations(tables))
        tables = resolved(tables)
        state = self._deployment.peek_replayed()
        for _ in range(_MOST_LOOKS):
            facts = self._facts(
                tables,
                state,
                environment=environment,
                is_partial=is_partial,
                not_ours=not_ours,
            )
            known, state = state, self._deployment.peek_replayed() if facts.drifted else state
            if state == known:
                break
        if self._audit_log is not None:
            facts = with_audited_authors(facts, self._audit_log)
        return drift_report(facts)

    def _facts(
        self,
        tables: Sequence[Table],
        state: DeploymentState | None,
        *,
        environment: str,
        is_partial: bool,
        not_ours: Sequence[QualifiedName],
    ) -> DriftFacts:
        declared = {model.qualified_name.key for model in tables}
        applied = last_applied(state) if state else {}
        undeclared = [] if is_partial else [one for key, one in applied.items() if key not in declared]
        schemas = self._pipeline.planner.schemas
        applied_schemas = last_applied_schemas(state) if state else {}
        around = _around(tables, applied_schemas) if is_partial else schemas
        observed, unreadable = self._snapshot(
            with_recorded_grants(tables, state),
            with_recorded_grants(around, state),
            with_recorded_grants(undeclared, state),
        )
        now, detector = utc_now(), self._pipeline.thorough_detector()
        known = {*declared, *applied, *(name.key for name in not_ours)}
        return DriftFacts(
            environment=environment,
            checked_at=now,
            models=tables,
            is_partial=is_partial,
            state=state,
            observed=observed,
            applied=applied,
            drifted=detector.detect(state, observed, now=now) if state else (),
            unreadable=detector.unreadable(unreadable, now=now),
            unmanaged=() if is_partial else detector.unmanaged(observed, known, now=now),
            schemas=schemas,
            applied_schemas=applied_schemas,
            policy=self._pipeline.drift_policy,
            plan_policy=self._pipeline.planner.policy,
        )

    def _snapshot(
        self, tables: Sequence[Table], schemas: Sequence[Schema], undeclared: Sequence[Table]
    ) -> tuple[CatalogState, tuple[RefusedError, ...]]:
        """Read the models' tables, and those that are not declared any more, if their catalogs are still there."""
        try:
            return readable_snapshot(self._pipeline.reader, [*tables, *undeclared], schemas)
        except CatalogReadError:
            if not undeclared:
                raise
            return readable_snapshot(self._pipeline.reader, tables, schemas)

    def _planned(
        self,
        tables: Sequence[Table],
        observed: CatalogState,
        state: DeploymentState | None,
        *,
        is_partial: bool,
    ) -> PlannedRun:
        state = state and with_settled_renames(state, tables, observed)
        applied = last_applied(state) if state else {}
        return self._pipeline.plan(tables, observed, applied, state, is_partial=is_partial)

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
            run = SyncRun(self._pipeline, locked)
            with run.in_context():
                yield run


def _around(tables: Sequence[Table], applied: Mapping[str, Schema]) -> tuple[Schema, ...]:
    """Return the schemas of some tables, as far as they were applied."""
    keys = sorted({f"{table.catalog_name}.{table.schema_name}".lower() for table in tables})
    return tuple(applied[key] for key in keys if key in applied)
