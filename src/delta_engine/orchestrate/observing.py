"""Reads what exists and compares it with what was recorded: the snapshot, the statuses and the drift."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from delta_engine.actions.policy import Policy
from delta_engine.backends.capabilities import Feature
from delta_engine.deployment.document import DeploymentState, records_of
from delta_engine.deployment.resources import with_settled_renames
from delta_engine.drift.absences import with_absences
from delta_engine.drift.comparison import compared
from delta_engine.drift.detector import DriftDetector
from delta_engine.drift.drifted_resources import (
    ComparedResource,
)
from delta_engine.drift.lateness import is_recent, may_be_late, may_lag
from delta_engine.drift.observation import Observation
from delta_engine.drift.synchronizing import synchronize, with_settled_creations
from delta_engine.errors import CatalogReadError
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.models import (
    QualifiedName,
    Securable,
    SecurableName,
    Table,
    View,
    by_resource,
    labelled,
    of_kind,
    resource_key,
    subject,
)
from delta_engine.models.constraints import resolved, tables_of_open_keys
from delta_engine.orchestrate.runs import UNREADABLE, Environment, OpenRun
from delta_engine.orchestrate.undeclared import undeclared_models
from delta_engine.ownership.recorded import recorded_former, table_record
from delta_engine.ownership.recorded_models import (
    under_new_names,
    with_models,
    with_recorded_grants,
    with_recorded_tags,
    without_done_renames,
)
from delta_engine.state.catalog_reader import CatalogReader, by_label, readable_snapshot, with_tables_read
from delta_engine.state.states import ABSENT, CatalogState
from delta_engine.state.view_states import ABSENT_VIEW
from delta_engine.telemetry.context import command, utc_now


def observe(
    environment: Environment,
    models: Sequence[Securable],
    state: DeploymentState | None,
    *,
    is_partial: bool,
    besides: Sequence[Securable] = (),
    adopts: bool = False,
    tolerates_unreadable: bool = False,
) -> Observation:
    """Read what is declared and what is recorded and no longer declared, and compare the records with that.

    What differs from a recent apply is read a second time, directly: views of the catalog may lag. If that read fails,
    it is unreadable, because the first one may be wrong.

    Args:
        besides: recorded models, to be read and compared like declared ones.
        adopts: whether the run records tables that no record has: those that were created lately are read a second
            time, too.
        tolerates_unreadable: whether an unreadable declared table is left out of the snapshot, not raised.

    Raises:
        CatalogReadError, RefusalGroup: a catalog or a declared table cannot be read.
        StatementError: the platform refused a query.
    """
    records = records_of(state)
    models = without_done_renames(resolved(models), records)
    besides = without_done_renames(besides, records)
    retired = undeclared_models(environment, (*models, *besides), records, is_partial=is_partial)
    basis = _read_catalog(
        environment.reader,
        with_recorded_grants((*models, *besides), records),
        with_recorded_grants(retired, records),
        tolerates_unreadable=tolerates_unreadable,
    )
    observed = with_recorded_tags(environment.without_others(basis.observed), records)
    if tolerates_unreadable:
        unread = {refusal.securable for refusal in basis.unreadable}
        views = (view for view in of_kind(View, models) if labelled(view.qualified_name) in unread)
        observed = _without_replaced(environment, observed, views)
    models, observed = with_referenced_keys(environment, models, observed)
    basis = replace(basis, models=models, observed=observed, loaded=state, is_partial=is_partial)
    declared, policy = (*models, *besides), environment.planner.policy
    observation = _compared(basis, declared, policy)
    late = _shown_late(observation, declared, retired, adopts=adopts)
    if not late:
        return observation
    basis = _read_directly(environment, basis, late, tolerates_unreadable=tolerates_unreadable)
    return _compared(replace(basis, compared=observation.compared), declared, policy)


def _shown_late(
    observation: Observation, declared: Sequence[Securable], retired: Sequence[Securable], *, adopts: bool
) -> list[Securable]:
    """Return the tables and views that the catalog may show late, with recorded names and grants."""
    now, records = utc_now(), records_of(observation.loaded)
    suspects = {
        resource.model_key: resource.name
        for resource in observation.compared.values()
        if may_be_late(resource, now)
    }
    if adopts:
        suspects |= _created_lately(observation, of_kind(Table, declared), now)
    models = by_label((*declared, *retired))
    for label in {
        str(refusal.table or refusal.securable) for refusal in observation.unreadable
    } & models.keys():
        model, name = models[label], models[label].qualified_name
        before = recorded_former(model, records) or name
        known = [records[key] for key in map(resource_key, (name, before)) if key in records]
        if not known or any(is_recent(record, now) for record in known):
            suspects[resource_key(name)] = before
    if not suspects:
        return []
    asked = with_recorded_grants((*declared, *retired), records)
    late = ((model, suspects.get(resource_key(model.qualified_name))) for model in asked)
    return [_named_before(model, name) for model, name in late if name is not None]


def _created_lately(
    observation: Observation, tables: Iterable[Table], now: datetime
) -> Iterator[tuple[str, SecurableName]]:
    """Yield the keys of new tables that are not recorded yet, with the names under which they exist."""
    records = records_of(observation.loaded)
    for table in tables:
        state = observation.observed.tables.get(table.key, ABSENT)
        name, created_at = state.former_name or table.qualified_name, state.audit.created_at
        record = records.get(resource_key(name))
        if (record is None or record.applied is None) and created_at and may_lag(created_at, now):
            yield resource_key(table.qualified_name), recorded_former(table, records) or name


def _named_before(model: Securable, name: SecurableName) -> Securable:
    """Return the model of a table or view that has no other former name than its recorded one."""
    if not isinstance(model, Table | View) or not model.renamed_from:
        return model
    recorded = name.key.rpartition(".")[2]
    return replace(
        model, renamed_from=tuple(former for former in model.renamed_from if former.lower() == recorded)
    )


def _read_directly(
    environment: Environment,
    basis: Observation,
    models: Sequence[Securable],
    *,
    tolerates_unreadable: bool,
) -> Observation:
    """Return what was read with some tables and views as they are themselves, if they can be read alone.

    If the platform does not answer, retired ones are unreadable, and so are declared ones that may be.
    """
    try:
        second, _ = readable_snapshot(environment.reader, models, directly=True)
    except UNREADABLE as error:
        retired = by_resource(basis.retired)
        left_out = [model for model in models if resource_key(model.qualified_name) in retired]
        if not left_out and not tolerates_unreadable:
            raise
        basis = _without_unanswered(basis, left_out or models, error)
        models = [model for model in models if model not in left_out] if left_out else []
        if not models:
            return basis
        return _read_directly(environment, basis, models, tolerates_unreadable=tolerates_unreadable)
    by_name = by_label((*basis.models, *basis.retired, *models))
    answered = {label for label, model in by_name.items() if second.of(model.qualified_name) is not None}
    observed = replace(
        basis.observed,
        tables={**basis.observed.tables, **second.tables},
        views={**basis.observed.views, **second.views},
    )
    unreadable = [
        refusal for refusal in basis.unreadable if (refusal.table or refusal.securable) not in answered
    ]
    return replace(basis, observed=observed, unreadable=tuple(unreadable))


def _without_unanswered(basis: Observation, models: Sequence[Securable], error: Exception) -> Observation:
    """Return what was read without tables and views that the snapshot may show late."""
    observed, retired = basis.observed, by_resource(basis.retired)
    names = [model.qualified_name for model in models if observed.of(model.qualified_name) is not None]
    keys = {*map(resource_key, names)}
    reason = f"the catalog may show its latest change late, and the second read failed: {error}"
    refusals = [CatalogReadError(reason, **subject(name), way_out="Run the command again.") for name in names]
    warned = (why for name, why in zip(names, refusals, strict=True) if resource_key(name) in retired)
    tables = {key: state for key, state in observed.tables.items() if f"table.{key}" not in keys}
    views = {key: state for key, state in observed.views.items() if f"view.{key}" not in keys}
    return replace(
        basis,
        observed=replace(observed, tables=tables, views=views),
        unreadable=(*basis.unreadable, *refusals),
        warnings=(*basis.warnings, *map(_unreadable, warned)),
    )


def _read_catalog(
    reader: CatalogReader,
    models: Sequence[Securable],
    retired: Sequence[Securable],
    *,
    tolerates_unreadable: bool,
) -> Observation:
    """Read what is declared and what no longer is at once. The latter does not keep the former from being read.

    Raises:
        CatalogReadError, RefusalGroup: a catalog, or something declared that is not tolerated, cannot be read.
    """
    required = () if tolerates_unreadable else [labelled(model.qualified_name) for model in models]
    retired = [replace(model, renamed_from=()) if isinstance(model, Table) else model for model in retired]
    failed: Exception | None = None
    if retired:
        try:
            observed, unreadable = readable_snapshot(reader, [*models, *retired], required=required)
        except UNREADABLE as error:  # such as the catalog of an undeclared table that is gone
            failed = error
    if not retired or failed is not None:
        observed, unreadable = readable_snapshot(reader, models, required=required)
    names = {labelled(model.qualified_name) for model in retired}
    warned = (
        [failed]
        if failed
        else [refusal for refusal in unreadable if (refusal.table or refusal.securable) in names]
    )
    return Observation(
        models=tuple(models),
        retired=tuple(retired),
        observed=observed,
        unreadable=unreadable,
        warnings=tuple(map(_unreadable, warned)),
        has_undeclared=failed is None,
    )


def read_undeclared(
    environment: Environment, undeclared: Sequence[Table]
) -> tuple[CatalogState | None, tuple[str, ...]]:
    """Return a snapshot of undeclared tables; why some are unreadable is only a warning."""
    if not undeclared:
        return None, ()
    try:
        reading = _read_catalog(environment.reader, (), undeclared, tolerates_unreadable=True)
    except UNREADABLE as error:
        return None, (_unreadable(error),)
    return reading.observed, reading.warnings


def _unreadable(error: Exception) -> str:
    return (
        f"recorded tables that are no longer declared cannot be read: {error} "
        f"{command('state rm')} forgets them."
    )


def _compared(basis: Observation, declared: Sequence[Securable], policy: Policy) -> Observation:
    """Return an observation with its records, settled and compared with the snapshot, each once.

    Args:
        declared: the models that were read.
    """
    state, observed = basis.loaded, basis.observed
    settled = state and with_settled_renames(state, declared, observed)
    names = [model.qualified_name for model in basis.retired]
    settled = settled and with_settled_creations(settled, names, observed, policy)
    records = with_models(records_of(settled))
    tables = (table.qualified_name for table in of_kind(Table, basis.retired))
    attempted = {name.key: name for name in tables if not records[resource_key(name)].applied}
    return replace(
        basis,
        models=without_done_renames(basis.models, records_of(settled)),
        observed=_as_others(observed, attempted),
        state=settled,
        records=under_new_names(records, declared, observed),
        compared=compared(records_of(settled), observed, policy, declared, basis.compared, now=utc_now()),
        unreadable=tuple(
            refusal for refusal in basis.unreadable if (refusal.table or "").lower() not in attempted
        ),
    )


def _without_replaced(
    environment: Environment, observed: CatalogState, views: Iterable[View]
) -> CatalogState:
    """Return a snapshot in which unreadable views are missing if a table has their name."""
    unread = {view.key for view in views}
    tables = {name.key for name in observed.other_tables}
    if unlisted := unread - tables:  # the snapshot has nothing else of their schemas
        names = map(QualifiedName.of_key, sorted(unlisted))
        read = with_tables_read(environment.reader, CatalogState(tables={}), names).tables
        tables |= {key for key, state in read.items() if state.exists}
    replaced = dict.fromkeys(sorted(unread & tables), ABSENT_VIEW)
    return replace(observed, views={**observed.views, **replaced}) if replaced else observed


def _as_others(observed: CatalogState, names: Mapping[str, QualifiedName]) -> CatalogState:
    """Return a snapshot in which some of the tables that exist are other tables."""
    others = {key: name for key, name in names.items() if observed.tables.get(key, ABSENT).exists}
    if not others:
        return observed
    return replace(
        observed,
        tables={key: state for key, state in observed.tables.items() if key not in others},
        other_tables=tuple(sorted((*observed.other_tables, *others.values()), key=str)),
        audits={**observed.audits, **{key: observed.tables[key].audit for key in others}},
    )


def with_referenced_keys(
    environment: Environment, models: tuple[Securable, ...], observed: CatalogState
) -> tuple[tuple[Securable, ...], CatalogState]:
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
    managed = None if basis.is_partial else by_resource(basis.models).keys()
    state = synchronize(basis.state, basis.observed, basis.compared, managed=managed, now=utc_now())
    current = {
        key: replace(resource, record=state.resources[key]) for key, resource in basis.compared.items()
    }
    return replace(basis, state=state, compared=current)


def observe_locked(
    run: OpenRun,
    models: Sequence[Securable],
    *,
    is_partial: bool,
    adopts: bool = False,
    tolerates_unreadable: bool = False,
) -> Observation:
    """Observe, and record the statuses that are found; arguments as of `observe`."""
    basis = with_statuses(
        observe(
            run.environment,
            models,
            run.loaded,
            is_partial=is_partial,
            adopts=adopts,
            tolerates_unreadable=tolerates_unreadable,
        )
    )
    if basis.state is not None:
        run.recorder.state = basis.state
    for warning in basis.warnings:
        run.recorder.warn(warning)
    return basis


def record_statuses(
    run: OpenRun, models: Sequence[Securable], *, is_partial: bool = False
) -> DeploymentState:
    """Record and date what the catalog shows of everything that was applied; changes nothing in the catalog."""
    observe_locked(run, models, is_partial=is_partial)
    run.recorder.save(is_forced=True)
    return run.recorder.state


def drift_detector(environment: Environment, *, is_thorough: bool = True) -> DriftDetector:
    """Return the detector of drift; a thorough one also reads the history of changed tables."""
    return DriftDetector(
        environment.drift_policy,
        versions=environment.versions,
        history=environment.history if is_thorough else None,
        is_thorough=is_thorough,
    )


def detected_drift(
    environment: Environment, basis: Observation, keys: Collection[str] | None = None, *, now: datetime
) -> tuple[ComparedResource, ...]:
    """Return the drift with its authors, and whether missing schemas and tables of models are renamed or hidden.

    Args:
        keys: the recorded resources to ask about; all by default.
    """
    records = [record for key, record in basis.compared.items() if keys is None or key in keys]
    detector, declared = drift_detector(environment), by_resource(basis.models).keys()
    drifted = detector.detect(records, now=now)
    missing = [record for record in records if not record.observed.exists and record.model_key in declared]
    if missing:
        names = detector.new_names(missing, _under_new_names(environment, basis, missing))
        drifted = tuple(
            replace(resource, renamed_to=names.get(resource_key(resource.name))) for resource in drifted
        )
    return with_absences(
        drifted,
        basis.observed,
        declared=declared,
        visibility=environment.visibility,
        principals=environment.principals,
    )


def _under_new_names(
    environment: Environment, basis: Observation, missing: Sequence[ComparedResource]
) -> list[QualifiedName]:
    """Return the tables that can be missing ones under new names, where tables can be renamed.

    They are in no record, or a run that was killed has recorded that it renamed them.
    """
    keys = {resource.key for resource in missing}
    renamed = (
        table.qualified_name
        for table in of_kind(Table, basis.retired)
        if (record := table_record(basis.records, table.qualified_name)) is not None
        and record.former_key in keys
        and basis.observed.tables.get(table.key, ABSENT).exists
    )
    runner, others = environment.action_runner, [*renamed, *basis.observed.other_tables]
    if not isinstance(runner, ActionRunner):  # what an injected executor can do is not known
        return others
    return [name for name in others if not runner.capabilities.refusal(Feature.TABLE_RENAMES, name.catalog)]
