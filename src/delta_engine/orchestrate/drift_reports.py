"""Reports drift, adds reports to their history, and edits the models that accept drift."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Allowance, DestructiveKind, last_day, matches_any
from delta_engine.aspects.protection import HISTORY_HIDDEN, is_protected
from delta_engine.config.edit_instructions import edit_instructions
from delta_engine.config.model_edits import ModelEdit, as_written, edit_models, is_editable
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.recorded_models import (
    declared_by,
    model_records,
)
from delta_engine.drift.absences import may_be_hidden, without_hidden
from delta_engine.drift.attribution import with_audited_authors
from delta_engine.drift.drift_report import DriftReport
from delta_engine.drift.drifted_resources import ComparedResource, ComparedTable, is_table
from delta_engine.drift.handling import (
    accepted_renames,
    accepting,
    edited,
    edits_to_replace,
    reverted_drift,
)
from delta_engine.drift.observation import DriftFacts, Observation, PlannedRevert
from delta_engine.drift.renames import is_former_name, taken_renames, with_taken_renames
from delta_engine.drift.reporting import drift_report
from delta_engine.errors import (
    InvalidCommandError,
    InvalidModelError,
    RefusedError,
    StatementError,
    raise_all,
)
from delta_engine.models import (
    AbacPolicy,
    FunctionName,
    PolicyName,
    Schema,
    Securable,
    SecurableName,
    Table,
    ViewName,
    by_resource,
    labelled,
    of_kind,
    resource_key,
)
from delta_engine.models.constraints import referenced_table, resolved
from delta_engine.orchestrate.observing import detected_drift, drift_detector, observe
from delta_engine.orchestrate.planning import draft_revert
from delta_engine.orchestrate.project import Project, declared_models
from delta_engine.orchestrate.runs import NOT_STARTED, Environment
from delta_engine.report.pages import drift_html
from delta_engine.state.audits import Audit
from delta_engine.telemetry.context import command, new_id, utc_now
from delta_engine.validation.rules import model_refusal, needed_by

Model = TypeVar("Model", bound=Securable)

_MOST_READS = 3
"""How often a report reads the catalog because a run of the engine was under way."""


def report_drift(
    environment: Environment, models: Sequence[Securable], *, is_partial: bool = False
) -> DriftReport:
    """Report what was changed outside the engine since it was applied; changes nothing and takes no lock.

    Args:
        models: those that pass the model rules.

    Raises:
        CatalogReadError: a whole catalog cannot be read; a single table is a finding.
    """
    models, deployment = resolved(models), environment.deployment
    state = deployment.peek_replayed()
    for _ in range(_MOST_READS):
        facts = _facts(environment, models, state, is_partial=is_partial)
        before, state = state, deployment.peek_replayed() if facts.drifted else state
        if state == before:
            break
    facts = with_audited_authors(facts, environment.audit_log)
    return drift_report(replace(facts, reversal=_reversal(environment, facts)))


def record_drift(environment: Environment, report: DriftReport) -> None:
    """Add a report to the history of drift, if the environment has one."""
    if environment.drift_history is not None:
        environment.drift_history.append(report, new_id())


def drift_page(environment: Environment, report: DriftReport) -> str:
    """Return a report as a page, with the earlier ones as a chart."""
    if environment.drift_history is None:
        return drift_html(report, ())
    try:
        return drift_html(report, environment.drift_history.recent(environment.name))
    except (*NOT_STARTED, StatementError):  # the report matters more than its chart
        return drift_html(report, ())


def acceptable(
    project: Project, resources: Sequence[ComparedResource], notify: Callable[[str], None]
) -> list[ComparedResource]:
    """Return the drift of declared securables: accepted drift waits for its model.

    Without those that may be hidden, of which it notifies: their deletion is not known.

    Raises:
        ConfigError: the project is deployed, and its models are copies that no edit reaches.
    """
    folder = project.settings.project_dir.resolve()
    if ".bundle" in folder.parts:
        raise InvalidCommandError(
            f"drift is accepted where the models are edited, and {folder} is deployed: its models are copies, "
            "which the next deployment replaces",
            way_out=f"Run {command('drift --accept', project.settings.environment)} in the repository.",
        )
    declared = by_resource(project.synced).keys()
    drifted = [
        resource for resource in resources if resource.drift and resource_key(resource.model_name) in declared
    ]
    return without_hidden(drifted, notify)


def replaced_edits(project: Project, drifted: Sequence[ComparedResource]) -> Iterator[str]:
    """Yield a sentence for each edit of a model that accepting the drift replaces, before any sync applied it."""
    declared = by_resource(project.models)
    for resource in drifted:
        model = declared.get(resource_key(resource.model_name))
        for change in edits_to_replace(model, resource) if model is not None else ():
            yield (
                f"{resource.model_name}: the model declares {change.subject}: {change.desired}, which no sync has "
                f"applied. Accepting the drift replaces it with: {change.observed}"
            )


def edit_project(
    project: Project, drifted: Sequence[ComparedResource], notify: Callable[[str], None]
) -> tuple[tuple[Path, ...], list[str]]:
    """Edit YAML models so that they declare drift.

    Returns:
        The edited files, and how to edit the models that the engine cannot edit.

    Raises:
        InvalidModelError, RefusalGroup: the models would be refused afterwards; nothing was edited.
    """
    models = by_resource(project.models)
    edits = []
    for resource in drifted:
        model = models[resource.model_key]
        if isinstance(model, Table) and is_table(resource):
            edits.append(_edit(model, resource, notify))
        else:
            after = accepting(model, resource) if resource.observed.exists else None
            edits.append(ModelEdit(before=model, after=after))
    edits = [edit for edit in edits if edit.before != edit.after]
    raise_all(_broken_models(project, edits))
    files = edit_models([edit for edit in edits if is_editable(edit)], project.settings)
    by_hand = (edit for edit in edits if not is_editable(edit))
    return files, [edit_instructions(edit.before, edit.after, edit.renames) for edit in by_hand]


def _broken_models(project: Project, edits: Sequence[ModelEdit]) -> Iterator[InvalidModelError]:
    """Yield why models of the whole project would be refused after edits, also models that were not selected."""
    declared = declared_models(project.settings)
    by_key = {resource_key(edit.before.qualified_name): edit for edit in edits}
    models = [*_after(declared.models, by_key)]
    gone = {
        edit.before.key: edit
        for edit in edits
        if isinstance(edit.before, Table) and (edit.after is None or edit.after.key != edit.before.key)
    }
    dangling = [*_dangling_keys(project, of_kind(Table, models), gone)]
    yield from dangling
    if not dangling:
        for refusal in project.validator.model_violations(resolved(models)):
            yield InvalidModelError(
                f"the drift cannot be accepted, because afterwards {refusal.reason}",
                table=refusal.table,
                securable=refusal.securable,
                column=refusal.column,
                location=refusal.location,
                way_out="Correct the model and accept again, or revert the drift with "
                f"{command('drift --revert', project.settings.environment)}.",
            )


def _after(models: Iterable[Model], edits: Mapping[str, ModelEdit]) -> Iterator[Model]:
    for model in models:
        edit = edits.get(resource_key(model.qualified_name))
        after = model if edit is None else as_written(edit, model).after
        if isinstance(after, type(model)):
            yield after


def _dangling_keys(
    project: Project, models: Iterable[Table], gone: Mapping[str, ModelEdit]
) -> Iterator[InvalidModelError]:
    """Yield a refusal for each foreign key to a table whose model is removed or renamed.

    An undeclared table may be another project's, so that no rule refuses the key.
    """
    together = ", or accept the drift of both tables together." if project.is_partial else "."
    for model in models:
        for key in model.foreign_keys:
            parent = referenced_table(model.qualified_name, key)
            edit = gone.get(parent.key) if parent is not None else None
            if edit is not None:
                new = f"rename to {edit.after.qualified_name}" if edit.after else "remove"
                yield model_refusal(
                    model,
                    f"the drift cannot be accepted, because foreign key ({', '.join(key.columns)}) references "
                    f"{parent}, whose model it would {new}",
                    f"Remove the key from the model and accept again{together}",
                    key.columns[0],
                )


def _facts(
    environment: Environment, models: Sequence[Securable], state: DeploymentState | None, *, is_partial: bool
) -> DriftFacts:
    basis = observe(
        environment,
        models,
        state,
        is_partial=is_partial,
        besides=_applied_schemas(models, declared_by(model_records(state))) if is_partial else (),
        tolerates_unreadable=True,
    )
    now, detector = utc_now(), drift_detector(environment)
    drifted = detected_drift(environment, basis, now=now)
    managed = {
        *map(resource_key, environment.own_tables),
        *(resource_key(model.qualified_name) for model in basis.models),
        *declared_by(model_records(basis.state)),
    }
    return DriftFacts(
        environment=environment.name,
        checked_at=now,
        basis=replace(basis, records=with_taken_renames(basis.records, taken_renames(basis.tables, drifted))),
        drifted=drifted,
        unreadable=detector.unreadable(basis.unreadable, now=now),
        unmanaged=()
        if is_partial
        else detector.unmanaged(basis.observed, managed, _others_in(environment, basis), now=now),
        policy=environment.drift_policy,
        plan_policy=environment.planner.policy,
        model_patterns=environment.model_patterns,
        entries=environment.entries(last_day(now)) if environment.entries is not None else None,
        notes=(
            *(() if basis.has_undeclared else basis.warnings),
            *(str(refusal) for refusal in basis.unreadable if refusal.table is None),
            *_hidden_histories(drifted),
            *_hidden_texts(basis.compared.values()),
            *renamed_notes(drifted),
        ),
    )


def renamed_notes(drifted: Iterable[ComparedResource]) -> Iterator[str]:
    """Yield the new names of missing tables."""
    for resource in drifted:
        if resource.renamed_to is not None:
            yield (
                f"{resource.name}: it was renamed to {resource.renamed_to}, which has its Delta id. "
                f"{command('drift --accept')} gives the model that name; a revert would create an empty {resource.name}"
            )


def _under_new_name(model: Table, table: ComparedTable) -> Table | None:
    """Return the model of a missing table under its new name; None if the table was deleted."""
    if table.renamed_to is None:
        return None
    name = table.renamed_to.table
    names = (model.table_name, *model.renamed_from)
    former = (former_name for former_name in names if former_name.lower() != name.lower())
    return replace(model, table_name=name, renamed_from=tuple(former))


def _hidden_histories(drifted: Iterable[ComparedResource]) -> Iterator[str]:
    """Yield what a report cannot know of drifted tables whose history the platform hides."""
    for resource in drifted:
        if is_table(resource) and is_protected(resource.observed):
            consequence = "Authors come from the audit log alone, and renames look like drops"
            yield f"{resource.name}: {HISTORY_HIDDEN}. {consequence}"


def _hidden_texts(resources: Iterable[ComparedResource]) -> Iterator[str]:
    """Yield what the platform hides of existing functions and views, whose texts it shows to their owners alone."""
    for resource in resources:
        for part in ("body", "query"):
            if resource.observed.exists and getattr(resource.observed, part, "") is None:
                yield (
                    f"{resource.name.kind} {resource.name}: its {part} is hidden from you, because you do not own it. "
                    "It is neither compared nor replaced"
                )


def _reversal(environment: Environment, facts: DriftFacts) -> PlannedRevert:
    """Plan a revert of declared securables, without those for which it would be refused."""
    declared = facts.declared
    left = [
        drifted
        for drifted in facts.drifted
        if drifted.drift and resource_key(drifted.model_name) in declared and not may_be_hidden(drifted)
    ]
    refused: list[RefusedError] = []
    while left:
        refusals: Sequence[RefusedError]
        try:
            draft = draft_revert(environment, facts.basis, left)
        except RefusedError as refusal:
            refusals = refusal.refusals
        else:
            refusals = (*draft.refusals, *_violations(environment, draft.plan, DestructiveKind))
            if not refusals:
                return PlannedRevert(
                    resources=frozenset(resource.key for resource in left),
                    needed=needed_by(_violations(environment, draft.plan, ())),
                    refusals=tuple(refused),
                    files={key: files is not None for key, files in draft.snapshot.files.items()},
                )
        refused += refusals
        places = {refusal.table or refusal.securable for refusal in refusals}
        selectable = [resource for resource in left if resource.name.is_selectable]
        able = [
            resource for resource in selectable if labelled(resource.declared.qualified_name) not in places
        ]
        left = able if len(able) < len(left) else []
    return PlannedRevert(refusals=tuple(refused))


def _violations(
    environment: Environment, plan: TablePlan, allowed: Iterable[DestructiveKind]
) -> tuple[RefusedError, ...]:
    policy = environment.planner.policy.at(utc_now())
    policy = replace(policy, allow=(*policy.allow, *map(Allowance, allowed)))
    return tuple(environment.validator.under(policy).plan_violations(plan))


def _applied_schemas(models: Sequence[Securable], applied: Mapping[str, Any]) -> tuple[Schema, ...]:
    """Return the schemas of tables as they were applied last."""
    parents = {parent for table in of_kind(Table, models) for parent in table.qualified_name.parents}
    return tuple(applied[key] for key in sorted(map(resource_key, parents)) if key in applied)


def _others_in(environment: Environment, basis: Observation) -> Mapping[SecurableName, Audit]:
    """Return creation and last change of what is in the project's schemas and scopes, but of tables."""
    scopes = {(policy.scope.kind, policy.scope.key) for policy in of_kind(AbacPolicy, basis.models)}
    others: dict[SecurableName, Audit] = {
        FunctionName(*key.split(".")): state.audit
        for key, state in basis.observed.functions.items()
        if state.exists
    }
    for key, policy in basis.observed.policies.items():
        name = PolicyName.of_key(key)
        if policy.exists and (name.scope.kind, name.scope.key) in scopes:
            others[name] = policy.audit
    others |= {ViewName(*key.split(".")): audit for key, audit in basis.observed.other_views.items()}
    return {name: audit for name, audit in others.items() if matches_any(name, environment.owns)}


def _edit(model: Table, table: ComparedTable, notify: Callable[[str], None]) -> ModelEdit:
    """Return the edit of a model; notify the user of what it cannot accept, such as properties of the environment."""
    if not table.observed.exists:
        return ModelEdit(before=model, after=_under_new_name(model, table))
    after = edited(model, table)
    for detail in reverted_drift(after, table):
        if detail.ignored_by is None:
            notify(
                f"{table.name}: {detail.finding.field} stays declared, and the next sync brings it back: change "
                "defaults.table_properties of the environment, or declare it in the model"
            )
    renames = accepted_renames(model, table)
    for old, new in renames.items():
        if not is_former_name(after, old, new):
            former, name = ".".join(old), ".".join(new)
            notify(
                f"{table.name}: {former} was renamed to {name}, and the model declares {former} as well, so that "
                f"{name} cannot have renamed_from. Rename it by hand in other environments before their next sync"
            )
    columns = {old[0]: new[0] for old, new in renames.items() if len(new) == 1}
    return ModelEdit(before=model, after=after, renames=columns)
