"""Grants on tables and schemas: one statement per principal, only for privileges that differ.

The policy decides the ownership of undeclared privileges. Principals compare without case. `ALL PRIVILEGES` includes
all others, except those that have to be granted one by one (Databricks docs, "Unity Catalog privileges reference").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

from typing_extensions import assert_never

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import Ownership
from delta_engine.aspects.aspect import (
    AnyComparison,
    AnyContext,
    Aspect,
    Change,
    Securable,
    SecurableState,
    SharedAspect,
    Sign,
)
from delta_engine.aspects.facet import GRANTS, Facet
from delta_engine.aspects.rights import takes_grant_option
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Grants, Part, Schema, Table
from delta_engine.models.parts import by_principal, without_implied
from delta_engine.sql.governance import sql_grant, sql_revoke
from delta_engine.state.states import SchemaState, TableState

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GrantPrivileges:
    """Grant privileges to a principal; `observed` are its present ones. Both are sorted."""

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
    """Revoke privileges (sorted) of a principal, whose access may fail afterwards."""

    phase: ClassVar[Phase] = Phase.CHANGE_GRANTS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    principal: str
    privileges: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.privileges:
            raise ValueError(f"revoking privileges of {self.principal} needs at least one")


@dataclass(frozen=True, slots=True)
class _PrivilegeChange:
    """The differing privileges of one principal, sorted, with its name as the catalog spells it, if known."""

    principal: str
    granted: tuple[str, ...]
    revoked: tuple[str, ...]
    observed: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.granted and not self.revoked:
            raise ValueError(f"{self.principal} has these privileges already")


def diff(comparison: AnyComparison) -> Iterable[GrantPrivileges | RevokePrivileges]:
    """Yield the grants per principal, then the revocations."""
    changes = tuple(_changes(comparison))
    for change in changes:
        if change.granted:
            yield GrantPrivileges(change.principal, change.granted, change.observed)
    for change in changes:
        if change.revoked:
            yield RevokePrivileges(change.principal, change.revoked)


def differences(comparison: AnyComparison) -> Iterable[GrantPrivileges | RevokePrivileges]:
    """Yield one action per privilege and principal."""
    for change in _changes(comparison):
        for privilege in change.granted:
            yield GrantPrivileges(change.principal, (privilege,), change.observed)
        for privilege in change.revoked:
            yield RevokePrivileges(change.principal, (privilege,))


def render(actions: Sequence[GrantPrivileges | RevokePrivileges], context: AnyContext) -> Iterable[str]:
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
            for privilege in privileges:
                yield Change(sign=Sign.ADDED, subject=f"grant {privilege} to {principal}", desired="granted")
        case RevokePrivileges(principal, privileges):
            for privilege in privileges:
                yield Change(
                    sign=Sign.REMOVED, subject=f"grant {privilege} to {principal}", observed="granted"
                )
        case other:
            assert_never(other)


def accept(
    model: Securable, observed: SecurableState, action: GrantPrivileges | RevokePrivileges
) -> Securable:
    """Return the model with the observed privileges."""
    grants = _with_observed_privileges(model.grants, observed.grants, action.principal, action.privileges)
    return replace(model, grants=grants)


def _changes(comparison: AnyComparison) -> Iterator[_PrivilegeChange]:
    desired, observed = comparison.desired, comparison.observed
    return _privilege_changes(
        desired.grants,
        observed.grants,
        [model.grants for model in comparison.ours],
        comparison.policy.grants,
        desired.owner or observed.owner,
    )


def _privilege_changes(
    desired: Grants,
    observed: Grants,
    ours: Iterable[Grants],
    ownership: Ownership,
    owner: str | None,
) -> Iterator[_PrivilegeChange]:
    if not desired and not observed:
        return
    wanted, found, granted = (
        by_principal(desired),
        by_principal(observed),
        [by_principal(grants) for grants in ours],
    )
    names = {name.lower(): name for name in (*desired, *observed)}
    for key in sorted(names):
        asked, held = without_implied(wanted.get(key, _NONE)), found.get(key, _NONE)
        is_ours = ownership is Ownership.FULL and key != (owner or "").lower()
        known = _NONE.union(*(without_implied(grants.get(key, _NONE)) for grants in granted))
        revoked = (held if is_ours else held & known) - asked
        if asked - held or revoked:
            yield _PrivilegeChange(
                names[key], tuple(sorted(asked - held)), tuple(sorted(revoked)), tuple(sorted(held))
            )


def _with_observed_privileges(
    grants: Grants, observed: Grants, principal: str, privileges: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    key, taken = principal.lower(), frozenset(privileges)
    mine = without_implied(by_principal(grants).get(key, _NONE))
    kept = (mine - taken) | (by_principal(observed).get(key, _NONE) & taken)
    spelling = next((name for name in grants if name.lower() == key), principal)
    others = {name: found for name, found in grants.items() if name.lower() != key}
    return {**others, spelling: tuple(sorted(kept))} if kept else others


def _drift_kind(action: GrantPrivileges | RevokePrivileges) -> DriftKind:
    """Return the drift that an action reverts. Added grants are drift only under full ownership."""
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

ASPECT: SharedAspect[GrantPrivileges | RevokePrivileges] = Aspect(
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
