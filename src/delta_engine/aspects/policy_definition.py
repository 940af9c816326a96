"""The definition of a policy (ABAC), which CREATE OR REPLACE changes as a whole and at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, Requirement, Right
from delta_engine.aspects.facet import (
    EXACT_TEXTS,
    NAMES,
    OPTIONAL_TEXT,
    REQUIRED,
    TEXT,
    Facet,
    Form,
    Place,
    TextChange,
    written_part,
)
from delta_engine.aspects.whole_definitions import (
    DefinitionPart,
    definition_aspect,
    shown_text,
)
from delta_engine.models import AbacPolicy, FunctionName, PolicyFilter, PolicyMask, PolicyScope
from delta_engine.models.open_struct import OpenStruct
from delta_engine.models.policies import Protection, ScopeKind
from delta_engine.sql.governance import function_parts
from delta_engine.sql.policies import sql_create_policy
from delta_engine.sql.string_literals import with_portable_literals
from delta_engine.sql.tag_conditions import is_same_condition
from delta_engine.state.policy_states import PolicyState
from delta_engine.state.principals import ALL_ACCOUNT_USERS


@dataclass(frozen=True, slots=True)
class ReplacePolicy:
    """Replace the definition of a policy. The tables in its scope may show other values or rows than before.

    Args:
        parts: the keys of the facets that differ.
    """

    phase: ClassVar[Phase] = Phase.REPLACE_DEFINITION
    desired: AbacPolicy
    observed: PolicyState = field(hash=False)
    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError(f"{self.desired.qualified_name} has this definition already")

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """None if only the comment changes."""
        return (Hazard.BREAKS_READERS,) if self.changes_protection else SAFE

    @property
    def changes_protection(self) -> bool:
        """Whether it does not only change the comment."""
        return self.parts != (COMMENT_FACET.key,)

    @property
    def released(self) -> tuple[str, ...]:
        """The principals that it would no longer hide anything from, because of `to` or `except`."""
        desired, observed = self.desired, self.observed
        left = () if _names_everybody(desired.to) else _without(observed.to, desired.to)
        return tuple(sorted({*left, *_without(desired.excepted, observed.excepted)}, key=str.lower))

    @property
    def loosened_parts(self) -> tuple[str, ...]:
        """The keys of the parts besides principals whose change may show more."""
        return tuple(part for part in self.parts if part not in _PRINCIPALS_OR_COMMENT)


def needed_functions(policy: AbacPolicy) -> Iterator[FunctionName]:
    """Yield the function of a policy, if it has a whole name."""
    match function_parts(policy.protection.function):
        case (catalog, schema, function):
            yield FunctionName(catalog, schema, function)


def _without(principals: Iterable[str], others: Iterable[str]) -> list[str]:
    names = {*map(str.lower, others)}
    return [principal for principal in principals if principal.lower() not in names]


def _names_everybody(principals: Iterable[str]) -> bool:
    return ALL_ACCOUNT_USERS in map(str.lower, principals)


class PolicyMaskDefinition(OpenStruct, frozen=True, kw_only=True):
    """The mask of a policy."""

    function: str
    column: str
    using: tuple[str, ...] = ()


class PolicyFilterDefinition(OpenStruct, frozen=True, kw_only=True):
    """The row filter of a policy."""

    function: str
    using: tuple[str, ...] = ()


def _read_scope(place: Place, written: Mapping[str, str]) -> PolicyScope:
    if len(written) != 1:
        raise place.error(
            "a policy needs exactly one catalog, schema or table", "Write on: {schema: catalog.schema}."
        )
    ((kind, name),) = written.items()
    kinds = [scope.value for scope in ScopeKind]
    if kind not in kinds:
        raise place.error(f"a policy cannot be on a {kind!r}", f"Write one of: {', '.join(kinds)}.", kind)
    try:
        return PolicyScope(kind, name)
    except ValueError as error:
        raise place.error(str(error), "Write its full name.", kind) from error


def _with_name(scope: PolicyScope | None, names: TextChange) -> PolicyScope | None:
    if scope is None:
        return None
    return PolicyScope(scope.kind, names(f"{scope.name}.").removesuffix("."))  # a catalog begins a name


def _of_function(protection: Any, names: TextChange, values: TextChange) -> Any:
    if protection is None:
        return None
    return replace(
        protection, function=names(protection.function), using=tuple(map(values, protection.using))
    )


def _of_type(protection: Protection | None, kind: type[Protection]) -> Any:
    return protection if isinstance(protection, kind) else None


def _is_same_protection(protection: Protection | None, other: Protection | None) -> bool:
    return _normal(protection) == _normal(other)


def _normal(protection: Protection | None) -> tuple[object, ...]:
    if protection is None:
        return ()
    function = tuple(part.lower() for part in function_parts(protection.function)) or protection.function
    arguments = tuple(with_portable_literals(text.strip()) for text in protection.using)
    arguments = tuple(text.lower() if text.isidentifier() else text for text in arguments)
    column = protection.column.lower() if isinstance(protection, PolicyMask) else None
    return function, column, arguments


def _shown_protection(protection: Protection | None) -> str | None:
    if protection is None:
        return None
    on = f" on {protection.column}" if isinstance(protection, PolicyMask) else ""
    using = f" ({', '.join(protection.using)})" if protection.using else ""
    return f"{protection.function}{on}{using}"


def _is_same_match(match: Mapping[str, str], other: Mapping[str, str]) -> bool:
    conditions = {alias.lower(): text for alias, text in match.items()}
    others = {alias.lower(): text for alias, text in other.items()}
    return conditions.keys() == others.keys() and all(
        is_same_condition(text, others[alias]) for alias, text in conditions.items()
    )


def _shown_match(match: Mapping[str, str]) -> str | None:
    return ", ".join(f"{alias}: {text}" for alias, text in match.items()) or None


def _is_same_principals(principals: Iterable[str], others: Iterable[str]) -> bool:
    return {*map(str.lower, principals)} == {*map(str.lower, others)}


def _shown_principals(principals: Iterable[str]) -> str | None:
    """Return them sorted, because their order says nothing and platforms change it."""
    return ", ".join(sorted(principals, key=str.lower)) or None


_PRINCIPALS: Form[tuple[str, ...]] = replace(
    NAMES,
    with_texts=lambda principals, _names, values: tuple(map(values, principals)),
)

SCOPE_FACET: Facet[AbacPolicy, PolicyState, PolicyScope | None] = Facet(
    key="on",
    argument="scope",
    declared=lambda model: model.scope,
    absent=None,
    form=Form(
        recorded_type=dict[str, str],
        encode=lambda scope: {} if scope is None else {scope.kind.value: scope.name},
        decode=lambda scope: next((PolicyScope(*item) for item in scope.items()), None),
        written_type=dict[str, str],
        read=_read_scope,
        write=lambda scope: None if scope is None else {scope.kind.value: scope.name},
        with_texts=lambda scope, names, _values: _with_name(scope, names),
        words="mapping",
        schema={
            "type": "object",
            "properties": {scope.value: {"type": "string"} for scope in ScopeKind},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        },
    ),
    meaning="the catalog, schema or table that it is on, by its full name: it affects the tables inside",
    default=REQUIRED,
    is_always_recorded=True,
    constructor="PolicyScope",
    takes_pair=True,
)

MASK_FACET: Facet[AbacPolicy, PolicyState, PolicyMask | None] = Facet(
    key="mask",
    argument="protection",
    declared=lambda model: _of_type(model.protection, PolicyMask),
    observed=lambda state: _of_type(state.protection, PolicyMask),
    absent=None,
    form=Form(
        recorded_type=PolicyMaskDefinition | None,
        encode=lambda mask: (
            mask and PolicyMaskDefinition(function=mask.function, column=mask.column, using=mask.using)
        ),
        decode=lambda mask: mask and PolicyMask(mask.function, mask.column, mask.using),
        written_type=PolicyMask,
        write=written_part,
        with_texts=_of_function,
        words="mapping",
    ),
    meaning="the `function` through which readers see the `column`, an alias of `match`; `using` are further arguments",
    constructor="PolicyMask",
)

FILTER_FACET: Facet[AbacPolicy, PolicyState, PolicyFilter | None] = Facet(
    key="filter",
    argument="protection",
    declared=lambda model: _of_type(model.protection, PolicyFilter),
    observed=lambda state: _of_type(state.protection, PolicyFilter),
    absent=None,
    form=Form(
        recorded_type=PolicyFilterDefinition | None,
        encode=lambda row_filter: (
            row_filter and PolicyFilterDefinition(function=row_filter.function, using=row_filter.using)
        ),
        decode=lambda row_filter: row_filter and PolicyFilter(row_filter.function, row_filter.using),
        written_type=PolicyFilter,
        write=written_part,
        with_texts=_of_function,
        words="mapping",
    ),
    meaning="the `function` that decides who sees which rows; its arguments, `using`, are aliases or constants",
    constructor="PolicyFilter",
)

MATCH_FACET: Facet[AbacPolicy, PolicyState, Mapping[str, str]] = Facet(
    key="match",
    declared=lambda model: model.match,
    observed=lambda state: state.match,
    absent={},
    form=replace(
        EXACT_TEXTS,
        with_texts=lambda match, _names, values: {alias: values(text) for alias, text in match.items()},
    ),
    meaning="conditions on tags of columns, by alias; a table needs a column for each",
    entry="condition",
)

WHEN_FACET: Facet[AbacPolicy, PolicyState, str | None] = Facet(
    key="when",
    declared=lambda model: model.when,
    observed=lambda state: state.when,
    absent=None,
    form=replace(
        OPTIONAL_TEXT, with_texts=lambda when, _names, values: None if when is None else values(when)
    ),
    meaning="the condition on tags of the table",
    default="every table",
)

TO_FACET: Facet[AbacPolicy, PolicyState, tuple[str, ...]] = Facet(
    key="to",
    declared=lambda model: model.to,
    observed=lambda state: state.to,
    absent=(),
    form=_PRINCIPALS,
    meaning="the users, service principals and groups that it applies to",
    default=REQUIRED,
)

EXCEPT_FACET: Facet[AbacPolicy, PolicyState, tuple[str, ...]] = Facet(
    key="except",
    argument="excepted",
    declared=lambda model: model.excepted,
    observed=lambda state: state.excepted,
    absent=(),
    form=_PRINCIPALS,
    meaning="the principals of `to` that it does not apply to",
)

COMMENT_FACET: Facet[AbacPolicy, PolicyState, str] = Facet(
    key="comment",
    declared=lambda model: model.comment,
    observed=lambda state: state.comment,
    absent="",
    form=TEXT,
    meaning="its comment; empty means none",
)


def _part(facet: Facet[Any, Any, Any], **settings: Any) -> DefinitionPart:
    return DefinitionPart(facet=facet, **{"drift_kind": DriftKind.POLICY_CHANGED, **settings})


_PARTS: Final = (
    _part(MASK_FACET, is_same=_is_same_protection, described=_shown_protection),
    _part(FILTER_FACET, is_same=_is_same_protection, described=_shown_protection),
    _part(MATCH_FACET, is_same=_is_same_match, described=_shown_match),
    _part(WHEN_FACET, is_same=is_same_condition, described=shown_text),
    _part(TO_FACET, is_same=_is_same_principals, described=_shown_principals),
    _part(EXCEPT_FACET, is_same=_is_same_principals, described=_shown_principals),
    _part(COMMENT_FACET, described=shown_text, drift_kind=DriftKind.POLICY_COMMENT),
)

_PRINCIPALS_OR_COMMENT: Final = frozenset({TO_FACET.key, EXCEPT_FACET.key, COMMENT_FACET.key})

ON_SCOPE: Final = Requirement(
    statement="CREATE POLICY",
    right=Right.MANAGE,
    demands="ownership of the catalog, schema or table that it is on, or `MANAGE`, and `EXECUTE` on the function",
    source="CREATE POLICY",
)

TO_DROP: Final = Requirement(
    statement="DROP POLICY",
    right=Right.MANAGE,
    demands="ownership of the catalog, schema or table that it is on, or `MANAGE`",
    source="DROP POLICY",
)

_DEFINITION: Final[Aspect[ReplacePolicy, AbacPolicy, PolicyState]] = definition_aspect(
    ReplacePolicy,
    _PARTS,
    {ReplacePolicy: replace(ON_SCOPE, statement="CREATE OR REPLACE POLICY")},
    name="policy definition",
    statements=lambda action: [sql_create_policy(action.desired, replaces=True)],
)


def _explain(action: ReplacePolicy) -> Iterator[Change]:
    """Yield the changes, with the principals that see more."""
    note = f"no longer hides anything from {', '.join(action.released)}" if action.released else ""
    for change in _DEFINITION.explain(action):
        is_of_principals = change.subject in (TO_FACET.key, EXCEPT_FACET.key)
        yield replace(change, note=note) if is_of_principals else change
        note = "" if is_of_principals else note


ASPECT: Final = replace(_DEFINITION, explain=_explain)
