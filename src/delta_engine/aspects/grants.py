"""Grants on tables, schemas, functions and views: one statement per principal, only for privileges that differ.

The policy decides the ownership of undeclared privileges. Principals compare without case. `ALL PRIVILEGES` includes
all others, except those that have to be granted one by one (Databricks docs, "Unity Catalog privileges reference").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, NamedTuple, TypeAlias

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import Ownership
from delta_engine.aspects.aspect import Aspect, Change, OwnedContext, Requirement, Right, SharedAspect
from delta_engine.aspects.comparison import Owned, OwnedComparison, OwnedState
from delta_engine.aspects.facet import GRANTS, Facet
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Grants, Part
from delta_engine.models.parts import by_principal, without_implied
from delta_engine.sql.governance import sql_grant, sql_revoke

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


_Action: TypeAlias = GrantPrivileges | RevokePrivileges


class _Changed(NamedTuple):
    """The differing privileges of one principal, sorted, with its name as the catalog spells it, if known."""

    principal: str
    granted: tuple[str, ...]
    revoked: tuple[str, ...]
    observed: tuple[str, ...]


def _diff(comparison: OwnedComparison) -> Iterable[_Action]:
    changes = tuple(_changes(comparison))
    for change in changes:
        if change.granted:
            yield GrantPrivileges(change.principal, change.granted, change.observed)
    for change in changes:
        if change.revoked:
            yield RevokePrivileges(change.principal, change.revoked)


def _differences(comparison: OwnedComparison) -> Iterable[_Action]:
    for change in _changes(comparison):
        yield from (GrantPrivileges(change.principal, (right,), change.observed) for right in change.granted)
        yield from (RevokePrivileges(change.principal, (right,)) for right in change.revoked)


def _changes(comparison: OwnedComparison) -> Iterator[_Changed]:
    desired, observed = comparison.desired, comparison.observed
    if not desired.grants and not observed.grants:
        return
    desired_rights, observed_rights = by_principal(desired.grants), by_principal(observed.grants)
    ours = [by_principal(model.grants) for model in comparison.ours]
    owner = (desired.owner or observed.owner or "").lower()
    names = {name.lower(): name for name in (*desired.grants, *observed.grants)}
    for key in sorted(names):
        asked, held = without_implied(desired_rights.get(key, _NONE)), observed_rights.get(key, _NONE)
        is_ours = comparison.policy.grants is Ownership.FULL and key != owner
        declared_rights = _NONE.union(*(without_implied(grants.get(key, _NONE)) for grants in ours))
        revoked = (held if is_ours else held & declared_rights) - asked
        if asked - held or revoked:
            yield _Changed(
                names[key], tuple(sorted(asked - held)), tuple(sorted(revoked)), tuple(sorted(held))
            )


def _render(actions: Sequence[_Action], context: OwnedContext) -> Iterable[str]:
    for action in actions:
        sql = sql_grant if isinstance(action, GrantPrivileges) else sql_revoke
        yield sql(context.securable, action.privileges, action.principal)


def _explain(action: _Action) -> Iterable[Change]:
    for privilege in action.privileges:
        subject = f"grant {privilege} to {action.principal}"
        if isinstance(action, GrantPrivileges):
            yield Change(subject, desired="granted")
        else:
            yield Change(subject, observed="granted")


def _accept(model: Owned, observed: OwnedState, action: _Action) -> Owned:
    key, taken = action.principal.lower(), frozenset(action.privileges)
    mine = without_implied(by_principal(model.grants).get(key, _NONE))
    kept = (mine - taken) | (by_principal(observed.grants).get(key, _NONE) & taken)
    spelling = next((name for name in model.grants if name.lower() == key), action.principal)
    others = {name: rights for name, rights in model.grants.items() if name.lower() != key}
    return replace(model, grants={**others, spelling: tuple(sorted(kept))} if kept else others)


def _drift_kind(action: _Action) -> DriftKind:
    """Return the drift that an action reverts. Added grants are drift only under full ownership."""
    return DriftKind.GRANT if isinstance(action, GrantPrivileges) else DriftKind.GRANT_ADDED


def _takes_grant_option(statement: str) -> Requirement:
    return Requirement(
        statement=statement,
        right=Right.MANAGE,
        demands="ownership of the object, its schema or its catalog, or `MANAGE`",
        source="Manage privileges in Unity Catalog",
        owners_above=True,
    )


FACET: Facet[Owned, OwnedState, Grants] = Facet(
    key="grants",
    declared=lambda model: model.grants,
    observed=lambda state: state.grants,
    absent=MappingProxyType({}),
    form=GRANTS,
    meaning="lists of [privileges](#tags-owner-and-grants) by principal",
    entry="grant",
    is_imported=False,
    part=Part.GRANTS,
    title="grants",
    feature=Feature.GRANTS,
)

ASPECT: SharedAspect[_Action] = Aspect(
    name="grants",
    part=Part.GRANTS,
    actions={GrantPrivileges: _takes_grant_option("GRANT"), RevokePrivileges: _takes_grant_option("REVOKE")},
    diff=_diff,
    differences=_differences,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=_drift_kind,
    is_in_history=False,
    completes_create=True,
)
