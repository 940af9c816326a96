"""Plans a sync or a revert. A plan without a lock and the plan of a locked run are made by the same function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.actions.policy import Consent, NeededConsent, Policy, last_day
from delta_engine.aspects.backfill_actions import FillColumn
from delta_engine.aspects.partitioning import RewriteTable
from delta_engine.backends.capabilities import Feature
from delta_engine.compile.planner import while_renaming
from delta_engine.compile.restoring import before_restores, with_restores, with_returns
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.recorded_models import (
    declared_by,
    schema_records,
    table_records,
    under_new_names,
    with_recorded_grants,
    without_done_renames,
)
from delta_engine.deployment.resources import with_settled_renames
from delta_engine.drift.absences import with_absences
from delta_engine.drift.comparison import compared, may_be_renamed
from delta_engine.drift.detector import DriftDetector
from delta_engine.drift.drifted_resources import (
    ComparedResource,
    DriftRefusal,
    drifted_schemas,
    drifted_tables,
    undone_field,
)
from delta_engine.drift.handling import (
    OverwrittenDrift,
    is_replaced,
    overwritten_drift,
    refusals,
    restored,
    undone_drift,
    with_ignored_drift,
    without_ignored_deletions,
)
from delta_engine.drift.renames import ignored_renames, irreversible, taken_renames, with_taken_renames
from delta_engine.drift.status import has_accepted_replacement, synchronize
from delta_engine.errors import RefusedError, raise_all
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.models import QualifiedName, Schema, Table
from delta_engine.models.constraints import referenced_tables, resolved, tables_of_open_keys
from delta_engine.orchestrate.runs import UNREADABLE, Environment, Observation, OpenRun, PlannedRun, Undo
from delta_engine.orchestrate.undeclared_tables import (
    is_gone,
    read_catalog,
    rows_to_drop,
    undeclared_tables,
)
from delta_engine.ownership.recorded import resource_key
from delta_engine.state.catalog_reader import (
    read_again,
    with_tables_read,
)
from delta_engine.state.existing_files import with_existing_files
from delta_engine.state.states import CatalogState
from delta_engine.telemetry.context import utc_now
from delta_engine.validation.broken_views import view_warnings
from delta_engine.validation.needed_rights import rights_warnings
from delta_engine.validation.protected_data import tag_warnings
from delta_engine.validation.recent_readers import lineage_warnings
from delta_engine.validation.relations import checked_plan, partial_model_violations
from delta_engine.validation.rules import needed_by
from delta_engine.validation.validator import needed_consents


def plan_unlocked(
    environment: Environment,
    tables: Sequence[Table],
    *,
    is_partial: bool = False,
    allow_cached: bool = True,
) -> PlannedRun:
    """Return what a sync would do and why it would be refused; changes nothing and takes no lock.

    Args:
        allow_cached: whether a recent copy of the deployment state will do.

    Raises:
        InvalidModelError, CatalogReadError, RefusalGroup: models are refused, or tables cannot be read.
    """
    return judged(
        environment, draft_unlocked(environment, tables, is_partial=is_partial, allow_cached=allow_cached)
    )


def draft_unlocked(
    environment: Environment, tables: Sequence[Table], *, is_partial: bool, allow_cached: bool
) -> PlannedRun:
    """Return what `plan_unlocked` judges, with the refusals of drift alone; arguments and errors as there."""
    raise_all(environment.validator.model_violations(tables))
    state = environment.deployment.peek_replayed(allow_cached=allow_cached)
    draft = _draft(environment, tables, state, is_partial=is_partial)
    # an outdated copy makes the engine's own last run look like drift
    if (draft.refusals or draft.meets_drift) and allow_cached:
        current = environment.deployment.peek_replayed()
        if current != state:
            draft = _draft(environment, tables, current, is_partial=is_partial)
    return draft


def _draft(
    environment: Environment, tables: Sequence[Table], state: DeploymentState | None, *, is_partial: bool
) -> PlannedRun:
    basis = observe(environment, tables, state, is_partial=is_partial)
    return draft_sync(environment, with_statuses(basis))


def draft_sync(environment: Environment, basis: Observation) -> PlannedRun:
    """Return the plan of a sync, with the refusals of drift; the plan rules have not judged it yet.

    Raises:
        InvalidModelError, RefusalGroup: models do not fit what exists.
    """
    raise_all(partial_model_violations(basis.models, basis.observed))
    now = utc_now()
    drifted = drift_detector(environment, is_thorough=False).detect(basis.compared.values(), now=now)
    draft = _with_undone(environment, _planned(environment, basis, drifted, basis.observed), drifted)
    in_history = {
        key
        for key, one in basis.compared.items()
        if may_be_renamed(one) or has_accepted_replacement(one.record)
    }
    if in_history or draft.meets_drift:
        # Worth a statement per table: the history tells renames from drops and replaced tables, and names the author.
        found = in_history | {one.key for one in drifted}
        records = [one for key, one in basis.compared.items() if key in found]
        drifted = detected_drift(environment, records, basis.observed, basis.models, now=now)
        if any(one.renames for one in drifted):
            draft = _planned(environment, basis, drifted, draft.seen)
        draft = _with_undone(environment, draft, drifted)
    return draft


def _planned(
    environment: Environment, basis: Observation, drifted: Sequence[ComparedResource], seen: CatalogState
) -> PlannedRun:
    models, policy, undo = basis.models, environment.planner.policy, basis.undo or Undo(run="")
    column_renames = taken_renames(models, drifted)
    records = with_taken_renames(basis.records, column_renames)
    wanted = with_ignored_drift(undo.wanted or models, drifted, policy)
    schemas = environment.planner.schemas
    planner = environment.planner.with_schemas(with_ignored_drift(schemas, drifted, policy))
    removed = rows_to_drop(environment, basis, declared_by(records))
    schemas_known = {} if basis.is_partial and not undo.schemas else schema_records(basis.state)

    def replan(seen: CatalogState, under_way: AlignTable | None) -> TablePlan:
        remaining = {name: rows for name, rows in removed.items() if not is_gone(name, seen)}
        known = while_renaming(records, under_way) if under_way else records
        models = before_restores(wanted, seen, undo.restores)

        def planned() -> TablePlan:
            plan = planner.plan(models, seen, known, remaining, schemas_known, undoes=basis.undo is not None)
            return with_returns(with_restores(plan, undo.restores), undo.returns)

        return checked_plan(wanted, seen, planned)

    seen = _with_further_tables(environment, wanted, seen, removed)
    seen, warnings = _with_files(environment, wanted, seen)
    plan = replan(seen, None)
    observed = basis.observed
    if moved := [model for model in wanted if model.key in _with_data_changes(plan, seen)]:
        # A view that lags behind a conversion would have `using` computed from its own result.
        fresh = read_again(environment.reader, moved, seen)
        seen, observed = seen.with_tables(fresh), observed.with_tables(fresh)
        plan = replan(seen, None)
    return PlannedRun(
        plan=plan,
        compiled=environment.compiled(plan),
        basis=replace(
            basis, records=records, observed=observed, warnings=_together(basis.warnings, warnings)
        ),
        models=models,
        wanted=wanted,
        schemas=without_ignored_deletions(schemas, drifted),
        policy=policy,
        seen=seen,
        replan=replan,
        column_renames=column_renames,
    )


def _with_data_changes(plan: TablePlan, seen: CatalogState) -> frozenset[str]:
    """Return the keys of the tables whose rows are written, without those that the plan renames."""
    written = (
        align.table.key
        for align in plan.align_tables
        if any(isinstance(action, FillColumn | RewriteTable) for action in align.actions)
    )
    return frozenset(key for key in written if seen.tables[key].former_name is None)


def _with_undone(
    environment: Environment, planned: PlannedRun, drifted: Sequence[ComparedResource]
) -> PlannedRun:
    """Return a planned run with the drift that its plan undoes, and why drift refuses it."""
    overwritten = tuple(
        overwritten_drift(planned.plan, [*environment.planner.schemas, *planned.models], drifted)
    )
    replaced = {one.model_name.key for one in drifted if is_replaced(one)}
    return replace(
        planned,
        refusals=_drift_refusals(environment, planned.wanted, drifted, overwritten),
        undone=undone_drift(overwritten),
        ignored_renames=ignored_renames(drifted),
        replaced=tuple(model.qualified_name for model in planned.models if model.key in replaced),
    )


def draft_revert(
    environment: Environment, basis: Observation, drifted: Sequence[ComparedResource]
) -> PlannedRun:
    """Return the plan that brings drifted tables and schemas back to what was applied last, under recorded names."""
    changed, schemas = drifted_tables(drifted), drifted_schemas(drifted)
    observed = replace(
        basis.observed, tables={**basis.observed.tables, **{one.name.key: one.observed for one in changed}}
    )
    planner = environment.planner.restoring()
    wanted = tuple(restored(one, planner.policy) for one in changed)
    planner = planner.with_schemas([restored(one, planner.policy) for one in schemas])

    def replan(seen: CatalogState, _under_way: AlignTable | None) -> TablePlan:
        return checked_plan(wanted, seen, lambda: planner.plan(wanted, seen))

    seen, warnings = _with_files(environment, wanted, observed)
    plan = replan(seen, None)
    return PlannedRun(
        plan=plan,
        compiled=environment.compiled(plan),
        basis=replace(basis, observed=observed, warnings=_together(basis.warnings, warnings)),
        models=tuple(table.declared for table in changed),
        wanted=wanted,
        schemas=tuple(schema.declared for schema in schemas),
        policy=planner.policy,
        seen=seen,
        replan=replan,
        refusals=tuple(irreversible(wanted, changed)),
        undone={
            (one.key, undone_field(detail.finding.field)): detail.finding
            for one in drifted
            if not is_replaced(one)
            for detail in one.drift
        },
        settles_attempts=False,
    )


def judged(environment: Environment, draft: PlannedRun) -> PlannedRun:
    """Return a planned run with its refusals, its costs, and warnings about rights and readers.

    The questions that cost statements on tables are asked only if nothing refuses the plan without them.
    """
    planned = _with_verdict(environment, draft)
    warnings = [*tag_warnings(planned.plan, planned.wanted, planned.seen)]
    if environment.principals is not None:
        warnings += rights_warnings(environment.principals, planned.plan, planned.seen)
    warnings += view_warnings(environment.views, planned.plan)
    warnings += lineage_warnings(environment.lineage, planned.plan, now=utc_now())
    return replace(planned, judged_warnings=(*warnings, *planned.judged_warnings))


def judged_with_consents(
    environment: Environment, draft: PlannedRun, consents: Sequence[Consent], judged: PlannedRun
) -> PlannedRun:
    """Return the verdict on a draft with other consents, from the snapshot that it was made from.

    Of the first judgement remain the warnings. Tables are asked what it did not ask because it refused the plan.
    """
    policy = replace(draft.policy, consents=tuple(consents))
    environment = replace(environment, validator=environment.validator.under(policy))
    planned = _with_verdict(environment, replace(draft, policy=policy))
    return replace(planned, judged_warnings=_together(judged.judged_warnings, planned.judged_warnings))


def _with_verdict(environment: Environment, draft: PlannedRun) -> PlannedRun:
    now = utc_now()
    needed = [*needed_consents(draft.plan)]
    violations = environment.validator.at(now).plan_violations(draft.plan, has_costs=False)
    draft = replace(draft, refusals=(*draft.refusals, *violations))
    if not draft.refusals:
        draft, of_tables = _asked(environment, draft, now)
        needed += of_tables
    given = [consent for consent in draft.policy.consents if any(map(consent.covers, needed))]
    return replace(
        draft,
        consents=tuple(consent for consent in given if not consent.is_expired(now)),
        consent_entries=_consent_entries(environment, needed_by(draft.refusals), now),
        judged_warnings=tuple(
            f"{consent.location}: {consent.expiry_note}" for consent in given if consent.is_expired(now)
        ),
    )


def _asked(
    environment: Environment, draft: PlannedRun, now: datetime
) -> tuple[PlannedRun, Sequence[NeededConsent]]:
    """Ask the tables: for costs and policies, then for their rows, unless the answers refuse the plan by then.

    Returns:
        the planned run with costs and refusals, and the consents that policies (ABAC) make necessary.
    """
    plan = environment.costs.with_costs(draft.plan, draft.seen) if environment.costs else draft.plan
    refusals: list[RefusedError] = [*environment.validator.at(now).plan_violations(plan)]
    needed: Sequence[NeededConsent] = ()
    if environment.protected_data is not None:
        policy = draft.policy.at(now)
        protected = environment.protected_data.refusals(plan, draft.wanted, draft.seen, policy)
        refusals += (refusal for refusal in protected if not _is_allowed(refusal, policy))
        needed = needed_by(protected)
    if environment.preflight is not None and not refusals:
        refusals += environment.preflight.refusals(plan, draft.wanted, draft.basis.observed)
    return replace(draft, plan=plan, refusals=tuple(refusals)), needed


def _consent_entries(environment: Environment, needed: Sequence[NeededConsent], now: datetime) -> str:
    if not needed or environment.entries is None:
        return ""
    return environment.entries(last_day(now)).consents(needed)


def _is_allowed(refusal: RefusedError, policy: Policy) -> bool:
    needed = needed_by([refusal])
    return bool(needed) and all(policy.allows(change.kind, change.table, change.part) for change in needed)


def drift_detector(environment: Environment, *, is_thorough: bool = True) -> DriftDetector:
    """Return the detector of drift; a thorough one also reads the history of changed tables."""
    return DriftDetector(
        environment.drift_policy,
        versions=environment.versions,
        history=environment.history if is_thorough else None,
        is_thorough=is_thorough,
    )


def detected_drift(
    environment: Environment,
    records: Iterable[ComparedResource],
    observed: CatalogState,
    models: Iterable[Table],
    *,
    now: datetime,
) -> tuple[ComparedResource, ...]:
    """Return the drift with its authors, and whether missing schemas and tables of models are renamed or hidden."""
    records, detector = [*records], drift_detector(environment)
    declared = {model.key for model in models}
    drifted = detector.detect(records, now=now)
    missing = [found for found in records if not found.observed.exists and found.model_name.key in declared]
    if missing:
        names = detector.new_names(missing, _others_under_new_names(environment, observed))
        drifted = tuple(replace(found, renamed_to=names.get(found.name.key)) for found in drifted)
    return with_absences(
        drifted,
        observed,
        declared=declared,
        visibility=environment.visibility,
        principals=environment.principals,
    )


def _others_under_new_names(environment: Environment, observed: CatalogState) -> list[QualifiedName]:
    """Return the undeclared tables that can be declared ones under new names, where tables can be renamed."""
    runner, others = environment.action_runner, observed.other_tables
    if not isinstance(runner, ActionRunner):  # what an injected executor can do is not known
        return [*others]
    return [name for name in others if not runner.capabilities.refusal(Feature.TABLE_RENAMES, name.catalog)]


def _drift_refusals(
    environment: Environment,
    wanted: Sequence[Table],
    drifted: Sequence[ComparedResource],
    overwritten: Sequence[OverwrittenDrift],
) -> tuple[DriftRefusal, ...]:
    """Return why drift refuses a plan: each reason once, irreversible changes first."""
    found = [*irreversible(wanted, drifted), *refusals(overwritten, environment.drift_policy)]
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
    return with_tables_read(environment.reader, observed, names.values())


def _with_files(
    environment: Environment, models: Sequence[Table], observed: CatalogState
) -> tuple[CatalogState, tuple[str, ...]]:
    """Return a snapshot with the Delta tables at the locations of missing tables, and what could not be read."""
    if environment.locations is None:
        return observed, ()
    return with_existing_files(environment.locations, observed, models)


def _together(warnings: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    """Return warnings, each once: a plan may be made several times."""
    return tuple(dict.fromkeys((*warnings, *more)))


def observe(
    environment: Environment,
    tables: Sequence[Table],
    state: DeploymentState | None,
    *,
    is_partial: bool,
    schemas: Sequence[Schema] | None = None,
    tolerates_unreadable: bool = False,
) -> Observation:
    """Read the tables of models and the recorded ones that no model declares, and compare the records with them.

    Args:
        schemas: the schemas to read; by default the declared ones.
        tolerates_unreadable: whether an unreadable declared table is left out of the snapshot, not raised.

    Raises:
        CatalogReadError, RefusalGroup: a catalog or a declared table cannot be read.
    """
    models = without_done_renames(resolved(tables), state)
    records = table_records(state)
    undeclared = undeclared_tables(environment, models, declared_by(records), is_partial=is_partial)
    reading = read_catalog(
        environment.reader,
        with_recorded_grants(models, state),
        with_recorded_grants(undeclared, state),
        with_recorded_grants(environment.planner.schemas if schemas is None else schemas, state),
        tolerates_unreadable=tolerates_unreadable,
    )
    models, observed = with_referenced_keys(environment, models, environment.without_others(reading.observed))
    settled = state and with_settled_renames(state, models, observed)
    records = table_records(settled)
    return Observation(
        models=models,
        observed=observed,
        loaded=state,
        state=settled,
        records=under_new_names(records, models, observed),
        compared=compared(settled, observed, environment.planner.policy, models),
        is_partial=is_partial,
        unreadable=reading.unreadable,
        warnings=reading.warnings,
        has_undeclared=reading.has_undeclared,
    )


def with_referenced_keys(
    environment: Environment, models: tuple[Table, ...], observed: CatalogState
) -> tuple[tuple[Table, ...], CatalogState]:
    """Return models whose foreign keys have the columns of primary keys that only the catalog knows.

    A key whose table is not readable stays as it is.
    """
    parents = [*tables_of_open_keys(models)]
    if not parents:
        return models, observed
    try:
        observed = with_tables_read(environment.reader, observed, parents)
    except UNREADABLE:
        return models, observed
    return resolved(models, observed.tables), observed


def with_statuses(basis: Observation) -> Observation:
    """Return an observation whose deployment state has the statuses that the snapshot shows."""
    if basis.state is None:
        return basis
    managed = None if basis.is_partial else {resource_key(model.qualified_name) for model in basis.models}
    state = synchronize(basis.state, basis.observed, basis.compared, managed=managed, now=utc_now())
    current = {key: replace(found, record=state.resources[key]) for key, found in basis.compared.items()}
    return replace(basis, state=state, compared=current)


def record_statuses(run: OpenRun, tables: Sequence[Table], *, is_partial: bool = False) -> DeploymentState:
    """Record and date what the catalog shows of everything that was applied; changes nothing in the catalog."""
    observe_locked(run, tables, is_partial=is_partial)
    run.recorder.save(is_forced=True)
    return run.recorder.state


def observe_locked(run: OpenRun, tables: Sequence[Table], *, is_partial: bool) -> Observation:
    """Read the tables and record the statuses that are found."""
    basis = with_statuses(observe(run.environment, tables, run.loaded, is_partial=is_partial))
    if basis.state is not None:
        run.recorder.state = basis.state
    for warning in basis.warnings:
        run.recorder.warn(warning)
    return basis
