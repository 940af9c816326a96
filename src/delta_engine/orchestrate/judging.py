"""Judges drafts of plans: refusals, costs, consents, and warnings about rights and readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from delta_engine.actions.policy import Consent, NeededConsent, Policy, last_day
from delta_engine.aspects.governed_tables import GovernedPlan
from delta_engine.drift.drifted_resources import DriftRefusal
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import RefusedError
from delta_engine.orchestrate.runs import Environment
from delta_engine.telemetry.context import utc_now
from delta_engine.validation.broken_views import ProjectNames, lost_calls, view_warnings
from delta_engine.validation.model_doubts import plan_doubts
from delta_engine.validation.needed_rights import rights_warnings
from delta_engine.validation.policy_rules import crowded_scopes, ungoverned_tags
from delta_engine.validation.protected_data import tag_warnings
from delta_engine.validation.protection_orders import unsafe_orders
from delta_engine.validation.recent_readers import lineage_warnings
from delta_engine.validation.rules import ConsentRefusal, needed_by
from delta_engine.validation.validator import needed_consents
from delta_engine.validation.view_rules import cast_types


def judged(environment: Environment, draft: PlannedRun) -> PlannedRun:
    """Return a planned run with its refusals, its costs, and warnings about rights and readers.

    The questions that cost statements on tables are asked only if nothing refuses the plan without them.
    """
    planned = _with_verdict(environment, draft)
    warnings = [*plan_doubts(planned.plan, planned.intent.models)]
    warnings += cast_types(planned.plan, planned.intent.models, planned.snapshot)
    warnings += tag_warnings(planned.plan, planned.intent.tables, planned.snapshot)
    if environment.principals is not None:
        warnings += rights_warnings(environment.principals, planned.plan, planned.snapshot)
    warnings += view_warnings(environment.views, planned.plan, _names(planned))
    warnings += lineage_warnings(environment.lineage, planned.plan, now=utc_now())
    return replace(planned, judged_warnings=(*warnings, *planned.judged_warnings))


def judged_with_consents(
    environment: Environment, draft: PlannedRun, consents: Sequence[Consent], judged: PlannedRun
) -> PlannedRun:
    """Return the verdict on a draft with other consents, from the snapshot that it was made from.

    Of the first judgement remain the warnings. Tables are asked what it did not ask because it refused the plan.
    """
    policy = replace(draft.intent.policy, consents=tuple(consents))
    environment = replace(environment, validator=environment.validator.under(policy))
    intent = replace(draft.intent, planner=replace(draft.intent.planner, policy=policy))
    planned = _with_verdict(environment, replace(draft, intent=intent))
    warnings = dict.fromkeys((*judged.judged_warnings, *planned.judged_warnings))
    return replace(planned, judged_warnings=tuple(warnings))


def _with_verdict(environment: Environment, draft: PlannedRun) -> PlannedRun:
    now = utc_now()
    governed = GovernedPlan(draft.plan, draft.snapshot)
    needed = [*needed_consents(draft.plan)]
    violations = [
        *environment.validator.at(now).plan_violations(draft.plan, has_costs=False),
        *crowded_scopes(draft.plan, draft.snapshot),
        *unsafe_orders(governed),
        *lost_calls(environment.views, draft.plan, _names(draft)),
    ]
    draft = replace(draft, refusals=(*draft.refusals, *_without_covered(violations, draft.refusals)))
    if not draft.refusals:
        draft, of_tables = _asked(environment, draft, governed, now)
        needed += of_tables
    given = [consent for consent in draft.intent.policy.consents if any(map(consent.covers, needed))]
    return replace(
        draft,
        consents=tuple(consent for consent in given if not consent.is_expired(now)),
        consent_entries=_consent_entries(environment, needed_by(draft.refusals), now),
        judged_warnings=(
            *draft.judged_warnings,
            *(f"{consent.location}: {consent.expiry_note}" for consent in given if consent.is_expired(now)),
        ),
    )


def _names(planned: PlannedRun) -> ProjectNames:
    recorded = tuple(record.name for record in planned.basis.resources.values())
    return ProjectNames(planned.intent.models, recorded, planned.basis.is_partial)


def _without_covered(
    violations: Iterable[RefusedError], refusals: Sequence[RefusedError]
) -> Iterator[RefusedError]:
    """Yield violations, except consents that do not help as long as accepted drift refuses the same change."""
    covered = {
        change for refusal in refusals if isinstance(refusal, DriftRefusal) for change in refusal.covers
    }
    for violation in violations:
        if not (isinstance(violation, ConsentRefusal) and covered.issuperset(violation.needed)):
            yield violation


def _asked(
    environment: Environment, draft: PlannedRun, governed: GovernedPlan, now: datetime
) -> tuple[PlannedRun, Sequence[NeededConsent]]:
    """Ask for costs, policies and queries of views, then for rows, unless the answers refuse the plan by then.

    Returns:
        the planned run with costs and refusals, and the consents that policies (ABAC) make necessary.
    """
    plan = environment.costs.with_costs(draft.plan, draft.snapshot) if environment.costs else draft.plan
    refusals: list[RefusedError] = [*environment.validator.at(now).plan_violations(plan)]
    needed: Sequence[NeededConsent] = ()
    if environment.protected_data is not None:
        policy = draft.intent.policy.at(now)
        protected = environment.protected_data.refusals(governed, draft.intent.tables, policy)
        refusals += (refusal for refusal in protected if not _is_allowed(refusal, policy))
        needed = needed_by(protected)
    refusals += ungoverned_tags(plan, environment.governed_tags)
    warnings: Sequence[str] = ()
    if environment.analysis is not None:
        refused, warnings = environment.analysis.judge(plan, draft.intent.models, draft.snapshot)
        refusals += refused
    if environment.preflight is not None and not refusals:
        refusals += environment.preflight.refusals(plan, draft.intent.tables, draft.basis.observed)
    return replace(draft, plan=plan, refusals=tuple(refusals), judged_warnings=tuple(warnings)), needed


def _consent_entries(environment: Environment, needed: Sequence[NeededConsent], now: datetime) -> str:
    if not needed or environment.entries is None:
        return ""
    return environment.entries(last_day(now)).consents(needed)


def _is_allowed(refusal: RefusedError, policy: Policy) -> bool:
    needed = needed_by([refusal])
    return bool(needed) and all(
        policy.allows(change.kind, change.securable, change.part) for change in needed
    )
