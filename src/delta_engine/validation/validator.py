"""The rules of an environment: the default rules, those that projects add, and the validator that runs them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence, Set
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from typing_extensions import Self

from delta_engine.actions import Action, AlignTable, TablePlan
from delta_engine.actions.policy import NO_POLICY, NeededConsent, Policy
from delta_engine.aspects import declared_fields
from delta_engine.backends.capabilities import Capabilities
from delta_engine.errors import ConfigError, InvalidModelError, RefusedError, SourceLocation, UnsafePlanError
from delta_engine.models import Securable, Table, of_kind
from delta_engine.validation import (
    backfill_rules,
    column_rules,
    constraint_rules,
    function_rules,
    governance_rules,
    layout_rules,
    model_rules,
    plan_rules,
    policy_rules,
    view_rules,
)
from delta_engine.validation.capability_rules import SupportedChanges
from delta_engine.validation.rules import ModelRule, PlanRule, needed_by

DEFAULT_MODEL_RULES: tuple[ModelRule, ...] = (
    model_rules.ValidTableNames(),
    model_rules.UniqueNames(),
    model_rules.NamesLookDifferent(),
    model_rules.RenamedTables(),
    model_rules.TablesHaveColumns(),
    model_rules.ValidColumnNames(),
    model_rules.ChangeFeedNamesAreFree(),
    model_rules.DuplicateColumnNames(),
    column_rules.UnambiguousRenames(),
    column_rules.OneSourceOfValues(),
    column_rules.DefaultsAreConstant(),
    column_rules.GeneratedColumnsFit(),
    column_rules.IdentityColumnsCount(),
    backfill_rules.UsingFits(),
    backfill_rules.FillRangesFit(),
    layout_rules.PartitioningFits(),
    layout_rules.LocationsAreWhole(),
    model_rules.PrimaryKeyColumnsNotNull(),
    constraint_rules.ValidConstraintNames(),
    constraint_rules.UniqueKeyNames(),
    constraint_rules.ForeignKeysFit(),
    constraint_rules.ChecksFit(),
    layout_rules.ClusteringColumnsFit(),
    layout_rules.StatisticsColumnsFit(),
    model_rules.ReadableProperties(),
    model_rules.KnownPropertiesFit(),
    model_rules.KeepsNestedClauses(),
    model_rules.DeclaresOnlyWhatItManages(),
    governance_rules.TagsWithinLimits(),
    governance_rules.RowFiltersFit(),
    governance_rules.ColumnMasksFit(),
    governance_rules.NoChecksUnderProtection(),
    governance_rules.PrivilegesOfTables(),
    governance_rules.SchemasFit(),
    function_rules.FunctionsFit(),
    function_rules.NoCircularCalls(),
    function_rules.FunctionsFitTheirUses(),
    policy_rules.PoliciesFit(),
    policy_rules.PoliciesWithinLimits(),
    policy_rules.PoliciesMeetWell(),
    policy_rules.PoliciesFitTheirTables(),
    view_rules.ViewsFit(),
    view_rules.DocumentedColumnsExist(),
    view_rules.QueriesFindTheirColumns(),
    view_rules.NoCircularViews(),
    view_rules.ViewNamesAreFree(),
)

CONSENT_RULES: tuple[PlanRule, ...] = (
    backfill_rules.NoUnallowedFills(),
    backfill_rules.NoUnallowedRewrites(),
    backfill_rules.NoUnallowedMoves(),
    constraint_rules.NoUnallowedConstraintDrops(),
    plan_rules.NoUnallowedColumnDrops(),
    governance_rules.NoUnallowedExposure(),
    function_rules.NoUnallowedProtectionChanges(),
    view_rules.NoUnallowedViewReplacements(),
)
"""The rules of the changes of existing securables that a policy or a command can allow."""

DEFAULT_PLAN_RULES: tuple[PlanRule, ...] = (
    plan_rules.NoCreateOfPartlyManagedTables(),
    plan_rules.TakenFilesFit(),
    plan_rules.CreatePrimaryKeyColumnsNotNull(),
    plan_rules.NoAddNotNullColumns(),
    plan_rules.NoVoidColumns(),
    plan_rules.NoTightenedFields(),
    plan_rules.OnlyWidenedTypes(),
    backfill_rules.NoBlockedFills(),
    backfill_rules.WithinRewriteLimit(),
    plan_rules.OnlyAtCreation(),
    plan_rules.NoChangeOfFixedColumns(),
    layout_rules.ClusteringColumnsHaveStatistics(),
    plan_rules.NoColumnMappingModeChange(),
    plan_rules.NoCatalogManagedUpgrade(),
    plan_rules.NoContradictedFeatures(),
    plan_rules.PrimaryKeyAddMustNotMakeColumnsNullable(),
    plan_rules.PrimaryKeyNewColumnsMustBeSetNotNull(),
    plan_rules.PrimaryKeyExistingColumnsMustBeSetNotNull(),
    constraint_rules.NoDropOfReferencedPrimaryKeys(),
    constraint_rules.NoTypeChangeUnderForeignKeys(),
    constraint_rules.NoDropOfReferencedTables(),
    *CONSENT_RULES,
    governance_rules.NoExposureBeforeTags(),
    function_rules.NoChangedSignatures(),
    function_rules.NoDropOfUsedFunctions(),
    view_rules.ViewsKeepWhatTheyRead(),
    view_rules.ViewsFindAnOrder(),
    plan_rules.NoUnallowedDrops(),
    plan_rules.NoUnallowedSchemas(),
)


_OF_PLATFORM = (
    SupportedChanges,
    plan_rules.OnlyAtCreation,
    layout_rules.ClusteringColumnsHaveStatistics,
)
"""The rules of plans that differ between platforms."""


def needs_consent(align: AlignTable, action: Action) -> bool:
    """Whether one change of a table is refused, unless a policy or a command allows it."""
    plan = TablePlan((replace(align, actions=(action,)),))
    return any(True for rule in CONSENT_RULES for _ in rule.check(plan, NO_POLICY))


def needed_consents(plan: TablePlan) -> tuple[NeededConsent, ...]:
    """Return each change of a plan that the rules refuse without consent."""
    rules = (*CONSENT_RULES, plan_rules.NoUnallowedDrops())
    return needed_by(refusal for rule in rules for refusal in rule.check(plan, NO_POLICY))


class PlanValidator:
    """Checks models and plans against rules.

    Each validator reads the default rules when it is created: a subclass may override them, and an assignment applies
    to later validators and projects.
    """

    DEFAULT_MODEL_RULES: ClassVar[tuple[ModelRule, ...]] = DEFAULT_MODEL_RULES
    DEFAULT_PLAN_RULES: ClassVar[tuple[PlanRule, ...]] = DEFAULT_PLAN_RULES

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        model_rules: Sequence[ModelRule] | None = None,
        plan_rules: Sequence[PlanRule] | None = None,
    ) -> None:
        self._policy = policy or Policy()
        self._model_rules = tuple(self.DEFAULT_MODEL_RULES if model_rules is None else model_rules)
        self._plan_rules = tuple(self.DEFAULT_PLAN_RULES if plan_rules is None else plan_rules)

    @classmethod
    def default_rules(cls) -> RuleSet:
        """Return the default rules."""
        return RuleSet(models=cls.DEFAULT_MODEL_RULES, plans=cls.DEFAULT_PLAN_RULES)

    def under(self, policy: Policy) -> Self:
        """Return this validator with another policy."""
        other = copy(self)
        other._policy = policy
        return other

    def at(self, now: datetime) -> Self:
        """Return this validator without consents that have expired."""
        return self.under(self._policy.at(now))

    def validate_models(self, models: Sequence[Securable]) -> None:
        """Raise the first `InvalidModelError`, if any."""
        for violation in self.model_violations(models):
            raise violation

    def validate_plan(self, plan: TablePlan) -> None:
        """Raise the first `UnsafePlanError`, if any."""
        for violation in self.plan_violations(plan):
            raise violation

    def model_violations(
        self, models: Sequence[Securable], *, is_whole: bool = True
    ) -> Iterator[InvalidModelError]:
        """Yield every violation, rule by rule; with `is_whole=False`, some rules wait for the other models."""
        subjects = {*map(type, models), *declared_fields(models)}
        for rule in self._model_rules:
            is_ready = is_whole or not getattr(rule, "needs_all_models", False)
            if is_ready and _is_about(rule, subjects):
                yield from rule.check(models)

    def plan_violations(self, plan: TablePlan, *, has_costs: bool = True) -> Iterator[UnsafePlanError]:
        """Yield every violation, rule by rule; a plan without its costs is not judged by the rules that need them."""
        subjects = {*map(type, plan.changes)}
        for rule in self._plan_rules:
            is_ready = has_costs or not getattr(rule, "needs_costs", False)
            if is_ready and _is_about(rule, subjects):
                yield from rule.check(plan, self._policy)


def _is_about(rule: ModelRule | PlanRule, subjects: Set[object]) -> bool:
    about = getattr(rule, "about", None)
    return about is None or not subjects.isdisjoint(about)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """The rules of an environment."""

    models: tuple[ModelRule, ...]
    plans: tuple[PlanRule, ...]

    def on(self, capabilities: Capabilities) -> RuleSet:
        """Return the rules for an opened platform, whose exact capabilities are known."""
        plans = (
            replace(rule, capabilities=capabilities) if isinstance(rule, _OF_PLATFORM) else rule
            for rule in self.plans
        )
        return replace(self, plans=tuple(plans))

    def descriptions(self) -> Iterator[RuleDescription]:
        """Yield a description per rule, in check order."""
        for judges, rules in (("models", self.models), ("plans", self.plans)):
            for rule in rules:
                name, kind = type(rule).__name__, type(rule)
                if isinstance(rule, UserRule):
                    name, kind = rule.reference, type(rule.rule)
                text = " ".join((kind.__doc__ or "").strip().split("\n\n")[0].split())
                yield RuleDescription(name=name, judges=judges, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDescription:
    """A rule as `delta-engine rules` lists it; `judges` is `models` or `plans`, and `name` a class or a reference."""

    name: str
    judges: str
    text: str


_WAY_OUT = (
    "A rule is a class with check(models), which yields InvalidModelError, or check(plan, policy), which "
    "yields UnsafePlanError."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRule:
    """A project's rule of tables or plans, which yields refusals of one type."""

    rule: Any
    refusal: type[RefusedError]
    reference: str
    named_at: SourceLocation

    @property
    def needs_costs(self) -> bool:
        """Whether it judges what plans write, as it says itself."""
        return bool(getattr(self.rule, "needs_costs", False))

    def check(self, *judged: Any) -> Iterator[Any]:
        """Yield the rule's refusals; a failure of the rule, or a yield of another type, is a ConfigError.

        A rule of models judges tables alone.
        """
        given = (of_kind(Table, *judged),) if self.refusal is InvalidModelError else judged
        try:
            for refusal in self.rule.check(*given):
                if not isinstance(refusal, self.refusal):
                    raise TypeError(f"it yields {type(refusal).__name__}, not {self.refusal.__name__}")
                yield refusal
        except RefusedError:
            raise
        except Exception as error:
            raise ConfigError(
                f"rule {self.reference!r} failed: {type(error).__name__}: {error}",
                location=self.named_at,
                way_out=_WAY_OUT,
            ) from error


def add_user_rule(rules: RuleSet, user_rule: object, reference: str, named_at: SourceLocation) -> RuleSet:
    """Return the rules with one more, a rule object or a class without arguments; refuse other objects."""
    rule = user_rule() if isinstance(user_rule, type) else user_rule
    check = getattr(rule, "check", None)
    parameters = len(inspect.signature(check).parameters) if callable(check) else 0
    if parameters == 1:
        model_rule = UserRule(rule=rule, refusal=InvalidModelError, reference=reference, named_at=named_at)
        return RuleSet(models=(*rules.models, model_rule), plans=rules.plans)
    if parameters == 2:
        plan_rule = UserRule(rule=rule, refusal=UnsafePlanError, reference=reference, named_at=named_at)
        return RuleSet(models=rules.models, plans=(*rules.plans, plan_rule))
    raise ConfigError(f"{reference!r} is not a rule", location=named_at, way_out=_WAY_OUT)
