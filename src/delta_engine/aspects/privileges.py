"""Privileges, on whatever object: those that a model names. The policy decides the ownership of all others.

Principals compare without case. `ALL PRIVILEGES` includes all others, except those that have to be granted one by one
(Databricks documentation, "Unity Catalog privileges reference").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from delta_engine.actions.policy import Ownership
from delta_engine.aspects.aspect import Change, Sign
from delta_engine.models.parts import Grants, by_principal, without_implied

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PrivilegeChange:
    """The privileges of one principal that differ, each sorted.

    Args:
        principal: as the catalog spells it, if it has it.
        observed: the privileges that it has.
    """

    principal: str
    granted: tuple[str, ...]
    revoked: tuple[str, ...]
    observed: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.granted and not self.revoked:
            raise ValueError(f"{self.principal} has these privileges already")


def privilege_changes(
    desired: Grants,
    observed: Grants,
    ours: Iterable[Grants],
    ownership: Ownership,
    owner: str | None,
) -> Iterator[PrivilegeChange]:
    """Yield a change per principal whose privileges differ, sorted by principal.

    Args:
        ours: the grants of models that this engine applied.
        ownership: decides about grants that no model names.
        owner: the owner in the end; its rights are not revoked.
    """
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
            yield PrivilegeChange(
                names[key], tuple(sorted(asked - held)), tuple(sorted(revoked)), tuple(sorted(held))
            )


def explain_granted(principal: str, privileges: Iterable[str]) -> Iterator[Change]:
    """Yield a line per privilege."""
    for privilege in privileges:
        yield Change(sign=Sign.ADDED, subject=f"grant {privilege} to {principal}", desired="granted")


def explain_revoked(principal: str, privileges: Iterable[str]) -> Iterator[Change]:
    """Yield a line per privilege."""
    for privilege in privileges:
        yield Change(sign=Sign.REMOVED, subject=f"grant {privilege} to {principal}", observed="granted")


def with_observed_privileges(
    grants: Grants, observed: Grants, principal: str, privileges: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Return a model's grants with the observed side of some privileges of a principal."""
    key, taken = principal.lower(), frozenset(privileges)
    mine = without_implied(by_principal(grants).get(key, _NONE))
    kept = (mine - taken) | (by_principal(observed).get(key, _NONE) & taken)
    spelling = next((name for name in grants if name.lower() == key), principal)
    others = {name: found for name, found in grants.items() if name.lower() != key}
    return {**others, spelling: tuple(sorted(kept))} if kept else others
