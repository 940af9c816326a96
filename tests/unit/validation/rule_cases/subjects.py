"""What the cases of the rules are about: `dev.silver.orders` and what protects it, declared at `models.yml:7`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

from delta_engine.actions import Action, Align, AlignTable, TablePlan
from delta_engine.aspects import diff
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.function_definition import FunctionUse, ReplaceFunction
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.errors import SourceLocation
from delta_engine.models import (
    AbacPolicy,
    Column,
    Function,
    Parameter,
    PolicyMask,
    PolicyScope,
    Securable,
    Table,
)
from delta_engine.state.function_states import function_state_of
from delta_engine.state.policy_states import policy_state_of
from delta_engine.validation.rules import ModelRule, PlanRule
from tests.builders.models import ORDERS

ModelCase: TypeAlias = tuple[ModelRule, Sequence[Securable]]
"""A rule, and models that it refuses."""

PlanCase: TypeAlias = tuple[PlanRule, TablePlan, TablePlan]
"""A rule, a plan that it refuses, and a plan that it lets pass."""

HERE = SourceLocation("models.yml", 7)
ID = Column("id", "bigint", is_nullable=False)


def model(*columns: Column, table: str = "orders", **rest: Any) -> Table:
    placed = [replace(column, declared_at=HERE) for column in columns]
    return Table("dev", "silver", table, placed, declared_at=HERE, **rest)


def function(name: str = "mask_email", **changes: Any) -> Function:
    arguments: dict[str, Any] = {
        "returns": "string",
        "body": "upper(email)",
        "parameters": [Parameter("email", "string")],
        **changes,
    }
    return Function("dev", "governance", name, declared_at=HERE, **arguments)


def policy(name: str = "mask_pii", **changes: Any) -> AbacPolicy:
    arguments: dict[str, Any] = {
        "scope": PolicyScope("schema", "dev.silver"),
        "protection": PolicyMask("dev.governance.mask_email", "mail"),
        "to": ["account users"],
        "match": {"mail": "has_tag_value('pii', 'email')"},
        **changes,
    }
    return AbacPolicy(name, declared_at=HERE, **arguments)


def replaced(*uses: FunctionUse, **changes: Any) -> TablePlan:
    """Return a plan that replaces `mask_email`, whose model has the changes."""
    desired = function(**changes)
    observed = function_state_of(function())
    (action,) = diff(Comparison.of(desired, observed))
    assert isinstance(action, ReplaceFunction)
    return TablePlan((Align(desired.qualified_name, (replace(action, uses=uses),), HERE),))


def replaced_policy(former: Mapping[str, Any] = MappingProxyType({}), **changes: Any) -> TablePlan:
    """Return a plan that replaces `mask_pii`; the model has the changes, and the catalog those of `former`."""
    desired = policy(**changes)
    (action,) = diff(Comparison.of(desired, policy_state_of(policy(**former))))
    return TablePlan((Align(desired.qualified_name, (action,), HERE),))


def aligned(*actions: Action) -> TablePlan:
    return TablePlan((AlignTable(ORDERS, actions, HERE),))


def tightened(*names: str) -> Iterable[ColumnNullabilityChange]:
    return [ColumnNullabilityChange(name, make_nullable=False) for name in names]
