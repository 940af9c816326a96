"""Reports drift, and adds reports to their history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Allowance, DestructiveKind, last_day, matches_any
from delta_engine.aspects.protection import HISTORY_HIDDEN, is_protected
from delta_engine.deployment.document import DeploymentState
from delta_engine.drift.absences import may_be_hidden
from delta_engine.drift.attribution import with_audited_authors
from delta_engine.drift.drift_report import DriftReport
from delta_engine.drift.drifted_resources import ComparedResource, is_table
from delta_engine.drift.observation import DriftFacts, Observation, PlannedRevert
from delta_engine.drift.renames import renamed_notes, with_taken_renames
from delta_engine.drift.reporting import drift_report
from delta_engine.errors import (
    RefusedError,
    StatementError,
)
from delta_engine.models import (
    AbacPolicy,
    FunctionName,
    PolicyName,
    Securable,
    SecurableName,
    ViewName,
    labelled,
    of_kind,
    resource_key,
)
from delta_engine.models.constraints import resolved
from delta_engine.orchestrate.observing import detected_drift, drift_detector, observe
from delta_engine.orchestrate.planning import draft_revert
from delta_engine.orchestrate.runs import NOT_STARTED, Environment
from delta_engine.ownership.recorded_models import declared_by
from delta_engine.report.pages import drift_html
from delta_engine.state.audits import Audit
from delta_engine.telemetry.context import new_id, utc_now
from delta_engine.validation.rules import needed_by

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


def _facts(
    environment: Environment, models: Sequence[Securable], state: DeploymentState | None, *, is_partial: bool
) -> DriftFacts:
    basis = observe(
        environment,
        models,
        state,
        is_partial=is_partial,
        tolerates_unreadable=True,
    )
    now, detector = utc_now(), drift_detector(environment)
    drifted = detected_drift(environment, basis, now=now)
    managed = {
        *map(resource_key, environment.own_tables),
        *(resource_key(model.qualified_name) for model in basis.models),
        *declared_by(basis.resources),
    }
    return DriftFacts(
        environment=environment.name,
        checked_at=now,
        basis=replace(basis, records=with_taken_renames(basis.records, basis.tables, drifted)),
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
