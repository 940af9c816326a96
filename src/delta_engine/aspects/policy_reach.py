"""What filters the rows of a table and masks its columns: its own filter and masks, and the policies that reach it.

A policy reaches a table in its scope whose tags meet its conditions. Tags that neither a model nor the catalog shows,
such as those of catalogs, are unknown here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from delta_engine.models import AbacPolicy, PolicyFilter, PolicyMask, QualifiedName, Schema, Table
from delta_engine.models.parts import NOTHING
from delta_engine.sql.governance import full_function_name
from delta_engine.sql.policies import policy_function
from delta_engine.sql.tag_conditions import holds, tag_condition
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class Reach:
    """What reaches one target: a column, or the rows of a table.

    Args:
        column: the key of the masked column; None for the rows.
        function: the key of the function that is called with the arguments.
        policy: None for the table's own row filter or mask.
    """

    column: str | None
    function: str
    arguments: tuple[str, ...]
    policy: AbacPolicy | None = None

    @property
    def call(self) -> tuple[str, tuple[str, ...]]:
        """The called function and its arguments."""
        return self.function, self.arguments

    def __str__(self) -> str:
        own = "its own row filter" if self.column is None else "its own mask"
        return own if self.policy is None else f"policy {self.policy.qualified_name}"


def reaches(
    name: QualifiedName,
    table: Table | TableState,
    policies: Iterable[AbacPolicy],
    inherited: Mapping[str, str],
) -> list[Reach]:
    """Return what filters and masks a table: its own, and the policies whose conditions its tags meet.

    A policy with a condition that the engine cannot read reaches nothing.

    Args:
        inherited: the tags of the table's schema and catalog.
    """
    tags = {**inherited, **table.tags}
    reached = [*_own(name, table)]
    for policy in policies:
        if policy.scope.covers(name.key):
            reached += reaches_of(policy, table, tags)
    return reached


def reaches_of(policy: AbacPolicy, table: Table | TableState, tags: Mapping[str, str]) -> Iterator[Reach]:
    """Yield the targets of a policy in a table of its scope; none if the tags do not meet its conditions."""
    matched = _matched(table, policy, tags)
    if matched is None:
        return
    function = policy_function(policy).key
    using = tuple(matched.get(text.lower(), [text])[0] for text in policy.protection.using)
    match policy.protection:
        case PolicyFilter():
            yield Reach(None, function, using, policy)
        case PolicyMask(_, column):
            for key in matched.get(column.lower(), ()):
                yield Reach(key, function, (key, *using), policy)


def passed_columns(
    policy: AbacPolicy, table: Table | TableState, tags: Mapping[str, str]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the further arguments of a policy that reaches a table, with the columns that each matches."""
    matched = _matched(table, policy, tags) or {}
    for argument in policy.protection.using:
        if argument.lower() in matched:
            yield argument, matched[argument.lower()]


def inherited_tags(name: QualifiedName, schemas: Iterable[Schema]) -> Mapping[str, str]:
    """Return the tags that a table inherits from its declared schema; those of catalogs are unknown here."""
    home = name.key.rpartition(".")[0]
    return next((schema.tags for schema in schemas if schema.key == home), {})


def _own(name: QualifiedName, table: Table | TableState) -> Iterator[Reach]:
    if table.row_filter is not None:
        columns = tuple(map(str.lower, table.row_filter.columns))
        yield Reach(None, function_key(table.row_filter.function, name), columns)
    for column in table.columns:
        if column.mask is not None:
            columns = (column.key, *map(str.lower, column.mask.using_columns))
            yield Reach(column.key, function_key(column.mask.function, name), columns)


def _matched(
    table: Table | TableState, policy: AbacPolicy, tags: Mapping[str, str]
) -> Mapping[str, Sequence[str]] | None:
    """Return the columns that a policy matches, by alias in lower case; None if it does not reach the table.

    It reaches a table only if each of its conditions matches a column.
    """
    try:
        when = None if policy.when is None else tag_condition(policy.when)
        conditions = {alias.lower(): tag_condition(text) for alias, text in policy.match.items()}
        policy_function(policy)
    except ValueError:
        return None
    tagged = [column for column in table.columns if column.tags]  # most columns have no tags
    matched = {
        alias: [
            column.key
            for column in (table.columns if holds(condition, NOTHING) else tagged)
            if holds(condition, column.tags)
        ]
        for alias, condition in conditions.items()
    }
    is_reached = (when is None or holds(when, tags)) and all(matched.values())
    return matched if is_reached else None


def function_key(function: str, table: QualifiedName) -> str:
    """Return the key of the function of a table's own filter or mask; the text itself if it is not a name."""
    try:
        return full_function_name(function, table).key
    except ValueError:  # `governance_rules` refuses the name
        return function
