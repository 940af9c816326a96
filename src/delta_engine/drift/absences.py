"""Whether missing tables and schemas were deleted, or may be hidden from the principal.

Unity Catalog shows a principal only what it has privileges on (docs.databricks.com: "Information schema"). So a missing
table counts as deleted only if known rights would show it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from delta_engine.aspects.aspect import Right
from delta_engine.backends.capabilities import Visibility
from delta_engine.drift.drifted_resources import Absence, DriftedResource, is_schema
from delta_engine.errors import StatementError
from delta_engine.models import QualifiedName, SchemaName
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.states import CatalogState
from delta_engine.telemetry.context import command
from delta_engine.validation.needed_rights import Need, RightsAtHand, Securable, Verdict, rights_at_hand

_NO_RIGHTS: Final = "the catalog does not show what you may see"


def with_absences(
    drifted: Sequence[DriftedResource],
    observed: CatalogState,
    *,
    declared: Collection[str],
    visibility: Visibility,
    principals: PrincipalReader | None,
) -> tuple[DriftedResource, ...]:
    """Return drift that says of each missing schema and declared table whether it may be hidden.

    Only these cost statements: one or two for all of them.

    Args:
        declared: the keys of the declared tables. Others were retired.
        principals: None where rights cannot be read.
    """
    missing = [
        one.name
        for one in drifted
        if not one.observed.exists and (is_schema(one) or one.model_name.key in declared)
    ]
    if not missing or visibility is Visibility.WHOLE:
        return tuple(drifted)
    absences = _absences(missing, principals, observed)
    return tuple(
        _with_absence(one, absences[one.name.key]) if one.name.key in absences else one for one in drifted
    )


def may_be_hidden(drifted: DriftedResource) -> bool:
    """Whether a missing table or schema may exist, hidden from the principal."""
    return any(detail.finding.may_be_hidden for detail in drifted.details)


def hidden_notes(drifted: Iterable[DriftedResource]) -> Iterator[str]:
    """Yield what to do about missing tables and schemas that may be hidden: a note per parent, and one for all."""
    hidden: dict[str, list[str]] = {}
    for one in filter(may_be_hidden, drifted):
        (need, *_) = _needs(one.name, ())
        hidden.setdefault(f"{need.right.privilege} on {need.securable}", []).append(str(one.name))
    for right, names in hidden.items():
        yield f"Ask for {right}, and run it again: this may be hidden from you: {', '.join(names)}"
    if hidden:
        by_hand = f"remove its model by hand and run {command('state rm')}"
        yield f"If it is gone, {by_hand}, or run {command('drift --revert')}: --accept leaves it"


def _with_absence(drifted: DriftedResource, absence: Absence) -> DriftedResource:
    details = tuple(
        replace(detail, finding=replace(detail.finding, absence=absence)) for detail in drifted.details
    )
    return replace(drifted, details=details)


def _absences(
    names: Iterable[QualifiedName | SchemaName], principals: PrincipalReader | None, observed: CatalogState
) -> Mapping[str, Absence]:
    needs = {name.key: _needs(name, observed.missing_schemas) for name in names}
    if principals is None:
        return dict.fromkeys(needs, Absence(may_be_hidden=True, reason=_NO_RIGHTS))
    try:
        at_hand = rights_at_hand(principals, [need for wanted in needs.values() for need in wanted], observed)
    except StatementError as error:
        reason = f"your rights cannot be read: {error.first_line.rstrip('.')}"
        return dict.fromkeys(needs, Absence(may_be_hidden=True, reason=reason))
    return {key: _absence(at_hand, wanted) for key, wanted in needs.items()}


def _needs(name: QualifiedName | SchemaName, missing_schemas: Iterable[tuple[str, str]]) -> list[Need]:
    """Return the rights that show everything of the kind in the parent. Tables inherit SELECT of their schema."""
    parent = _parent(name)
    if isinstance(name, SchemaName):
        return [Need(securable=parent, right=Right.USE_SCHEMA)]
    needs = [Need(securable=parent, right=Right.SELECT, owners_above=True)]
    if tuple(parent.levels[0].split(".")) in {*missing_schemas}:
        needs += _needs(SchemaName(*parent.parts), ())
    return needs


def _parent(name: QualifiedName | SchemaName) -> Securable:
    return Securable((name.catalog, name.schema) if isinstance(name, QualifiedName) else (name.catalog,))


def _absence(at_hand: RightsAtHand, wanted: Iterable[Need]) -> Absence:
    who = at_hand.principal.name
    for need in wanted:
        if at_hand.verdict(need) is not Verdict.HELD:
            reason = f"{who} is not known to own {need.securable}, or to have {need.right.privilege} on it"
            return Absence(may_be_hidden=True, reason=reason)
    (shown, *_) = wanted
    return Absence(
        may_be_hidden=False, reason=f"{who} owns {shown.securable}, or has {shown.right.privilege} on it"
    )
