"""The parts that every run is made of, and the planning that runs with and without a lock share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.actions.drift_policy import DriftHandling, DriftPolicy
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.recorded_models import (
    last_applied_schemas,
    last_applied_to,
    with_recorded_grants,
)
from delta_engine.deployment.stamps import utc_now
from delta_engine.drift.attempts import attempts_of
from delta_engine.drift.detector import DriftDetector
from delta_engine.drift.drifted_resources import DriftedResource, DriftedTable, DriftRefusal, drifted_tables
from delta_engine.drift.handling import (
    is_replaced,
    refusals,
    with_ignored_drift,
    without_ignored_deletions,
)
from delta_engine.drift.revert import irreversible, may_be_renamed
from delta_engine.errors import RefusalGroup, RefusedError, UnsafePlanError, raise_all
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.execute.retry_check import StaleTableError
from delta_engine.models import QualifiedName, Schema, Table
from delta_engine.models.parts import joined_grants
from delta_engine.models.resolution import referenced_tables
from delta_engine.orchestrate.removed_tables import removed_tables
from delta_engine.plan_files.document import Fingerprints
from delta_engine.plan_files.fingerprints import fingerprints
from delta_engine.report.run_history import RunHistory
from delta_engine.state.catalog_reader import CatalogReader, bare_model, former_name, with_tables_read
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.states import ABSENT, CatalogState, TableState
from delta_engine.state.table_queries import RowCounter, TableHistoryReader, TableVersionReader
from delta_engine.validation.needed_rights import rights_warnings
from delta_engine.validation.partial_models import partial_model_violations
from delta_engine.validation.preflight import Preflight
from delta_engine.validation.relations import checked_plan
from delta_engine.validation.validator import PlanValidator

Planned: TypeAlias = Callable[[CatalogState, AlignTable | None], TablePlan]
"""Plans the tables of one run, by its models and by what was on record when it began; and by what it does to a table
meanwhile, if it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The injected parts.

    Args:
        reader: reads what exists.
        action_runner: applies plans.
        planner: makes plans.
        validator: refuses bad models and unsafe plans.
        drift_policy: what to make of drift.
        versions: asks Delta for the versions of tables; they are not recorded without it.
        history: asks Delta who changed tables; nobody is asked without it.
        row_counter: counts the rows of tables that are to be dropped; none is dropped without it.
        preflight: looks at the rows that a plan puts conditions on; nobody looks without it.
        run_history: keeps what runs did; nobody does without it.
        principals: tells who runs the statements; without it, plans are not compared with rights.
    """

    reader: CatalogReader
    action_runner: ActionRunner
    planner: TablePlanner = field(default_factory=TablePlanner)
    validator: PlanValidator = field(default_factory=PlanValidator)
    drift_policy: DriftPolicy = field(default_factory=DriftPolicy)
    versions: TableVersionReader | None = None
    history: TableHistoryReader | None = None
    row_counter: RowCounter | None = None
    preflight: Preflight | None = None
    run_history: RunHistory | None = None
    principals: PrincipalReader | None = None

    def plan_refusals(
        self, plan: TablePlan, wanted: Sequence[Table], observed: CatalogState
    ) -> Iterator[UnsafePlanError]:
        """Yield why a plan must not be applied: by the rules, and by the rows.

        Args:
            plan: the plan.
            wanted: what the tables shall become.
            observed: the snapshot that it was made from.
        """
        yield from self.validator.plan_violations(plan)
        if self.preflight is not None:
            yield from self.preflight.refusals(plan, wanted, observed)

    def rights_warnings(self, planned: PlannedRun) -> Iterator[str]:
        """Yield which rights a plan needs that the principal may lack; see `needed_rights.rights_warnings`."""
        if self.principals is not None:
            yield from rights_warnings(self.principals, planned.plan, planned.seen)

    def fingerprints(
        self, plan: TablePlan, basis: PlanBasis, *, like: Fingerprints | None = None
    ) -> Fingerprints:
        """Return the fingerprints of all that a plan was made from; costs statements for the tables that it changes.

        Args:
            plan: the plan.
            basis: what it was made from.
            like: earlier fingerprints that these are to be held against: they cover the same tables, and more.

        Raises:
            CatalogReadError, RefusalGroup, StatementError: a table that no model declares cannot be read.
        """
        earlier = like.tables if like else {}
        tables = self._states({*earlier, *(drop.table.key for drop in plan.drop_tables)}, basis)
        touched = {action.table.key for action in plan.table_actions()}
        touched |= {key for key, one in earlier.items() if one.table_id is not None}
        ids = self._ids({key: tables[key] for key in touched if tables[key].exists})
        return fingerprints(tables, basis.observed, basis.state, ids)

    def _states(self, further: Collection[str], basis: PlanBasis) -> Mapping[str, TableState]:
        """Return the states of the declared tables and of further ones, by `QualifiedName.key`."""
        declared = {model.qualified_name.key for model in basis.models}
        observed = basis.observed
        names = [QualifiedName.of_key(key) for key in sorted({*further} - {*observed.tables})]
        unread = with_recorded_grants(map(bare_model, names), basis.state)
        if unread:
            observed = observed.with_tables(self.reader.snapshot(unread))
        return {key: observed.tables[key] for key in (*declared, *further)}

    def _ids(self, tables: Mapping[str, TableState]) -> Mapping[str, str]:
        """Return Delta's ids of existing tables, as far as they are known."""
        if self.versions is None or not tables:
            return {}
        names = {key: state.former_name or QualifiedName.of_key(key) for key, state in tables.items()}
        found = self.versions.read_versions(
            tuple(names.values()), with_id={name.key for name in names.values()}
        )
        versions = {key: found[name.key] for key, name in names.items() if name.key in found}
        return {key: one.table_id for key, one in versions.items() if one.table_id is not None}

    def thorough_detector(self) -> DriftDetector:
        """Return the detector of reports: it asks who did it."""
        return DriftDetector(
            self.drift_policy,
            plan_policy=self.planner.policy,
            versions=self.versions,
            history=self.history,
        )

    def plan(
        self,
        models: Sequence[Table],
        observed: CatalogState,
        applied: Mapping[str, Table],
        state: DeploymentState | None,
        *,
        is_partial: bool = False,
    ) -> PlannedRun:
        """Return what has to be done, and what severe drift speaks against it.

        Args:
            models: the declared tables.
            observed: a snapshot that covers them.
            applied: what was applied last, by `QualifiedName.key`.
            state: the deployment state; None if there is none yet.
            is_partial: whether other models were left out; then nothing is known of tables that nobody declares.
        """
        raise_all(partial_model_violations(models, observed))
        applied = last_applied_to(models, applied, observed)
        if state is None:
            return PlannedRun.of(
                lambda seen, _under_way: checked_plan(
                    models, seen, lambda: self.planner.plan(models, seen, applied)
                ),
                self._with_tables_around(models, observed),
                wanted=tuple(models),
                schemas=self.planner.schemas,
            )
        policy = self.planner.policy
        drifted = self._drifted(models, observed, state)
        wanted = with_ignored_drift(models, drifted, policy)
        planner = self.planner.with_schemas(with_ignored_drift(self.planner.schemas, drifted, policy))
        removed = {} if is_partial else self._removed(models, applied, observed, state)
        attempts = attempts_of(state, models, observed)
        applied_schemas = {} if is_partial else last_applied_schemas(state)

        def planned(seen: CatalogState, under_way: AlignTable | None) -> TablePlan:
            left = {name: rows for name, rows in removed.items() if not _is_gone(name, seen)}
            known = attempts.during(under_way, applied) if under_way else attempts
            return checked_plan(
                wanted,
                seen,
                lambda: planner.plan(wanted, seen, applied, left, applied_schemas, attempts=known),
            )

        return PlannedRun.of(
            planned,
            self._with_tables_around(wanted, observed, removed),
            wanted=wanted,
            schemas=without_ignored_deletions(self.planner.schemas, drifted),
            drift=self._refused(models, wanted, drifted),
            replaced=tuple(filter(is_replaced, drifted_tables(drifted))),
        )

    def statements_now(self, table: QualifiedName, run: PlannedRun) -> Sequence[str]:
        """Return the statements that one table needs by a fresh look at it, in the order of a plan for all.

        Args:
            table: the table.
            run: what it was planned with, by the same rules and the same records.

        Raises:
            StatementError: it cannot be read, or must not be managed any more.
        """
        models = [model for model in run.wanted if model.qualified_name.key == table.key]
        seen = run.seen.tables.get(table.key, ABSENT)
        former = seen.former_name
        under_way = next((one for one in run.plan.align_tables if one.table.key == table.key), None)
        asked = [
            replace(one, grants=joined_grants(one.grants, seen.grants))
            for one in (*(models or [bare_model(table)]), *([bare_model(former)] if former else []))
        ]
        try:
            fresh = _found_under(table, former, self.reader.snapshot_directly(asked))
            plan = run.planned(run.seen.with_tables(fresh), under_way)
        except (RefusedError, RefusalGroup) as error:
            raise StaleTableError(
                f"it was to be read once more: {error}", sql="", error_class=None
            ) from error
        return self.action_runner.compile(plan).sql_of(table)

    def _drifted(
        self, models: Sequence[Table], observed: CatalogState, state: DeploymentState
    ) -> tuple[DriftedResource, ...]:
        """Return the schemas and tables that are not as they were applied."""
        now, policy = utc_now(), self.planner.policy
        detector = DriftDetector(
            self.drift_policy, plan_policy=policy, versions=self.versions, is_thorough=False
        )
        drifted = detector.detect(state, observed, now=now)
        tables = drifted_tables(drifted)
        if any(map(may_be_renamed, tables)) or any(refusals(models, tables, policy)):
            # worth a statement per table: the history tells renames from drops, and names the author
            drifted = self.thorough_detector().detect(state, observed, now=now)
        return drifted

    def _refused(
        self,
        models: Sequence[Table],
        wanted: Sequence[Table],
        drifted: Sequence[DriftedResource],
    ) -> tuple[DriftRefusal, ...]:
        """Return why drift speaks against a plan: each reason once, what no plan can bring back first."""
        found = list(irreversible(wanted, drifted))
        if self.drift_policy.handling is DriftHandling.REFUSE:
            policy = self.planner.policy
            found += refusals([*self.planner.schemas, *models], drifted, policy)
        return tuple({str(refusal): refusal for refusal in found}.values())

    def _with_tables_around(
        self,
        models: Sequence[Table],
        observed: CatalogState,
        removed: Mapping[QualifiedName, int | None] = MappingProxyType({}),
    ) -> CatalogState:
        """Return a snapshot with the tables in it that foreign keys point at, and those that are dropped."""
        names = {parent.key: parent for model in models for parent in referenced_tables(model)}
        names |= {name.key: name for name, rows in removed.items() if rows is not None}
        missing = [name for key, name in sorted(names.items()) if key not in observed.tables]
        return with_tables_read(self.reader, observed, missing) if missing else observed

    def _removed(
        self,
        models: Sequence[Table],
        applied: Mapping[str, Table],
        observed: CatalogState,
        state: DeploymentState,
    ) -> Mapping[QualifiedName, int | None]:
        """Return the tables that nobody declares any more; with their rows, if they are to go."""
        declared = {model.qualified_name.key for model in models}
        declared |= {former.key for former in map(former_name, models) if former is not None}
        undeclared = [table for key, table in applied.items() if key not in declared]
        names = tuple(removed_tables(state, undeclared, observed))
        if not names or not self.planner.drops_tables or self.row_counter is None:
            return dict.fromkeys(names)
        rows = self.row_counter.count(names)
        return {name: rows[name.key] for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBasis:
    """What a plan was made from.

    Args:
        models: the declared tables, keys resolved.
        observed: a snapshot that covers them.
        state: the deployment state, as it was before anything was made of the snapshot; None if there was none.
    """

    models: tuple[Table, ...]
    observed: CatalogState
    state: DeploymentState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A plan, before the plan rules have judged it.

    Args:
        plan: what has to be done.
        seen: what it was made from, with the tables around the models.
        planned: plans again, from another snapshot of the same tables.
        wanted: what the tables will be: the models, with the drift that the policy ignores.
        schemas: the declared schemas, but for those whose deletion the policy ignores.
        drift: the severe drift that the plan would undo.
        replaced: tables that somebody made anew.
    """

    plan: TablePlan
    seen: CatalogState
    planned: Planned
    wanted: tuple[Table, ...]
    schemas: tuple[Schema, ...] = ()
    drift: tuple[DriftRefusal, ...] = ()
    replaced: tuple[DriftedTable, ...] = ()

    @classmethod
    def of(
        cls,
        planned: Planned,
        seen: CatalogState,
        *,
        wanted: tuple[Table, ...],
        schemas: tuple[Schema, ...],
        drift: tuple[DriftRefusal, ...] = (),
        replaced: tuple[DriftedTable, ...] = (),
    ) -> PlannedRun:
        """Plan, and keep what it takes to plan again."""
        return cls(
            plan=planned(seen, None),
            seen=seen,
            planned=planned,
            wanted=wanted,
            schemas=schemas,
            drift=drift,
            replaced=replaced,
        )


def _found_under(table: QualifiedName, former: QualifiedName | None, fresh: CatalogState) -> CatalogState:
    """Return a snapshot of a table alone, which finds it under its former name, too, as long as it is there."""
    state = fresh.table(table)
    if former is not None and not state.exists and fresh.table(former).exists:
        state = replace(fresh.table(former), former_name=former)
    return replace(fresh, tables={table.key: state})


def _is_gone(name: QualifiedName, seen: CatalogState) -> bool:
    return name.key in seen.tables and not seen.tables[name.key].exists
