"""The default rules for policies (ABAC), alone and where they meet on declared tables.

Databricks refuses a query when two filters or two masks that differ reach one table or column for its user, and shows
nothing until then (docs: "Policy evaluation and runtime behavior"). These checks find them before anything runs, by the
tags that models declare; tags that others set are unknown here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from typing_extensions import assert_never

from delta_engine.actions import Create, Drop, TablePlan
from delta_engine.aspects.governed_tables import changed_models
from delta_engine.aspects.policy_reach import Reach, inherited_tags, passed_columns, reaches, reaches_of
from delta_engine.errors import InvalidModelError, UnsafePlanError
from delta_engine.models import (
    AbacPolicy,
    Function,
    PolicyFilter,
    PolicyMask,
    PolicyName,
    PolicyScope,
    Schema,
    Securable,
    Table,
    of_kind,
    subject,
)
from delta_engine.models.policies import ScopeKind
from delta_engine.models.repetitions import repeated
from delta_engine.sql.policies import is_constant, policy_function
from delta_engine.sql.tag_conditions import TagCondition, named_tags, spelled_condition, tag_condition
from delta_engine.state.governed_tags import GovernedTagReader
from delta_engine.state.states import CatalogState
from delta_engine.validation.function_rules import filter_problems, mask_problems
from delta_engine.validation.governance_rules import principal_problems
from delta_engine.validation.rules import Problem, model_refusal, of_each, plan_refusal, unfit_names

MOST_POLICIES: Final = {ScopeKind.CATALOG: 100, ScopeKind.SCHEMA: 100, ScopeKind.TABLE: 50}
MOST_PRINCIPALS: Final = 20
MOST_CONDITIONS: Final = 3
"""Docs: "ABAC requirements, quotas, and limitations"."""

_EVERYBODY: Final = "account users"


class PoliciesFit:
    """Name, function, principals, conditions and arguments of a policy are ones that Databricks takes."""

    @of_each(AbacPolicy)
    def check(self, model: AbacPolicy) -> Iterator[Problem]:
        """Refuse what the platform refuses, and conditions that the engine cannot read."""
        yield from unfit_names(model.name)
        try:
            policy_function(model)
        except ValueError as error:
            yield Problem(f"its function: {error}", "Write catalog.schema.function.")
        yield from _principals(model)
        yield from _conditions(model)
        yield from _arguments(model)


class PoliciesWithinLimits:
    """A catalog or a schema has at most 100 declared policies, a table 50."""

    about: ClassVar = (AbacPolicy,)

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse the first policy of a securable that has more."""
        for policy, (reason, way_out, *_) in too_many_policies(of_kind(AbacPolicy, models)):
            yield model_refusal(policy, reason, way_out)


class PoliciesMeetWell:
    """Filters and masks that reach one table or column, of policies or its own, are the same call of a function.

    An argument of a policy is one column that no other policy masks.
    """

    about: ClassVar = (AbacPolicy,)

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse what Databricks refuses only when the table is read (docs: "Policy evaluation")."""
        policies = of_kind(AbacPolicy, models)
        for table, inherited in _protected(models):
            reached = reaches(table.qualified_name, table, policies, inherited)
            problems = (*meeting_problems(reached), *argument_problems(table, policies, inherited))
            yield from (model_refusal(table, *problem[:3]) for problem in problems)


class PoliciesFitTheirTables:
    """Declared functions of policies take and return the types of the columns that the conditions match."""

    about: ClassVar = (AbacPolicy,)

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse what Databricks refuses only when the table is read."""
        policies = of_kind(AbacPolicy, models)
        functions = {function.key: function for function in of_kind(Function, models)}
        for table, inherited in _protected(models) if functions else ():
            reached = reaches(table.qualified_name, table, policies, inherited)
            problems = call_problems(table, reached, functions)
            yield from (model_refusal(table, *problem[:3]) for problem in problems)


def _protected(models: Sequence[Securable]) -> Iterator[tuple[Table, Mapping[str, str]]]:
    """Yield the tables in the scope of a declared policy, with the tags of their schemas."""
    scopes = {policy.scope for policy in of_kind(AbacPolicy, models)}
    schemas = of_kind(Schema, models)
    for table in of_kind(Table, models):
        if any(scope.covers(table.key) for scope in scopes):
            yield table, inherited_tags(table.qualified_name, schemas)


@dataclass(frozen=True, slots=True)
class DeclaredScopes:
    """A policy is on a declared table, a schema with a declared part, or a catalog of `policy.policies_on`."""

    policies_on: Sequence[str] = ()
    needs_all_models: ClassVar[bool] = True
    about: ClassVar = (AbacPolicy,)

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse policies on securables of others: a policy reaches every table in its scope."""
        tables = {table.key for table in of_kind(Table, models)}
        schemas = {schema.key for schema in of_kind(Schema, models)}
        schemas |= {key.rpartition(".")[0] for key in tables}
        catalogs = {*map(str.lower, self.policies_on)}
        declared = {ScopeKind.TABLE: tables, ScopeKind.SCHEMA: schemas, ScopeKind.CATALOG: catalogs}
        for policy in of_kind(AbacPolicy, models):
            if policy.scope.key not in declared[policy.scope.kind]:
                yield model_refusal(policy, *_undeclared(policy.scope))


def _undeclared(scope: PolicyScope) -> tuple[str, str]:
    if scope.kind is ScopeKind.CATALOG:
        fix = f"Set policy.policies_on: [{scope.name}], or define the policy on a table or schema."
        return f"policy.policies_on does not name {scope}", fix
    return f"no model declares {scope}", f"Declare the {scope.kind.value}, or correct the policy."


def too_many_policies(policies: Iterable[AbacPolicy]) -> Iterator[tuple[AbacPolicy, Problem]]:
    """Yield the first policy of each scope that has more than the platform takes."""
    by_scope: dict[tuple[ScopeKind, str], list[AbacPolicy]] = {}
    for policy in policies:
        by_scope.setdefault((policy.scope.kind, policy.scope.key), []).append(policy)
    for (kind, _), on_scope in by_scope.items():
        most = MOST_POLICIES[kind]
        if len(on_scope) > most:
            reason = f"it is one of {len(on_scope)} policies on {on_scope[0].scope}, which allows {most}"
            yield (
                on_scope[0],
                Problem(
                    reason, "Merge policies that use the same function, or define some on another level."
                ),
            )


def crowded_scopes(plan: TablePlan, observed: CatalogState) -> Iterator[UnsafePlanError]:
    """Yield the new policies that would be one too many on their scope, together with those of others."""
    after = {*observed.other_policies, *(key for key, state in observed.policies.items() if state.exists)}
    dropped = {drop.name.key for drop in plan.of_kind(Drop, PolicyName.kind)}
    for create in plan.of_kind(Create, PolicyName.kind):
        after.add(create.name.key)
        scope = create.desired.scope
        there = [key for key in after - dropped if PolicyName.of_key(key).scope.key == scope.key]
        if len(there) > MOST_POLICIES[scope.kind]:
            reason = f"{scope} would have {len(there)} policies, but it allows {MOST_POLICIES[scope.kind]}"
            yield plan_refusal(
                create, reason, "Drop other policies first, or define this policy on another level."
            )


def meeting_problems(reached: Sequence[Reach]) -> Iterator[Problem]:
    """Yield the targets of a table that two different filters or masks reach for some user.

    The same function with the same arguments is one. Policies for different users do not meet; groups may overlap,
    unless one policy excepts the group that the other is for.
    """
    for position, first in enumerate(reached):
        for second in reached[position + 1 :]:
            if first.column == second.column and first.call != second.call and _overlap(first, second):
                what = "its rows" if first.column is None else "it"
                verb = "filter" if first.column is None else "mask"
                reason = f"{first} and {second} {verb} {what} with different functions or arguments"
                yield Problem(f"{reason}, so Databricks refuses every query", _SEPARATE, first.column)


def argument_problems(
    table: Table, policies: Iterable[AbacPolicy], inherited: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield what policies pass to their functions and the platform refuses: several columns, or a masked one."""
    tags = {**inherited, **table.tags}
    covering = [policy for policy in policies if policy.scope.covers(table.key)]
    reached = [reach for policy in covering for reach in reaches_of(policy, table, tags)]
    masked = {reach.column: reach.policy for reach in reached if reach.column is not None}
    for policy in covering:
        for argument, columns in passed_columns(policy, table, tags):
            if len(columns) > 1:
                names = ", ".join(columns)
                reason = f"policy {policy.qualified_name} passes {argument!r}, which matches several columns: {names}"
                yield Problem(
                    reason, "Tag only one of them, or match it by the value of its tag.", columns[1]
                )
            elif (other := masked.get(columns[0])) is not None and other is not policy:
                reason = (
                    f"policy {policy.qualified_name} passes it to its function, and policy {other.qualified_name} "
                    "masks it, so Databricks refuses every query"
                )
                yield Problem(
                    reason, "Pass another column, or mask it in only one of the policies.", columns[0]
                )


def call_problems(
    table: Table, reached: Iterable[Reach], functions: Mapping[str, Function]
) -> Iterator[Problem]:
    """Yield the policies whose declared functions do not fit the columns that they reach; `functions` is by key."""
    types = {column.key: column.data_type for column in table.columns}
    for reach in reached:
        function = functions.get(reach.function)
        if reach.policy is None or function is None:
            continue
        taken = [types.get(name) for name in reach.arguments]
        if None in taken:  # a constant, which the platform converts
            continue
        types_passed = [data_type for data_type in taken if data_type is not None]
        check = filter_problems if reach.column is None else mask_problems
        what = f"policy {reach.policy.qualified_name}:"
        yield from (problem._replace(column=reach.column) for problem in check(function, types_passed, what))


def ungoverned_tags(plan: TablePlan, reader: GovernedTagReader) -> Iterator[UnsafePlanError]:
    """Yield the new or changed policies whose conditions name tags that are not governed, where these can be read."""
    changed = of_kind(AbacPolicy, (model for change in plan.changes for model in changed_models(change)))
    governed = reader.read() if changed else None
    for policy in changed if governed is not None else ():
        if unknown := unknown_tags(policy, governed or frozenset()):
            yield UnsafePlanError(
                f"its conditions name tags that are not governed: {', '.join(unknown)}",
                **subject(policy.qualified_name),
                location=policy.declared_at,
                way_out="Create the governed tags first, or correct the conditions. Keys are case-sensitive.",
            )


def unknown_tags(policy: AbacPolicy, governed: frozenset[str]) -> list[str]:
    """Return the tags in the conditions of a policy that are not governed, sorted.

    The platform's own tags (`class.…`, `system.…`) are not judged.
    """
    own = ("class.", "system.")
    return sorted(key for key in tags_of(policy) - governed if not key.startswith(own))


def tags_of(policy: AbacPolicy) -> frozenset[str]:
    """Return the keys of the tags in the conditions of a policy."""
    return frozenset(tag.key for condition in _readable_conditions(policy) for tag in named_tags(condition))


def has_negation(policy: AbacPolicy) -> bool:
    """Whether a condition of a policy has NOT, so that a further tag may weaken protection."""
    return any("NOT " in spelled_condition(condition) for condition in _readable_conditions(policy))


def _principals(policy: AbacPolicy) -> Iterator[Problem]:
    if not policy.to:
        yield Problem("it applies to no principal", f"Write to: [{_EVERYBODY}], or the groups.")
    for principal in (*policy.to, *policy.excepted):
        yield from principal_problems(principal, "a principal that it names")
    for name in repeated((*policy.to, *policy.excepted)):
        yield Problem(f"it names {name!r} twice", "Name each principal once, under to or under except.")
    count = len(policy.to) + len(policy.excepted)
    if count > MOST_PRINCIPALS:
        reason = f"it names {count} principals, but a policy allows {MOST_PRINCIPALS}"
        yield Problem(reason, "Name groups.")


def _conditions(policy: AbacPolicy) -> Iterator[Problem]:
    if len(policy.match) > MOST_CONDITIONS:
        reason = f"it matches {len(policy.match)} columns, but a policy allows {MOST_CONDITIONS}"
        yield Problem(reason, "Pass fewer columns to the function.")
    for name in repeated(policy.match):
        yield Problem(f"it matches {name!r} twice", "Give each matched column its own name.")
    texts = [("when", policy.when)] if policy.when is not None else []
    for place, text in (*texts, *((f"match.{alias}", text) for alias, text in policy.match.items())):
        try:
            tag_condition(str(text))
        except ValueError as error:
            yield Problem(
                f"{place}: {text!r} {error}", "Write has_tag('key') or has_tag_value('key', 'value')."
            )


def _arguments(policy: AbacPolicy) -> Iterator[Problem]:
    aliases = [alias.lower() for alias in policy.match]
    name_alias = f"Name one of match: {', '.join(policy.match)}." if policy.match else "Write match."
    match policy.protection:
        case PolicyMask(_, column, using):
            if column.lower() not in aliases:
                yield Problem(f"it masks {column!r}, which match does not define", name_alias)
        case PolicyFilter(_, using):
            pass
        case _:
            assert_never(policy.protection)
    for argument in using:
        if argument.lower() not in aliases and not is_constant(argument):
            reason = f"it passes {argument!r}, which is neither in match nor a constant"
            yield Problem(reason, f"{name_alias} Or write a literal, such as \"'DE'\".")


_SEPARATE: Final = "Use one function for both, or exclude the principals of one policy from the other."


def _overlap(first: Reach, second: Reach) -> bool:
    """Whether some user may meet both; only a table's own filter or mask is for everybody for certain."""
    if first.policy is None or second.policy is None:
        return True
    return not (_is_excepted(first.policy, second.policy) or _is_excepted(second.policy, first.policy))


def _is_excepted(policy: AbacPolicy, other: AbacPolicy) -> bool:
    """Whether a policy excepts all principals that another one is for."""
    return {*map(str.lower, other.to)} <= {*map(str.lower, policy.excepted)}


def _readable_conditions(policy: AbacPolicy) -> Iterator[TagCondition]:
    texts = [*policy.match.values(), *([policy.when] if policy.when is not None else [])]
    for text in texts:
        try:
            yield tag_condition(text)
        except ValueError:  # `PoliciesFit` refuses it
            continue
