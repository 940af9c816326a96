"""Rules of a project (`policy.rules`): the same protocols as the engine's rules, with contained failures."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.errors import ConfigError, InvalidModelError, RefusedError, SourceLocation, UnsafePlanError
from delta_engine.models import Table
from delta_engine.validation.rules import ModelRule, PlanRule, RuleSet

_WAY_OUT = (
    "A rule is a class with check(models), which yields InvalidModelError, or check(plan, policy), which "
    "yields UnsafePlanError."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _UserRule:
    rule: Any
    reference: str
    named_at: SourceLocation

    def refusals(self, found: type[RefusedError], *judged: object) -> Iterator[Any]:
        """Yield the rule's refusals; a failure of the rule, or a yield of another type, is a ConfigError."""
        try:
            for refusal in self.rule.check(*judged):
                if not isinstance(refusal, found):
                    raise TypeError(f"it yields {type(refusal).__name__}, not {found.__name__}")
                yield refusal
        except RefusedError:
            raise
        except Exception as error:
            raise ConfigError(
                f"rule {self.reference!r} failed: {type(error).__name__}: {error}",
                location=self.named_at,
                way_out=_WAY_OUT,
            ) from error


class UserModelRule(_UserRule):
    """A project's model rule."""

    def check(self, models: Sequence[Table]) -> Iterable[InvalidModelError]:
        """Yield its refusals."""
        return self.refusals(InvalidModelError, models)


class UserPlanRule(_UserRule):
    """A project's plan rule."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterable[UnsafePlanError]:
        """Yield its refusals."""
        return self.refusals(UnsafePlanError, plan, policy)


def add_user_rule(rules: RuleSet, found: object, reference: str, named_at: SourceLocation) -> RuleSet:
    """Return the rules with one more, a rule object or a class without arguments; refuse other objects."""
    rule = found() if isinstance(found, type) else found
    check = getattr(rule, "check", None)
    parameters = len(inspect.signature(check).parameters) if callable(check) else 0
    if parameters == 1:
        model_rule: ModelRule = UserModelRule(rule=rule, reference=reference, named_at=named_at)
        return RuleSet(models=(*rules.models, model_rule), plans=rules.plans)
    if parameters == 2:
        plan_rule: PlanRule = UserPlanRule(rule=rule, reference=reference, named_at=named_at)
        return RuleSet(models=rules.models, plans=(*rules.plans, plan_rule))
    raise ConfigError(f"{reference!r} is not a rule", location=named_at, way_out=_WAY_OUT)
