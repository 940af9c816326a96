"""The rights that a plan needs on objects, and whether a principal has them as far as it can see.

This never refuses a plan: `information_schema` hides some grants from principals that do not own the object
(docs.databricks.com: "TABLE_PRIVILEGES", "CATALOG_PRIVILEGES").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import Enum
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from delta_engine.actions import Action, Align, Create, Drop, TablePlan
from delta_engine.aspects import KINDS
from delta_engine.aspects.aspect import Requirement, Right
from delta_engine.aspects.column_masks import SetColumnMask
from delta_engine.aspects.columns import ColumnAdd
from delta_engine.aspects.foreign_keys import ForeignKeyAdd
from delta_engine.aspects.grants import GrantPrivileges
from delta_engine.aspects.kind import Kind
from delta_engine.aspects.owner import ChangeOwner
from delta_engine.aspects.policy_definition import ReplacePolicy
from delta_engine.aspects.row_filters import SetRowFilter
from delta_engine.errors import StatementError
from delta_engine.models import (
    AbacPolicy,
    ColumnMask,
    ForeignKey,
    FunctionName,
    PolicyName,
    QualifiedName,
    RowFilter,
    SchemaName,
    SecurableName,
    Table,
)
from delta_engine.models.constraints import referenced_table
from delta_engine.models.parts import joined_grants
from delta_engine.sql.governance import full_function_name, sql_grant
from delta_engine.sql.policies import policy_function
from delta_engine.sql.text import sql_path
from delta_engine.state.policy_states import PolicyState
from delta_engine.state.principals import Permissions, Principal, PrincipalReader
from delta_engine.state.states import ABSENT, CatalogState, SecurableState, former_name_of
from delta_engine.telemetry.context import command

REQUIREMENTS: Mapping[type, Requirement | None] = MappingProxyType(
    {
        action: right
        for kind in reversed(KINDS)
        for aspect in kind.aspects
        for action, right in aspect.actions.items()
    }
)
"""The requirement of each action type; None if a rule always refuses the action."""

REFERENCED_TABLE: Final = Requirement(
    statement="FOREIGN KEY that references the table",
    right=Right.MANAGE,
    demands="ownership of the referenced table; `MANAGE` may transfer it",
    source="table-constraints command group",
)
"""The requirement of a new foreign key on its parent table."""

CALLED_FUNCTION: Final = Requirement(
    statement="mask, row filter or policy that calls the function",
    right=Right.EXECUTE,
    demands="`EXECUTE` on the function, `USE SCHEMA`, `USE CATALOG`",
    source="Row filters and column masks; CREATE POLICY",
)
"""The requirement of a new mask, row filter or policy on its function."""

_KINDS = ("CATALOG", "SCHEMA", "TABLE")


@dataclass(frozen=True, slots=True)
class SecurableObject:
    """A catalog, a schema or a table, depending on the number of name parts, or what `word` says.

    Args:
        word: the keyword of another kind in GRANT.
    """

    parts: tuple[str, ...]
    word: str = ""

    def __str__(self) -> str:
        return f"{self.kind.lower()} {'.'.join(self.parts)}"

    @property
    def kind(self) -> str:
        """The keyword of its kind in GRANT."""
        return self.word or _KINDS[len(self.parts) - 1]

    @property
    def address(self) -> str:
        """The SQL that addresses it."""
        return sql_path(self.parts)

    @property
    def levels(self) -> tuple[str, ...]:
        """The dotted names of the object and its parents, in lower case, the object first.

        A function's has its kind in front, because a table may have its name.
        """
        parts = [part.lower() for part in self.parts]
        own, *above = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
        return (_level(self.kind.lower(), own), *above)

    def grant(self, right: Right, principal: str) -> str:
        """Return the statement that grants a right on it."""
        return sql_grant(f"{self.kind} {self.address}", [right.privilege], principal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A right that a plan's statements need on one object; `owners_above` if owning a parent suffices."""

    securable: SecurableObject
    right: Right
    statements: tuple[str, ...] = ()
    owners_above: bool = False


class Verdict(Enum):
    """Whether a principal has a right; HIDDEN if it sees none of its own rights on the object."""

    HELD = "held"
    LACKING = "lacking"
    HIDDEN = "hidden"


def securable(name: SecurableName) -> SecurableObject:
    """Return what a name names; of a policy its scope, on which all rights on it are."""
    if isinstance(name, PolicyName):
        return SecurableObject(tuple(name.scope.name.split(".")))
    word = name.kind.upper()
    return SecurableObject(astuple(name), "" if word in _KINDS else word)


def _level(kind: str, key: str) -> str:
    """Return the key of a securable among all kinds; only functions do not share their names with tables."""
    return f"{kind} {key}" if kind == FunctionName.kind else key


def needs(plan: TablePlan, observed: CatalogState) -> tuple[Need, ...]:
    """Return the rights that a plan needs on objects of its snapshot; the principal owns what it creates."""
    asked = [needed for kind in KINDS for needed in _asked(kind, plan, observed)]
    called = (name for name in functions_of(plan) if name.key in observed.functions)
    asked += ((securable(name), CALLED_FUNCTION) for name in called)
    return tuple(
        merged(
            Need(
                securable=on,
                right=requirement.right,
                statements=(requirement.statement,),
                owners_above=requirement.owners_above,
            )
            for on, requirement in asked
            if requirement is not None
        )
    )


def _asked(
    kind: Kind, plan: TablePlan, observed: CatalogState
) -> Iterator[tuple[SecurableObject, Requirement | None]]:
    """Yield the requirements of the changes of one kind."""
    made = {
        level
        for create in plan.changes
        if isinstance(create, Create) and not isinstance(create.name, PolicyName)
        for level in securable(create.name).levels[:1]
    }
    for create in plan.of_kind(Create, kind.word):
        on = securable(create.name)
        above = on if isinstance(create.name, PolicyName) else SecurableObject(on.parts[:-1])
        if above.levels[0] not in made:
            yield above, kind.create_right
        if isinstance(create.desired, Table):
            yield from _references(create.table, create.desired.foreign_keys, observed)
    for align in plan.of_kind(Align, kind.word):
        if securable(align.name).levels[0] in made:
            continue
        state = observed.of(align.name)
        former = former_name_of(state)
        for action in align.actions:
            yield securable(former or align.name), _right(kind, action)
        yield from _references(align.name, map(attrgetter("desired"), align.of_type(ForeignKeyAdd)), observed)
    for drop in plan.of_kind(Drop, kind.word):
        yield securable(drop.name), kind.drop_right


def _right(kind: Kind, action: Action) -> Requirement | None:
    requirement = REQUIREMENTS[type(action)]
    special = requirement.of_schemas if requirement and kind.name is SchemaName else None
    return special or requirement


def functions_of(plan: TablePlan) -> tuple[FunctionName, ...]:
    """Return the functions of new row filters, masks and policies, sorted; each needs EXECUTE.

    The principal owns those that the plan creates.
    """
    functions: set[FunctionName] = set()
    for change in plan.changes:
        policies = [change.desired] if isinstance(change, Create) else []
        policies += (
            [action.desired for action in change.of_type(ReplacePolicy)] if isinstance(change, Align) else []
        )
        named = (policy_function(policy) for policy in policies if isinstance(policy, AbacPolicy))
        functions |= {FunctionName(*function.parts) for function in named}
    for create in plan.create_tables:
        masks = [column.mask for column in create.desired.columns]
        functions |= _functions(create.table, [create.desired.row_filter, *masks])
    for align in plan.align_tables:
        added = [action.desired.mask for action in align.of_type(ColumnAdd)]
        changed = [action.desired for action in align.of_type(SetColumnMask)]
        filters = [action.desired for action in align.of_type(SetRowFilter)]
        functions |= _functions(align.table, [*filters, *changed, *added])
    made = {create.name.key for create in plan.of_kind(Create, FunctionName.kind)}
    return tuple(sorted((name for name in functions if name.key not in made), key=lambda name: name.key))


def locations_of(plan: TablePlan) -> tuple[str, ...]:
    """Return the locations of new external tables, sorted; each needs CREATE EXTERNAL TABLE."""
    return tuple(
        sorted({create.desired.location for create in plan.create_tables if create.desired.location})
    )


def _functions(
    table: QualifiedName, uses: Iterable[RowFilter | ColumnMask | None]
) -> frozenset[FunctionName]:
    names = (full_function_name(use.function, table) for use in uses if use is not None)
    return frozenset(FunctionName(*name.parts) for name in names)


def merged(all_needs: Iterable[Need]) -> Iterator[Need]:
    """Yield each right on an object once, with all statements that need it."""
    statements_by_need: dict[tuple[SecurableObject, Right, bool], dict[str, None]] = {}
    for need in all_needs:
        statements_so_far = statements_by_need.setdefault((need.securable, need.right, need.owners_above), {})
        statements_so_far |= dict.fromkeys(need.statements)
    for (securable, right, owners_above), statements in statements_by_need.items():
        yield Need(securable=securable, right=right, statements=tuple(statements), owners_above=owners_above)


def _references(
    table: QualifiedName, keys: Iterable[ForeignKey], observed: CatalogState
) -> Iterator[tuple[SecurableObject, Requirement]]:
    for key in keys:
        parent = referenced_table(table, key)
        if parent is not None and parent.key != table.key and observed.tables.get(parent.key, ABSENT).exists:
            yield securable(parent), REFERENCED_TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class RightsAtHand:
    """A principal, and the known permissions on objects by dotted names in lower case."""

    principal: Principal
    holders: Mapping[str, Permissions]

    def verdict(self, need: Need) -> Verdict:
        """Return whether the principal has a right."""
        levels = [self.holders[name] for name in need.securable.levels if name in self.holders]
        own = self.holders.get(need.securable.levels[0], Permissions())
        owners = levels if need.owners_above else [own]
        granted = {
            privilege
            for level in levels
            for grantee, privileges in level.grants.items()
            if self.principal.is_one_of([grantee])
            for privilege in privileges
        }
        if self.principal.is_one_of(level.owner for level in owners) or granted & {*need.right.value}:
            return Verdict.HELD
        sees_its_own = granted or self.principal.is_one_of(level.owner for level in levels)
        return Verdict.LACKING if sees_its_own else Verdict.HIDDEN

    def lacking(self, all_needs: Iterable[Need]) -> tuple[Need, ...]:
        """Return the needs that the principal lacks or may lack."""
        return tuple(need for need in all_needs if self.verdict(need) is not Verdict.HELD)

    def owner(self, securable: SecurableObject) -> str | None:
        """Return the owner of an object; None if unknown."""
        return self.holders.get(securable.levels[0], Permissions()).owner


def rights_at_hand(
    reader: PrincipalReader,
    all_needs: Sequence[Need],
    observed: CatalogState,
    given: Mapping[SecurableObject, Permissions] = MappingProxyType({}),
) -> RightsAtHand:
    """Return the principal and the holders of rights with one or two queries; may raise StatementError.

    Args:
        given: what `given_away` returns; the rights on these are looked up too.
    """
    holders = _holders(observed)
    names = {name for need in all_needs for name in need.securable.levels}
    names |= {name for securable in given for name in securable.levels}
    known_permissions = [holders[name] for name in names if name in holders]
    known_permissions += given.values()
    candidates = {
        name
        for permissions in known_permissions
        for name in (permissions.owner, *permissions.grants)
        if name is not None
    }
    at_hand = RightsAtHand(principal=reader.principal(candidates), holders=holders)
    undecided = {need.securable for need in at_hand.lacking(all_needs)}
    undecided |= {*_unseen(at_hand, given)}
    if not undecided:
        return at_hand
    catalogs, principal = reader.catalogs(
        {securable.levels[-1] for securable in undecided}, at_hand.principal
    )
    return RightsAtHand(principal=principal, holders={**holders, **catalogs})


def _holders(observed: CatalogState) -> Mapping[str, Permissions]:
    return MappingProxyType(
        {
            _level(kind, _present_key(key, state)): Permissions(owner=state.owner, grants=state.grants)
            for kind, states in observed.by_kind.items()
            for key, state in states.items()
            if state.exists and not isinstance(state, PolicyState)
        }
    )


def _present_key(key: str, state: SecurableState) -> str:
    """Return the key under which the catalog has a securable, which a plan may rename."""
    former = former_name_of(state)
    return former.key if former else key


_WARNED_OF: Final = frozenset({Right.MANAGE, Right.APPLY_TAG})
"""Rights that principals with MODIFY often lack."""

_MOST_WARNINGS: Final = 10


def given_away(plan: TablePlan, observed: CatalogState) -> Mapping[SecurableObject, Permissions]:
    """Return what a plan gives an owner, with the owner and the grants that it has afterwards.

    What is in a schema that the plan creates and keeps is left out: its owner sees it.
    """
    given, holders = {}, _holders(observed)
    for change in plan.changes:
        on = securable(change.name)
        match change:
            case Create(desired=model) if not isinstance(model, AbacPolicy) and model.owner:
                given[on] = Permissions(owner=model.owner, grants=model.grants)
            case Align():
                grants = holders.get(on.levels[0], Permissions()).grants
                for grant in change.of_type(GrantPrivileges):
                    grants = joined_grants(grants, {grant.principal: grant.privileges})
                for action in change.of_type(ChangeOwner):
                    given[on] = Permissions(owner=action.desired, grants=grants)
    kept = {securable(create.name) for create in plan.create_schemas} - given.keys()
    own = {schema.levels[0] for schema in kept}
    return {on: after for on, after in given.items() if own.isdisjoint(on.levels[1:])}


def _unseen(at_hand: RightsAtHand, given: Mapping[SecurableObject, Permissions]) -> Iterator[SecurableObject]:
    """Yield what the principal may not see once it is given away: it has no right on it or above."""
    after = {securable.levels[0]: permissions for securable, permissions in given.items()}
    rights = RightsAtHand(principal=at_hand.principal, holders={**at_hand.holders, **after})
    for securable in given:
        is_function = securable.kind.lower() == FunctionName.kind
        shown_by = _SHOWN_BY_EXECUTE if is_function else _SHOWN_BY
        seen = (Need(securable=securable, right=right, owners_above=True) for right in shown_by)
        if all(rights.verdict(need) is not Verdict.HELD for need in seen):
            yield securable


_SHOWN_BY: Final = (Right.MANAGE, Right.SELECT, Right.MODIFY, Right.APPLY_TAG, Right.USE_SCHEMA)
_SHOWN_BY_EXECUTE: Final = (Right.MANAGE, Right.EXECUTE)
"""Rights with which a principal sees what it does not own."""


def rights_warnings(reader: PrincipalReader, plan: TablePlan, observed: CatalogState) -> Iterator[str]:
    """Yield the rights beyond MODIFY that the principal may lack; plans without such rights need no query.

    Also yield what the principal may not see any more once the plan has given it to another owner.
    """
    owned = {*_shown_to_owners(observed)}
    warned = [need for need in needs(plan, observed) if need.right in _WARNED_OF]
    given = given_away(plan, observed)
    if not warned and not given:
        return
    try:
        at_hand = rights_at_hand(reader, warned, observed, given)
    except StatementError as error:
        yield f"the rights that this plan needs cannot be compared with your rights: {error.first_line}"
        for securable, permissions in given.items():
            yield _hidden(securable, permissions, "the engine's principal")
        return
    for securable in _unseen(at_hand, given):
        yield _hidden(securable, given[securable], at_hand.principal.name)
    lacking = [need for need in at_hand.lacking(warned) if need.securable.levels[0] not in owned]
    for need in lacking[:_MOST_WARNINGS]:
        yield _warning(need, at_hand)
    if len(lacking) > _MOST_WARNINGS:
        yield f"{len(lacking) - _MOST_WARNINGS} further rights may be missing: {command('doctor')} lists them"


def _hidden(securable: SecurableObject, after: Permissions, principal: str) -> str:
    return (
        f"{securable}: {after.owner} becomes its owner, and {principal} may not see it afterwards. The next plan would "
        f"then create it again, which the platform refuses. Grant {principal} MANAGE in the model (grants)"
    )


def _shown_to_owners(observed: CatalogState) -> Iterator[str]:
    """Yield the functions whose owner no view shows, and whose body is shown, which it is to owners alone."""
    for key, state in observed.functions.items():
        if state.exists and state.owner is None and state.body is not None:
            yield _level(FunctionName.kind, key)


def _warning(need: Need, at_hand: RightsAtHand) -> str:
    owner = at_hand.owner(need.securable)
    needs_it = "needs" if len(need.statements) == 1 else "need"
    name = at_hand.principal.name
    return (
        f"{need.securable}: {', '.join(need.statements)} {needs_it} ownership or {need.right.privilege}, which {name} "
        f"may lack{f' (the owner is {owner})' if owner else ''}. If so: {need.securable.grant(need.right, name)}"
    )
