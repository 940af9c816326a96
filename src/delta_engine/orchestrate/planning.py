"""Plans a sync or a revert. A plan without a lock and the plan of a locked run are made by the same function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from delta_engine.actions import TablePlan
from delta_engine.aspects.backfill_actions import FillColumn
from delta_engine.aspects.governed_tables import newly_protected
from delta_engine.aspects.partitioning import RewriteTable
from delta_engine.aspects.view_sides import readers_of
from delta_engine.compile.planner import with_recorded_queries
from delta_engine.deployment.document import DeploymentState
from delta_engine.drift.comparison import may_be_renamed
from delta_engine.drift.drifted_resources import ComparedResource, DriftRefusal, drifted_tables
from delta_engine.drift.handling import (
    OverwrittenDrift,
    overwritten_drift,
    refusals,
    restored,
    undone_drift,
    with_ignored_drift,
)
from delta_engine.drift.lateness import with_applied_parts
from delta_engine.drift.observation import Observation
from delta_engine.drift.planned_run import Intent, PlannedRun, Undo
from delta_engine.drift.proven_protection import with_proven_protection
from delta_engine.drift.renames import irreversible, with_taken_renames
from delta_engine.drift.synchronizing import has_accepted_replacement
from delta_engine.errors import raise_all
from delta_engine.models import (
    AbacPolicy,
    QualifiedName,
    Securable,
    Table,
    View,
    by_resource,
    former_names,
    of_kind,
)
from delta_engine.models.constraints import referenced_tables
from delta_engine.orchestrate.judging import judged
from delta_engine.orchestrate.observing import detected_drift, drift_detector, observe, with_statuses
from delta_engine.orchestrate.runs import Environment
from delta_engine.orchestrate.undeclared import created_rows, undeclared_rows
from delta_engine.ownership.recorded import is_of_table, undeclared
from delta_engine.state.catalog_reader import (
    read_again,
    readable_snapshot,
    snapshot_by,
    with_policies_on,
    with_tables_read,
)
from delta_engine.state.existing_files import with_existing_files
from delta_engine.state.states import CatalogState
from delta_engine.telemetry.context import utc_now
from delta_engine.telemetry.visible import counted
from delta_engine.validation.relations import partial_model_violations

_MOST_ASKED: Final = 100
"""On how many tables a plan asks for policies: each costs a call."""


def plan_unlocked(
    environment: Environment,
    models: Sequence[Securable],
    *,
    is_partial: bool = False,
    allow_cached: bool = True,
) -> PlannedRun:
    """Return what a sync would do and why it would be refused; changes nothing and takes no lock.

    Args:
        models: those that pass the model rules, as those of a project do.
        allow_cached: whether a recent copy of the deployment state will do.

    Raises:
        InvalidModelError, CatalogReadError, RefusalGroup: models do not fit what exists, or tables cannot be read.
    """
    return judged(
        environment, draft_unlocked(environment, models, is_partial=is_partial, allow_cached=allow_cached)
    )


def draft_unlocked(
    environment: Environment, models: Sequence[Securable], *, is_partial: bool, allow_cached: bool
) -> PlannedRun:
    """Return what `plan_unlocked` judges, with the refusals of drift alone; arguments and errors as there."""
    state = environment.deployment.peek_replayed(allow_cached=allow_cached)
    draft = _draft(environment, models, state, is_partial=is_partial)
    # an outdated copy makes the engine's own last run look like drift
    if (draft.refusals or draft.meets_drift) and allow_cached:
        current = environment.deployment.peek_replayed()
        if current != state:
            draft = _draft(environment, models, current, is_partial=is_partial)
    return draft


def _draft(
    environment: Environment, models: Sequence[Securable], state: DeploymentState | None, *, is_partial: bool
) -> PlannedRun:
    basis = observe(environment, models, state, is_partial=is_partial)
    return draft_sync(environment, with_statuses(basis))


def draft_sync(environment: Environment, basis: Observation, undo: Undo | None = None) -> PlannedRun:
    """Return the plan of a sync, with the refusals of drift; the plan rules have not judged it yet.

    Args:
        undo: what is to be undone; None for a plan of the models as they are.

    Raises:
        InvalidModelError, RefusalGroup: models do not fit what exists.
    """
    raise_all(partial_model_violations(basis.tables, basis.observed))
    now = utc_now()
    drifted = drift_detector(environment, is_thorough=False).detect(basis.compared.values(), now=now)
    draft = _planned(environment, basis, undo, drifted, basis.observed)
    in_history = {
        key
        for key, resource in basis.compared.items()
        if may_be_renamed(resource) or has_accepted_replacement(resource.record)
    }
    if in_history or draft.meets_drift:
        # Worth a statement per table: the history tells renames from drops and replaced tables, and names the author.
        affected = in_history | {resource.key for resource in drifted}
        drifted = detected_drift(environment, basis, affected, now=now)
        if any(resource.renames for resource in drifted):
            return _planned(environment, basis, undo, drifted, draft.snapshot)
        return _with_drift(environment, draft, drifted)
    return draft


def _planned(
    environment: Environment,
    basis: Observation,
    undo: Undo | None,
    drifted: Sequence[ComparedResource],
    snapshot: CatalogState,
) -> PlannedRun:
    records = with_taken_renames(basis.records, basis.tables, drifted)
    intent = _intent(environment, replace(basis, records=records), undo, drifted)
    snapshot = _with_further_tables(environment, intent, snapshot)
    if basis.is_partial:
        snapshot = _with_recorded(environment, intent, basis, snapshot)
    snapshot, warnings = _with_files(environment, intent, snapshot)
    snapshot = as_applied(snapshot, intent, basis)
    plan, observed = intent.plan(snapshot), basis.observed
    written = _with_data_changes(plan, snapshot)
    if moved := [model for model in intent.tables if model.key in written]:
        # A view that lags behind a conversion would have `using` computed from its own result.
        fresh = read_again(environment.reader, moved, snapshot)
        snapshot, observed = (
            as_applied(snapshot.with_tables(fresh), intent, basis),
            observed.with_tables(fresh),
        )
        plan = intent.plan(snapshot)
    basis = replace(basis, records=records, observed=observed)
    planned = _with_plan(environment, basis, intent, plan, snapshot=snapshot, warnings=warnings)
    return _with_drift(environment, planned, drifted)


def as_applied(snapshot: CatalogState, intent: Intent, basis: Observation) -> CatalogState:
    """Return a snapshot as a plan takes it: with what runs did where views may show the models' values late.

    A revert brings back what drift changed, and nothing else.
    """
    if intent.is_revert:
        return snapshot
    models = intent.undo.baselines if intent.undo else basis.models  # `intent.models` have ignored drift
    snapshot = with_applied_parts(snapshot, intent.models, basis.compared, intent.policy)
    return with_proven_protection(snapshot, models, basis.records, utc_now())


def _with_plan(
    environment: Environment,
    basis: Observation,
    intent: Intent,
    plan: TablePlan,
    *,
    snapshot: CatalogState,
    warnings: Sequence[str],
) -> PlannedRun:
    """Return a planned run, whose snapshot has the policies on the tables that its plan protects."""
    snapshot, unread = _with_policies_on_tables(environment, basis.models, plan, snapshot)
    together = dict.fromkeys((*basis.warnings, *warnings, *unread))  # a plan may be made several times
    return PlannedRun(
        plan=plan,
        compiled=environment.compiled(plan),
        basis=replace(basis, warnings=tuple(together)),
        intent=intent,
        snapshot=snapshot,
    )


def _intent(
    environment: Environment, basis: Observation, undo: Undo | None, drifted: Sequence[ComparedResource]
) -> Intent:
    """Return what a sync brings about: the models, or what an undo brings back, with the drift that is ignored."""
    planner, records = environment.planner, basis.records
    created = undo.created if undo else ()
    if basis.is_partial:  # the rest is not known to be undeclared
        named = by_resource((*basis.models, *created)).keys()
        records = {key: record for key, record in records.items() if is_of_table(record) or key in named}
    return Intent(
        planner=planner,
        models=with_ignored_drift(undo.baselines if undo else basis.models, drifted, planner.policy),
        records=records,
        removed=created_rows(environment, basis, created) if undo else undeclared_rows(environment, basis),
        undo=undo,
    )


def _with_data_changes(plan: TablePlan, observed: CatalogState) -> frozenset[str]:
    """Return the keys of the tables whose rows are written, without those that the plan renames."""
    written = (
        align.table.key
        for align in plan.align_tables
        if any(isinstance(action, FillColumn | RewriteTable) for action in align.actions)
    )
    return frozenset(key for key in written if observed.tables[key].former_name is None)


def _with_drift(
    environment: Environment, planned: PlannedRun, drifted: Sequence[ComparedResource]
) -> PlannedRun:
    """Return a planned run with the drift that its plan undoes, and why drift refuses it."""
    overwritten = tuple(overwritten_drift(planned.plan, planned.models, drifted))
    return replace(
        planned,
        drifted=tuple(drifted),
        refusals=_drift_refusals(environment, planned.intent.tables, drifted, overwritten),
        undone=undone_drift(overwritten),
    )


def draft_revert(
    environment: Environment, basis: Observation, drifted: Sequence[ComparedResource]
) -> PlannedRun:
    """Return the plan that brings drifted securables back to what was applied last, under recorded names."""
    recorded = [replace(resource, model_name=resource.name) for resource in drifted]
    changed = drifted_tables(recorded)
    observed = replace(
        basis.observed,
        tables={**basis.observed.tables, **{resource.name.key: resource.observed for resource in changed}},
    )
    planner = environment.planner.for_reverts()
    intent = Intent(
        planner=planner,
        models=tuple(restored(resource, planner.policy) for resource in recorded),
        is_revert=True,
    )
    snapshot, warnings = _with_files(environment, intent, observed)
    plan = intent.plan(snapshot)
    basis = replace(basis, observed=observed)
    planned = _with_plan(environment, basis, intent, plan, snapshot=snapshot, warnings=warnings)
    return replace(
        planned,
        basis=replace(planned.basis, models=tuple(resource.declared for resource in recorded)),
        refusals=tuple(irreversible(intent.tables, changed)),
        undone=undone_drift(overwritten_drift(plan, intent.models, recorded)),
    )


def _drift_refusals(
    environment: Environment,
    declared: Sequence[Table],
    drifted: Sequence[ComparedResource],
    overwritten: Sequence[OverwrittenDrift],
) -> tuple[DriftRefusal, ...]:
    """Return why drift refuses a plan: each reason once, irreversible changes first."""
    problems = [*irreversible(declared, drifted), *refusals(overwritten, environment.drift_policy)]
    return tuple({str(refusal): refusal for refusal in problems}.values())


def _with_further_tables(environment: Environment, intent: Intent, observed: CatalogState) -> CatalogState:
    """Return a snapshot that includes the tables that foreign keys reference, and those to be dropped."""
    names = {parent.key: parent for model in intent.tables for parent in referenced_tables(model)}
    dropped = (name for name, rows in intent.removed.items() if rows is not None)
    names |= {name.key: name for name in dropped if isinstance(name, QualifiedName)}
    return with_tables_read(environment.reader, observed, names.values())


def _with_recorded(
    environment: Environment, intent: Intent, basis: Observation, observed: CatalogState
) -> CatalogState:
    """Return a snapshot that includes recorded policies and views, as far as views are readable.

    Some policies may reach what a partial run changes, and the views read it.
    """
    left = (record.last_model for record in undeclared(basis.records, intent.models))
    recorded = [model for model in left if model is not None]
    policies = of_kind(AbacPolicy, recorded)
    if policies:
        read = snapshot_by(environment.reader, policies)
        observed = replace(observed, policies={**read.policies, **observed.policies})
    names = {model.key for model in intent.models} | {name.key for name in intent.removed}
    names |= {name.key for model in intent.models for name in former_names(model)}
    views = readers_of(names, of_kind(View, recorded))
    if views:
        shown = readable_snapshot(environment.reader, views)[0].views
        shown = with_recorded_queries(shown, basis.records)
        observed = replace(observed, views={**shown, **observed.views})
    return observed


def _with_policies_on_tables(
    environment: Environment, models: Sequence[Securable], plan: TablePlan, observed: CatalogState
) -> tuple[CatalogState, tuple[str, ...]]:
    """Return a snapshot with the policies on the single tables whose protection a plan changes, and what is unread.

    Filters and masks of others may meet those of the plan there. Policies of schemas and catalogs are read anyway.
    """
    read = {policy.scope.key for policy in of_kind(AbacPolicy, models)}
    reached = [name for name in newly_protected(plan, observed) if name.key not in read]
    asked, left = reached[:_MOST_ASKED], len(reached) - _MOST_ASKED
    observed, unreadable = with_policies_on(environment.reader, observed, asked)
    unread = [f"policies on single tables cannot be read: {refusal}" for refusal in unreadable[:1]]
    if len(unreadable) > 1:
        unread.append(f"the same holds for {counted(len(unreadable) - 1, 'further table')}")
    if left > 0:
        unread.append(f"policies on {counted(left, 'further table')} that the plan protects were not read")
    return observed, tuple(unread)


def _with_files(
    environment: Environment, intent: Intent, observed: CatalogState
) -> tuple[CatalogState, tuple[str, ...]]:
    """Return a snapshot with the Delta tables at the locations of missing tables, and what could not be read."""
    if environment.locations is None:
        return observed, ()
    return with_existing_files(environment.locations, observed, intent.tables)
