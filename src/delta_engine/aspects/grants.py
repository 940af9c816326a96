"""Grants on the table itself: one statement per principal, and only for privileges that differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

from typing_extensions import assert_never

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, Comparison, RenderContext
from delta_engine.aspects.facet import GRANTS, Facet
from delta_engine.aspects.privileges import (
    PrivilegeChange,
    explain_granted,
    explain_revoked,
    privilege_changes,
    with_observed_privileges,
)
from delta_engine.aspects.rights import takes_grant_option
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Grants, Part, Schema, Table
from delta_engine.sql import sql_grant, sql_revoke
from delta_engine.state.states import SchemaState, TableState


@dataclass(frozen=True, slots=True)
class GrantPrivileges:
    """Grant privileges to a principal; `observed` are those it has already. Both are sorted."""

    phase: ClassVar[Phase] = Phase.CHANGE_GRANTS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    principal: str
    privileges: tuple[str, ...]
    observed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not set(self.privileges) - set(self.observed):
            raise ValueError(f"{self.principal} has these privileges already")


@dataclass(frozen=True, slots=True)
class RevokePrivileges:
    """Revoke privileges, sorted, from a principal: its use of them fails from then on."""

    phase: ClassVar[Phase] = Phase.CHANGE_GRANTS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    principal: str
    privileges: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.privileges:
            raise ValueError(f"revoking privileges of {self.principal} needs at least one")


def diff(comparison: Comparison) -> Iterable[GrantPrivileges | RevokePrivileges]:
    """Yield what to grant per principal, then what to revoke."""
    changes = tuple(_changes(comparison))
    for change in changes:
        if change.granted:
            yield GrantPrivileges(change.principal, change.granted, change.observed)
    for change in changes:
        if change.revoked:
            yield RevokePrivileges(change.principal, change.revoked)


def differences(comparison: Comparison) -> Iterable[GrantPrivileges | RevokePrivileges]:
    """Yield one action per privilege and principal."""
    for change in _changes(comparison):
        for privilege in change.granted:
            yield GrantPrivileges(change.principal, (privilege,), change.observed)
        for privilege in change.revoked:
            yield RevokePrivileges(change.principal, (privilege,))


def render(actions: Sequence[GrantPrivileges | RevokePrivileges], context: RenderContext) -> Iterable[str]:
    """Yield one GRANT or one REVOKE per principal."""
    for action in actions:
        match action:
            case GrantPrivileges(principal, privileges):
                yield sql_grant(context.securable, privileges, principal)
            case RevokePrivileges(principal, privileges):
                yield sql_revoke(context.securable, privileges, principal)
            case other:
                assert_never(other)


def explain(action: GrantPrivileges | RevokePrivileges) -> Iterable[Change]:
    """Yield a line per privilege."""
    match action:
        case GrantPrivileges(principal, privileges):
            yield from explain_granted(principal, privileges)
        case RevokePrivileges(principal, privileges):
            yield from explain_revoked(principal, privileges)
        case other:
            assert_never(other)


def accept(model: Table, observed: TableState, action: GrantPrivileges | RevokePrivileges) -> Table:
    """Return the model with the privileges as they are."""
    grants = with_observed_privileges(model.grants, observed.grants, action.principal, action.privileges)
    return replace(model, grants=grants)


def _changes(comparison: Comparison) -> Iterator[PrivilegeChange]:
    desired, observed = comparison.desired, comparison.observed
    return privilege_changes(
        desired.grants,
        observed.grants,
        [model.grants for model in comparison.ours],
        comparison.policy.grants,
        desired.owner or observed.owner,
    )


def _drift_kind(action: GrantPrivileges | RevokePrivileges) -> DriftKind:
    """Return the kind of drift: a grant is reverted by a revoke, and counts where other grants are removed."""
    return DriftKind.GRANT if isinstance(action, GrantPrivileges) else DriftKind.GRANT_ADDED


FACET: Facet[Table | Schema, TableState | SchemaState, Grants] = Facet(
    key="grants",
    declared=lambda model: model.grants,
    absent=MappingProxyType({}),
    form=GRANTS,
    meaning="lists of [privileges](#tags-owner-and-grants) by principal",
    entry="grant",
    observed=lambda state: state.grants,
    is_imported=False,
    part=Part.GRANTS,
    title="grants",
    feature=Feature.GRANTS,
)

ASPECT: Aspect[GrantPrivileges | RevokePrivileges] = Aspect(
    name="grants",
    part=Part.GRANTS,
    actions={GrantPrivileges: takes_grant_option("GRANT"), RevokePrivileges: takes_grant_option("REVOKE")},
    diff=diff,
    differences=differences,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=_drift_kind,
    completes_create=True,
)
