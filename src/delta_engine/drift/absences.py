"""Whether missing tables and schemas were deleted, or may be hidden from the principal.

Unity Catalog shows a principal only what it has privileges on (docs.databricks.com: "Information schema"). So a missing
table counts as deleted only if known rights would show it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from delta_engine.aspects import kind_of
from delta_engine.aspects.aspect import Right
from delta_engine.backends.capabilities import Visibility
from delta_engine.drift.drifted_resources import Absence, ComparedResource
from delta_engine.errors import StatementError
from delta_engine.models import SecurableName, resource_key
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.states import CatalogState
from delta_engine.telemetry.context import command
from delta_engine.telemetry.visible import joined
from delta_engine.validation.needed_rights import Need, RightsAtHand, SecurableObject, rights_at_hand

_NO_RIGHTS: Final = "the catalog does not show what you may see"


def with_absences(
    drifted: Sequence[ComparedResource],
    observed: CatalogState,
    *,
    declared: Collection[str],
    visibility: Visibility,
    principals: PrincipalReader | None,
) -> tuple[ComparedResource, ...]:
    """Return drift that says of each missing schema and declared table whether it may be hidden.

    Only these cost statements: one or two for all of them.

    Args:
        declared: the declared securables, by resource key. Others were retired.
        principals: None where rights cannot be read.
    """
    missing = [
        resource.name
        for resource in drifted
        if not resource.observed.exists
        and resource.renamed_to is None
        and (resource.name.is_container or resource.model_key in declared)
    ]
    if not missing or visibility is Visibility.WHOLE:
        return tuple(drifted)
    absences = _absences(missing, principals, observed)
    return tuple(
        resource.with_findings(partial(replace, absence=absences[resource.key]))
        if resource.key in absences
        else resource
        for resource in drifted
    )


def may_be_hidden(drifted: ComparedResource) -> bool:
    """Whether a missing table or schema may exist, hidden from the principal."""
    return any(detail.finding.may_be_hidden for detail in drifted.details)


def lacking_rights(drifted: ComparedResource) -> list[str]:
    """Return the rights that would show a missing table or schema; none if it is not hidden."""
    absences = (detail.finding.absence for detail in drifted.details if detail.finding.may_be_hidden)
    return [*dict.fromkeys(right for absence in absences if absence for right in absence.lacking)]


def without_hidden(
    drifted: Iterable[ComparedResource], notify: Callable[[str], None]
) -> list[ComparedResource]:
    """Return drift without missing tables and schemas that may be hidden, of which it notifies."""
    resources = [*drifted]
    for note in hidden_notes(resources):
        notify(note)
    return [resource for resource in resources if not may_be_hidden(resource)]


def hidden_notes(drifted: Iterable[ComparedResource]) -> Iterator[str]:
    """Yield what to do about missing tables and schemas that may be hidden: a note per right, and a common one."""
    hidden: dict[str, list[str]] = {}
    for resource in drifted:
        if lacking := lacking_rights(resource):
            hidden.setdefault(joined(lacking), []).append(str(resource.name))
    for rights, names in hidden.items():
        yield f"{', '.join(names)} may be hidden from you. Ask for {rights}, and run the command again"
    if hidden:
        yield (
            f"What is gone: remove its model and run {command('state rm')}, or create it again with "
            f"{command('drift --revert -t TABLE')}. {command('drift --accept')} keeps its model"
        )


def _absences(
    names: Iterable[SecurableName], principals: PrincipalReader | None, observed: CatalogState
) -> Mapping[str, Absence]:
    needs = {resource_key(name): _needs(name, observed.missing_schemas) for name in names}
    if principals is None:
        return {key: _unknown(needed, _NO_RIGHTS) for key, needed in needs.items()}
    try:
        at_hand = rights_at_hand(principals, [need for needed in needs.values() for need in needed], observed)
    except StatementError as error:
        reason = f"your rights cannot be read: {error.first_line.rstrip('.')}"
        return {key: _unknown(needed, reason) for key, needed in needs.items()}
    return {key: _absence(at_hand, needed) for key, needed in needs.items()}


def _needs(name: SecurableName, missing_schemas: Collection[tuple[str, str]]) -> tuple[Need, ...]:
    """Return the rights that show everything of the kind in the parent.

    Access also needs USE of all parents, which the owner of a schema does not have in the catalog by itself
    (docs.databricks.com: "Unity Catalog permissions model concepts").
    """
    catalog = SecurableObject((name.catalog,))
    parent = SecurableObject(tuple(str(name.parents[0]).split("."))) if name.parents else catalog
    shown_by = kind_of(name).shown_by
    needs = [Need(securable=parent, right=right, owners_above=True) for right in shown_by]
    needs.append(Need(securable=catalog, right=Right.USE_CATALOG))
    if Right.USE_SCHEMA in shown_by and tuple(parent.levels[0].split(".")) in missing_schemas:
        needs.append(Need(securable=catalog, right=Right.USE_SCHEMA))
    return tuple(needs)


def _absence(at_hand: RightsAtHand, needed: Sequence[Need]) -> Absence:
    who, lacking = at_hand.principal.name, at_hand.lacking(needed)
    if lacking:
        need = lacking[0]
        reason = f"{who} is not known to own {need.securable} or to have {need.right.privilege} on it"
        return _unknown(lacking, reason)
    shown = needed[0]
    used = "it and its catalog" if len(shown.securable.parts) > 1 else "it"
    reason = f"{who} owns {shown.securable}, or has {shown.right.privilege} on it, and may use {used}"
    return Absence(may_be_hidden=False, reason=reason)


def _unknown(lacking: Iterable[Need], reason: str) -> Absence:
    rights = tuple(f"{need.right.privilege} on {need.securable}" for need in lacking)
    return Absence(may_be_hidden=True, reason=reason, lacking=rights)
