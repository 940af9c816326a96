"""What a rule is, and the list of those that hold by default.

A rule yields refusals, each with the reason and the way out; who raises the first, or shows them all, is
the validator's business. A new rule is a class with `check`, an entry here, and its cases in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from delta_engine.actions import TablePlan
from delta_engine.errors import InvalidModelError, UnsafePlanError
from delta_engine.models import Table
from delta_engine.policy import Policy
from delta_engine.validation import model_rules, plan_rules


class ModelRule(Protocol):
    """A check of declared tables."""

    def check(self, models: Sequence[Table]) -> Iterable[InvalidModelError]:
        """Yield a refusal per violation."""
        ...


class PlanRule(Protocol):
    """A check of a plan, before any of it runs."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterable[UnsafePlanError]:
        """Yield a refusal per violation that the policy does not allow."""
        ...


DEFAULT_MODEL_RULES: tuple[ModelRule, ...] = (
    model_rules.ValidTableNames(),
    model_rules.UniqueTables(),
    model_rules.TablesHaveColumns(),
    model_rules.ValidColumnNames(),
    model_rules.DuplicateColumnNames(),
    model_rules.PrimaryKeyColumnsNotNull(),
    model_rules.ClusteringColumnsFit(),
    model_rules.ReadableProperties(),
    model_rules.KeepsNestedClauses(),
)

DEFAULT_PLAN_RULES: tuple[PlanRule, ...] = (
    plan_rules.CreatePrimaryKeyColumnsNotNull(),
    plan_rules.NoAddNotNullColumns(),
    plan_rules.OnlyWidenedTypes(),
    plan_rules.NoColumnMappingModeChange(),
    plan_rules.PrimaryKeyAddMustNotMakeColumnsNullable(),
    plan_rules.PrimaryKeyNewColumnsMustBeSetNotNull(),
    plan_rules.PrimaryKeyExistingColumnsMustBeSetNotNull(),
    plan_rules.NoUnallowedColumnDrops(),
    plan_rules.NoUnallowedSchemas(),
)
