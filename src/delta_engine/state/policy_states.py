"""Policies (ABAC) as the catalog has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Final

from delta_engine.errors import SourceLocation
from delta_engine.models.columns import Column
from delta_engine.models.parts import set_fields
from delta_engine.models.policies import AbacPolicy, PolicyName, Protection
from delta_engine.state.audits import NO_AUDIT, Audit


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyState:
    """One policy as the catalog has it; the fields are those of `AbacPolicy`.

    Args:
        exists: False for a missing policy; all other fields are then empty.
        protection: None for a missing policy.
        when: None for every table, as for a model.
    """

    columns: ClassVar[tuple[Column, ...]] = ()
    exists: bool = True
    protection: Protection | None = None
    to: tuple[str, ...] = ()
    excepted: tuple[str, ...] = ()
    match: Mapping[str, str] = field(default_factory=dict)
    when: str | None = None
    comment: str = ""
    audit: Audit = field(default=NO_AUDIT, compare=False)

    def __post_init__(self) -> None:
        set_fields(self, match=MappingProxyType(dict(self.match)))


ABSENT_POLICY = PolicyState(exists=False)

EVERY_POLICY: Final = "*"
"""The name that stands for every policy on a scope."""


def policy_of(name: PolicyName, state: PolicyState, declared_at: SourceLocation) -> AbacPolicy:
    """Return the model that an existing policy matches."""
    assert state.protection is not None
    return AbacPolicy(
        name.policy,
        name.scope,
        state.protection,
        state.to,
        excepted=state.excepted,
        match=state.match,
        when=state.when,
        comment=state.comment,
        declared_at=declared_at,
    )


def policy_state_of(policy: AbacPolicy) -> PolicyState:
    """Return the state of a policy that is exactly as its model declares it."""
    return PolicyState(
        protection=policy.protection,
        to=policy.to,
        excepted=policy.excepted,
        match=policy.match,
        when=policy.when,
        comment=policy.comment,
    )
