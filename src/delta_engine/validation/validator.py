"""Runs the rules, and raises the first refusal or lists all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.errors import InvalidModelError, UnsafePlanError
from delta_engine.models import Table
from delta_engine.validation import rules
from delta_engine.validation.rules import ModelRule, PlanRule, RuleSet


class PlanValidator:
    """Checks models and plans against rules.

    Each validator reads the default rules when it is created: a subclass may override them, and an assignment applies
    to later validators and projects.
    """

    DEFAULT_MODEL_RULES: ClassVar[tuple[ModelRule, ...]] = rules.DEFAULT_MODEL_RULES
    DEFAULT_PLAN_RULES: ClassVar[tuple[PlanRule, ...]] = rules.DEFAULT_PLAN_RULES

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

    def validate_models(self, models: Sequence[Table]) -> None:
        """Raise the first `InvalidModelError`, if any."""
        for violation in self.model_violations(models):
            raise violation

    def validate_plan(self, plan: TablePlan) -> None:
        """Raise the first `UnsafePlanError`, if any."""
        for violation in self.plan_violations(plan):
            raise violation

    def model_violations(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Yield every violation, rule by rule."""
        for rule in self._model_rules:
            yield from rule.check(models)

    def plan_violations(self, plan: TablePlan) -> Iterator[UnsafePlanError]:
        """Yield every violation, rule by rule."""
        for rule in self._plan_rules:
            yield from rule.check(plan, self._policy)
