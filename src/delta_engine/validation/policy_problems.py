"""What is wrong with declared policies, alone and where they meet on declared tables.

Databricks refuses a query when two filters or two masks that differ reach one table or column for its user, and shows
nothing until then (docs: "Policy evaluation and runtime behavior"). These checks find them before anything runs, by the
tags that models declare; tags that others set are unknown here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from typing_extensions import assert_never

from delta_engine.models import QualifiedName, Schema, Table
from delta_engine.models.functions import Function
from delta_engine.models.policies import AbacPolicy, PolicyFilter, PolicyMask, ScopeKind
from delta_engine.models.repetitions import repeated
from delta_engine.sql.governance import full_function_name
from delta_engine.sql.policies import is_constant, policy_function
from delta_engine.sql.tag_conditions import HasTag, holds, named_tags, tag_condition
from delta_engine.validation.function_problems import filter_problems, mask_problems
from delta_engine.validation.governance_rules import principal_problems
from delta_engine.validation.rules import ALLOWED_IN_NAMES, Problem, name_problem

MOST_POLICIES: Final = {ScopeKind.CATALOG: 100, ScopeKind.SCHEMA: 100, ScopeKind.TABLE: 50}
MOST_PRINCIPALS: Final = 20
MOST_CONDITIONS: Final = 3
"""Docs: "ABAC requirements, quotas, and limitations"."""

_EVERYBODY: Final = "account users"


def policy_problems(policy: AbacPolicy) -> Iterator[Problem]:
    """Yield what is wrong with one policy: names, principals, conditions and arguments."""
    if problem := name_problem(policy.name):
        yield Problem(f"its name {policy.name!r} {problem}", ALLOWED_IN_NAMES)
    try:
        policy_function(policy)
    except ValueError as error:
        yield Problem(f"its function: {error}", "Write catalog.schema.function.")
    yield from _principals(policy)
    yield from _conditions(policy)
    yield from _arguments(policy)


def too_many_policies(policies: Iterable[AbacPolicy]) -> Iterator[tuple[AbacPolicy, Problem]]:
    """Yield the first policy of each scope that has more than the platform takes."""
    by_scope: dict[tuple[ScopeKind, str], list[AbacPolicy]] = {}
    for policy in policies:
        by_scope.setdefault((policy.scope.kind, policy.scope.key), []).append(policy)
    for (kind, _), on_scope in by_scope.items():
        most = MOST_POLICIES[kind]
        if len(on_scope) > most:
            reason = f"it is one of {len(on_scope)} policies on {on_scope[0].scope}, which takes {most}"
            yield (
                on_scope[0],
                Problem(reason, "Join policies of one function, or define them on another level."),
            )


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function that filters rows or masks a column: its key and its arguments."""

    function: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reach:
    """What reaches one target: a column, or the rows of a table.

    Args:
        column: the key of the masked column; None for the rows.
        policy: None for the table's own row filter or mask.
    """

    column: str | None
    call: Call
    policy: AbacPolicy | None = None

    def __str__(self) -> str:
        own = "its own row filter" if self.column is None else "its own mask"
        return own if self.policy is None else f"policy {self.policy.qualified_name}"


def reaches(table: Table, policies: Iterable[AbacPolicy], inherited: Mapping[str, str]) -> list[Reach]:
    """Return what filters and masks a declared table: its own, and the policies whose conditions its tags meet.

    A policy with a condition that `policy_problems` refuses reaches nothing.

    Args:
        inherited: the tags of the table's schema and catalog.
    """
    reached = [*_own(table)]
    for policy in policies:
        if policy.scope.covers(table.key):
            reached += _of_policy(table, policy, {**inherited, **table.tags})
    return reached


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
                reason = f"{first} and {second} {verb} {what} by different functions or arguments"
                yield Problem(f"{reason}: Databricks refuses every query", _SEPARATE, first.column)


def argument_problems(
    table: Table, policies: Iterable[AbacPolicy], inherited: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield what policies pass to their functions and the platform refuses: several columns, or a masked one."""
    tags = {**inherited, **table.tags}
    covering = [policy for policy in policies if policy.scope.covers(table.key)]
    reached = [reach for policy in covering for reach in _of_policy(table, policy, tags)]
    masked = {reach.column: reach.policy for reach in reached if reach.column is not None}
    for policy in covering:
        for argument, columns in _passed(table, policy, tags):
            if len(columns) > 1:
                names = ", ".join(columns)
                reason = f"policy {policy.qualified_name} passes {argument!r}, which matches several columns: {names}"
                yield Problem(reason, "Tag one of them, or match it by its value.", columns[1])
            elif (other := masked.get(columns[0])) is not None and other is not policy:
                reason = (
                    f"policy {policy.qualified_name} passes it to its function, and policy {other.qualified_name} "
                    "masks it: Databricks refuses every query"
                )
                yield Problem(reason, "Pass another column, or mask it in one policy.", columns[0])


def _passed(table: Table, policy: AbacPolicy, tags: Mapping[str, str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the further arguments of a policy that reaches a table, with the columns that each matches."""
    matched = _matched(table, policy, tags)
    for argument in policy.protection.using if matched else ():
        if matched and argument.lower() in matched:
            yield argument, matched[argument.lower()]


def call_problems(
    table: Table, reached: Iterable[Reach], functions: Mapping[str, Function]
) -> Iterator[Problem]:
    """Yield the policies whose declared functions do not fit the columns that they reach; `functions` is by key."""
    types = {column.key: column.data_type for column in table.columns}
    for reach in reached:
        function = functions.get(reach.call.function)
        if reach.policy is None or function is None:
            continue
        taken = [types.get(name) for name in reach.call.arguments]
        if None in taken:  # a constant, which the platform converts
            continue
        types_passed = [data_type for data_type in taken if data_type is not None]
        check = filter_problems if reach.column is None else mask_problems
        what = f"policy {reach.policy.qualified_name}:"
        yield from (problem._replace(column=reach.column) for problem in check(function, types_passed, what))


def hidden_from(engine: str, reached: Iterable[Reach]) -> Iterator[AbacPolicy]:
    """Yield the policies that reach a table and do not except a principal, each once."""
    policies = {reach.policy.key: reach.policy for reach in reached if reach.policy is not None}
    for policy in policies.values():
        if engine.lower() not in map(str.lower, policy.excepted):
            yield policy


def unknown_tags(policy: AbacPolicy, governed: frozenset[str]) -> list[str]:
    """Return the tags in the conditions of a policy that are not governed, sorted."""
    return sorted({tag.key for tag in _tags(policy)} - governed)


def _principals(policy: AbacPolicy) -> Iterator[Problem]:
    if not policy.to:
        yield Problem("it applies to no principal", f"Write to: [{_EVERYBODY}], or the groups.")
    for principal in (*policy.to, *policy.excepted):
        yield from principal_problems(principal, "a principal that it names")
    for name in repeated((*policy.to, *policy.excepted)):
        yield Problem(f"it names {name!r} twice", "Name each principal once, under to or under except.")
    count = len(policy.to) + len(policy.excepted)
    if count > MOST_PRINCIPALS:
        reason = f"it names {count} principals, and a policy takes {MOST_PRINCIPALS}"
        yield Problem(reason, "Name groups.")


def _conditions(policy: AbacPolicy) -> Iterator[Problem]:
    if len(policy.match) > MOST_CONDITIONS:
        reason = f"it matches {len(policy.match)} columns, and a policy takes {MOST_CONDITIONS}"
        yield Problem(reason, "Pass fewer columns to the function.")
    for name in repeated(policy.match):
        yield Problem(f"it matches {name!r} twice", "Give each matched column a name of its own.")
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
                yield Problem(f"it masks {column!r}, which match does not have", name_alias)
        case PolicyFilter(_, using):
            pass
        case _:
            assert_never(policy.protection)
    for argument in using:
        if argument.lower() not in aliases and not is_constant(argument):
            reason = f"it passes {argument!r}, which is neither in match nor a constant"
            yield Problem(reason, f"{name_alias} Or write a literal, such as \"'DE'\".")


_SEPARATE: Final = "Use one function for both, or except the principals of one policy from the other."


def _own(table: Table) -> Iterator[Reach]:
    if table.row_filter is not None:
        columns = tuple(map(str.lower, table.row_filter.columns))
        yield Reach(None, Call(_key(table.row_filter.function, table.qualified_name), columns))
    for column in table.columns:
        if column.mask is not None:
            columns = (column.key, *map(str.lower, column.mask.using_columns))
            yield Reach(column.key, Call(_key(column.mask.function, table.qualified_name), columns))


def _of_policy(table: Table, policy: AbacPolicy, tags: Mapping[str, str]) -> Iterator[Reach]:
    """Yield the targets of a policy; none if it does not reach the table."""
    matched = _matched(table, policy, tags)
    if matched is None:
        return
    function = policy_function(policy).key
    using = tuple(matched.get(text.lower(), [text])[0] for text in policy.protection.using)
    match policy.protection:
        case PolicyFilter():
            yield Reach(None, Call(function, using), policy)
        case PolicyMask(_, column):
            for key in matched.get(column.lower(), ()):
                yield Reach(key, Call(function, (key, *using)), policy)


def _matched(table: Table, policy: AbacPolicy, tags: Mapping[str, str]) -> Mapping[str, Sequence[str]] | None:
    """Return the columns that a policy matches, by alias in lower case; None if it does not reach the table.

    It reaches a table only if each of its conditions matches a column.
    """
    try:
        when = None if policy.when is None else tag_condition(policy.when)
        conditions = {alias.lower(): tag_condition(text) for alias, text in policy.match.items()}
        policy_function(policy)
    except ValueError:
        return None
    matched = {
        alias: [column.key for column in table.columns if holds(condition, column.tags)]
        for alias, condition in conditions.items()
    }
    is_reached = (when is None or holds(when, tags)) and all(matched.values())
    return matched if is_reached else None


def _overlap(first: Reach, second: Reach) -> bool:
    """Whether some user may meet both; only a table's own filter or mask is for everybody for certain."""
    if first.policy is None or second.policy is None:
        return True
    return not (_is_excepted(first.policy, second.policy) or _is_excepted(second.policy, first.policy))


def _is_excepted(policy: AbacPolicy, other: AbacPolicy) -> bool:
    """Whether a policy excepts all principals that another one is for."""
    return {*map(str.lower, other.to)} <= {*map(str.lower, policy.excepted)}


def _tags(policy: AbacPolicy) -> Iterator[HasTag]:
    texts = [*policy.match.values(), *([policy.when] if policy.when is not None else [])]
    for text in texts:
        try:
            yield from named_tags(tag_condition(text))
        except ValueError:  # `policy_problems` refuses it
            continue


def _key(function: str, table: QualifiedName) -> str:
    try:
        return full_function_name(function, table).key
    except ValueError:  # `governance_rules` refuses the name
        return function


def inherited_tags(table: Table, schemas: Iterable[Schema]) -> Mapping[str, str]:
    """Return the tags that a table inherits from its declared schema; those of catalogs are unknown here."""
    home = table.key.rpartition(".")[0]
    return next((schema.tags for schema in schemas if schema.key == home), {})
