"""Plans a sync or a revert. A plan without a lock and the plan of a locked run are made by the same function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.actions.drift_policy import DriftHandling
from delta_engine.actions.policy import Policy
from delta_engine.compile.attempts import NO_ATTEMPTS
from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.deployment.recorded_models import (
    last_applied_schemas,
    last_applied_to,
)
from delta_engine.drift.attempts import attempts_of
from delta_engine.drift.detector import DriftDetector
from delta_engine.drift.drift_report import UnmanagedPart
from delta_engine.drift.drifted_resources import (
    DriftedResource,
    DriftedTable,
    DriftRefusal,
    drifted_schemas,
    drifted_tables,
)
from delta_engine.drift.handling import (
    is_replaced,
    refusals,
    with_ignored_drift,
    without_ignored_deletions,
)
from delta_engine.drift.revert import irreversible, may_be_renamed, restored
from delta_engine.drift.unmanaged import listed_parts
from delta_engine.errors import RefusalGroup, RefusedError, raise_all
from delta_engine.execute.statement_runner import StaleTableError
from delta_engine.models import QualifiedName, Schema, Table
from delta_engine.models.constraints import referenced_tables
from delta_engine.models.parts import joined_grants
from delta_engine.orchestrate.environment import Environment
from delta_engine.orchestrate.observing import (
    Observation,
    interpret,
    observe,
    removed_tables,
    undeclared_tables,
)
from delta_engine.state.catalog_reader import (
    bare_model,
    with_tables_read,
)
from delta_engine.state.states import ABSENT, CatalogState
from delta_engine.telemetry.context import utc_now
from delta_engine.validation.needed_rights import rights_warnings
from delta_engine.validation.relations import checked_plan, partial_model_violations

Replan: TypeAlias = Callable[[CatalogState, AlignTable | None], TablePlan]
"""Plans the same models and records again: over another snapshot, during the alignment of a table if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A plan with everything that an apply, a plan file and a rendering need.

    Args:
        compiled: the statements of the plan.
        basis: what the plan was made from.
        models: the tables that the run records: the declared ones, or what a revert restores.
        wanted: what the tables become: the models with ignored drift, or the baselines that a revert restores.
        schemas: the declared schemas without those whose deletion the policy ignores.
        policy: what the plan was made by.
        seen: the snapshot with the tables that foreign keys reference, and those to be dropped.
        replan: plans again from another snapshot of the same tables.
        refusals: why the plan must not be applied; empty if it may.
        warnings: what could not be read, and which rights the principal may lack.
        replaced: tables that were dropped and created outside the engine.
        settles_attempts: whether applying the plan settles what unfinished runs attempted; a revert does not.
    """

    plan: TablePlan
    compiled: CompiledPlan
    basis: Observation
    models: tuple[Table, ...]
    wanted: tuple[Table, ...]
    schemas: tuple[Schema, ...]
    policy: Policy
    seen: CatalogState
    replan: Replan
    refusals: tuple[RefusedError, ...] = ()
    warnings: tuple[str, ...] = ()
    replaced: tuple[DriftedTable, ...] = ()
    settles_attempts: bool = True

    @property
    def unmanaged_parts(self) -> tuple[UnmanagedPart, ...]:
        """The parts of the declared tables that a sync keeps because they were never declared."""
        models, observed = self.basis.models, self.basis.observed
        applied = last_applied_to(models, self.basis.applied, observed)
        return tuple(listed_parts(models, observed, applied))


def plan_unlocked(
    environment: Environment,
    tables: Sequence[Table],
    *,
    is_partial: bool = False,
    allow_cached: bool = True,
) -> PlannedRun:
    """Return what a sync would do and why it would be refused; changes nothing and takes no lock.

    Args:
        is_partial: whether other models were left out; then only these tables are read.
        allow_cached: whether a recent copy of the deployment state will do.

    Raises:
        InvalidModelError, CatalogReadError, RefusalGroup: models are refused, or tables cannot be read.
    """
    raise_all(environment.validator.model_violations(tables))
    deployment = environment.deployment
    seen = observe(
        environment, tables, deployment.peek_replayed(allow_cached=allow_cached), is_partial=is_partial
    )
    draft = draft_sync(environment, seen)
    if draft.refusals and allow_cached:  # an outdated copy makes the engine's own last run look like drift
        current = deployment.peek_replayed()
        seen = interpret(environment, seen.models, seen.observed, current, is_partial=is_partial)
        draft = draft_sync(environment, seen)
    return judged(environment, draft)


def draft_sync(environment: Environment, basis: Observation) -> PlannedRun:
    """Return the plan of a sync, with the refusals of drift; the plan rules have not judged it yet.

    Raises:
        InvalidModelError, RefusalGroup: models do not fit what exists.
    """
    models, observed, state = basis.models, basis.observed, basis.state
    raise_all(partial_model_violations(models, observed))
    policy = environment.planner.policy
    applied = last_applied_to(models, basis.applied, observed)
    drifted = _drifted(environment, basis)
    wanted = with_ignored_drift(models, drifted, policy)
    schemas = environment.planner.schemas
    planner = environment.planner.with_schemas(with_ignored_drift(schemas, drifted, policy))
    removed = _removed(environment, basis, applied)
    attempts = attempts_of(state, models, observed) if state else NO_ATTEMPTS
    applied_schemas = last_applied_schemas(state) if state and not basis.is_partial else {}

    def replan(seen: CatalogState, under_way: AlignTable | None) -> TablePlan:
        remaining = {name: rows for name, rows in removed.items() if not _is_gone(name, seen)}
        known = attempts.during(under_way, applied) if under_way else attempts
        return checked_plan(
            wanted,
            seen,
            lambda: planner.plan(wanted, seen, applied, remaining, applied_schemas, attempts=known),
        )

    seen = _with_further_tables(environment, wanted, observed, removed)
    plan = replan(seen, None)
    return PlannedRun(
        plan=plan,
        compiled=environment.action_runner.compile(plan),
        basis=basis,
        models=models,
        wanted=wanted,
        schemas=without_ignored_deletions(schemas, drifted),
        policy=policy,
        seen=seen,
        replan=replan,
        refusals=_drift_refusals(environment, models, wanted, drifted),
        warnings=basis.warnings,
        replaced=tuple(filter(is_replaced, drifted_tables(drifted))),
    )


def draft_revert(
    environment: Environment, basis: Observation, drifted: Sequence[DriftedResource]
) -> PlannedRun:
    """Return the plan that brings drifted tables and schemas back to what was applied last."""
    changed, schemas = drifted_tables(drifted), drifted_schemas(drifted)
    wanted = tuple(map(restored, changed))
    planner = environment.planner.restoring().with_schemas(tuple(map(restored, schemas)))

    def replan(seen: CatalogState, _under_way: AlignTable | None) -> TablePlan:
        return checked_plan(wanted, seen, lambda: planner.plan(wanted, seen))

    plan = replan(basis.observed, None)
    return PlannedRun(
        plan=plan,
        compiled=environment.action_runner.compile(plan),
        basis=basis,
        models=tuple(table.recorded.declared for table in changed),
        wanted=wanted,
        schemas=tuple(schema.recorded.declared for schema in schemas),
        policy=planner.policy,
        seen=basis.observed,
        replan=replan,
        refusals=tuple(irreversible(wanted, changed)),
        warnings=basis.warnings,
        replaced=tuple(filter(is_replaced, changed)),
        settles_attempts=False,
    )


def judged(environment: Environment, draft: PlannedRun) -> PlannedRun:
    """Return a planned run with the refusals of rules and rows, and the warnings about rights."""
    found: list[RefusedError] = [*draft.refusals, *environment.validator.plan_violations(draft.plan)]
    if environment.preflight is not None:
        found += environment.preflight.refusals(draft.plan, draft.wanted, draft.basis.observed)
    warnings = list(draft.warnings)
    if environment.principals is not None:
        warnings += rights_warnings(environment.principals, draft.plan, draft.seen)
    return replace(draft, refusals=tuple(found), warnings=tuple(warnings))


def drift_detector(environment: Environment, *, is_thorough: bool = True) -> DriftDetector:
    """Return the detector of drift; a thorough one also reads the history of changed tables."""
    return DriftDetector(
        environment.drift_policy,
        plan_policy=environment.planner.policy,
        versions=environment.versions,
        history=environment.history if is_thorough else None,
        is_thorough=is_thorough,
    )


def statements_now(environment: Environment, planned: PlannedRun, table: QualifiedName) -> Sequence[str]:
    """Read one table again and return the statements that it needs now, by the rules and records of the plan.

    Raises:
        StatementError: it cannot be read, or must not be managed any more.
    """
    models = [model for model in planned.wanted if model.qualified_name.key == table.key]
    seen = planned.seen.tables.get(table.key, ABSENT)
    former = seen.former_name
    under_way = next((one for one in planned.plan.align_tables if one.table.key == table.key), None)
    asked = [
        replace(one, grants=joined_grants(one.grants, seen.grants))
        for one in (*(models or [bare_model(table)]), *([bare_model(former)] if former else []))
    ]
    try:
        fresh = _found_under(table, former, environment.reader.snapshot_directly(asked))
        plan = planned.replan(planned.seen.with_tables(fresh), under_way)
    except (RefusedError, RefusalGroup) as error:
        raise StaleTableError(f"reading it again failed: {error}", sql="", error_class=None) from error
    return environment.action_runner.compile(plan).sql_of(table)


def _drifted(environment: Environment, basis: Observation) -> tuple[DriftedResource, ...]:
    """Return the schemas and tables that differ from what was applied."""
    if basis.state is None:
        return ()
    now = utc_now()
    drifted = drift_detector(environment, is_thorough=False).detect(basis.state, basis.observed, now=now)
    tables = drifted_tables(drifted)
    if any(map(may_be_renamed, tables)) or any(refusals(basis.models, tables, environment.planner.policy)):
        # Worth a statement per table: the history tells renames from drops, and names the author.
        drifted = drift_detector(environment).detect(basis.state, basis.observed, now=now)
    return drifted


def _drift_refusals(
    environment: Environment,
    models: Sequence[Table],
    wanted: Sequence[Table],
    drifted: Sequence[DriftedResource],
) -> tuple[DriftRefusal, ...]:
    """Return why drift refuses a plan: each reason once, irreversible changes first."""
    found = list(irreversible(wanted, drifted))
    if environment.drift_policy.handling is DriftHandling.REFUSE:
        planner = environment.planner
        found += refusals([*planner.schemas, *models], drifted, planner.policy)
    return tuple({str(refusal): refusal for refusal in found}.values())


def _with_further_tables(
    environment: Environment,
    models: Sequence[Table],
    observed: CatalogState,
    removed: Mapping[QualifiedName, int | None],
) -> CatalogState:
    """Return a snapshot that includes the tables that foreign keys reference, and those to be dropped."""
    names = {parent.key: parent for model in models for parent in referenced_tables(model)}
    names |= {name.key: name for name, rows in removed.items() if rows is not None}
    missing = [name for key, name in sorted(names.items()) if key not in observed.tables]
    return with_tables_read(environment.reader, observed, missing) if missing else observed


def _removed(
    environment: Environment, basis: Observation, applied: Mapping[str, Table]
) -> Mapping[QualifiedName, int | None]:
    """Return the tables that are no longer declared; with the number of their rows, if the policy drops them."""
    if basis.state is None or basis.is_partial:
        return {}
    undeclared = undeclared_tables(basis.models, applied)
    names = tuple(removed_tables(basis.state, undeclared, basis.observed))
    if not names or not environment.planner.drops_tables or environment.row_counter is None:
        return dict.fromkeys(names)
    rows = environment.row_counter.count(names)
    return {name: rows[name.key] for name in names}


def _found_under(table: QualifiedName, former: QualifiedName | None, fresh: CatalogState) -> CatalogState:
    """Return a snapshot of one table, found under its former name as long as it has that name."""
    state = fresh.table(table)
    if former is not None and not state.exists and fresh.table(former).exists:
        state = replace(fresh.table(former), former_name=former)
    return replace(fresh, tables={table.key: state})


def _is_gone(name: QualifiedName, seen: CatalogState) -> bool:
    return name.key in seen.tables and not seen.tables[name.key].exists
