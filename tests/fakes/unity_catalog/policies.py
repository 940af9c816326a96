"""ABAC policies of the fake catalog: whom they reach on which table, and what they hide.

A policy of a table, its schema or its catalog filters rows or masks columns for its principals, except those that it
excepts. WHEN looks at the tags of the table and of what it is in, MATCH COLUMNS at those of columns, which inherit none
(Databricks documentation, "Core concepts for ABAC", "CREATE POLICY").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

import sqlglot
from sqlglot import exp

from delta_engine.aspects.protection import is_protected
from delta_engine.backends.sql_runner import Row
from delta_engine.models import Column
from delta_engine.state.states import TableState
from tests.fakes.unity_catalog.refusals import Refusal, require
from tests.fakes.unity_catalog.statements import Tags

EVERYBODY = "account users"
"""The group of all users."""

MOST_POLICIES = {1: 100, 2: 100, 3: 50}
"""By the number of parts of a securable's name ("ABAC requirements, quotas, and limitations")."""

_MOST_PRINCIPALS = 20
_MOST_CONDITIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy.

    Args:
        securable: the name of the catalog, schema or table, in lower case.
        policy_type: `ROW_FILTER`, `COLUMN_MASK`, or one that hides nothing, such as `GRANT`.
        principals: those in TO.
        excepted: those in EXCEPT.
        tag: the key of a tag, in place of conditions; None reaches every table, or every column.
        function: the name of the function; None for one that hides everything.
        column: the alias of the masked columns.
        using: the further arguments of the function: aliases, or constants as SQL.
        when: the condition on the table's tags.
        match: pairs of alias and condition.
        altered_at: when it was created or replaced last; None if it never was by a statement.
        altered_by: the user who did that.
    """

    name: str
    securable: str
    policy_type: str = "ROW_FILTER"
    principals: frozenset[str] = frozenset({EVERYBODY})
    excepted: frozenset[str] = frozenset()
    tag: str | None = None
    function: str | None = None
    column: str | None = None
    using: tuple[str, ...] = ()
    when: str | None = None
    match: tuple[tuple[str, str], ...] = ()
    comment: str = ""
    altered_at: datetime | None = field(default=None, compare=False)
    altered_by: str | None = field(default=None, compare=False)

    @property
    def key(self) -> tuple[str, str]:
        return self.securable, self.name.lower()

    def covers(self, table: str) -> bool:
        """Whether it is defined on a table, its schema or its catalog."""
        return f"{table}.".startswith(f"{self.securable}.")

    def is_for(self, user: str, groups: Iterable[str] = ()) -> bool:
        names = {user, *groups, EVERYBODY}
        return self.excepted.isdisjoint(names - {EVERYBODY}) and not self.principals.isdisjoint(names)

    def reaches(self, table_tags: Tags, columns: Iterable[Column]) -> bool:
        """Whether its conditions hold for a table with these tags, inherited ones included."""
        if self.policy_type == "ROW_FILTER" and self.tag is not None and self.tag not in table_tags:
            return False
        if self.when is not None and not holds(self.when, table_tags):
            return False
        all_columns = tuple(columns)
        return all(self.matched(alias, all_columns) for alias, _ in self.match)

    def matched(self, alias: str, columns: Iterable[Column]) -> list[str]:
        """Return the columns that a condition matches, by key."""
        condition = next(text for name, text in self.match if name.lower() == alias.lower())
        return [column.key for column in columns if holds(condition, column.tags)]

    def masked(self, columns: Iterable[Column]) -> list[str]:
        """Return the columns that it masks in a table that it reaches, by key."""
        if self.column is not None:
            return self.matched(self.column, columns)
        return [column.key for column in columns if self.tag is None or self.tag in column.tags]

    def as_row(self) -> Row:
        parts = [*self.securable.split("."), None, None][:3]
        names = dict(zip(("Catalog", "Schema", "Table"), parts, strict=True))
        return {
            "Policy Name": self.name,
            "Policy Type": self.policy_type,
            **names,
            "Comment": self.comment or None,
        }

    def as_description(self) -> list[Row]:
        """Return the rows of DESCRIBE POLICY; conditions have their former names, as the documented example."""
        kind = ("CATALOG", "SCHEMA", "TABLE")[self.securable.count(".")]
        matched = ", ".join(f"{_shown(condition)} AS {alias}" for alias, condition in self.match)
        properties = {
            "Name": self.name,
            "On Securable Type": kind,
            "On Securable": self.securable,
            "Comment": self.comment,
            "To Principals": ", ".join(sorted(self.principals)),
            "Except Principals": ", ".join(sorted(self.excepted)),
            "For Securable Type": "TABLE",
            "When Condition": _shown(self.when or ""),
            "Match Columns": matched,
            "Policy Type": self.policy_type,
            "  Function Name": self.function,
            "  On Column": self.column,
            "  Using Columns": ", ".join(self.using),
            "Updated By": self.altered_by,
            "Updated At": self.altered_at and f"{self.altered_at:%Y-%m-%d AD at %H:%M:%S UTC}",
        }
        return [{"info_name": name, "info_value": value} for name, value in properties.items() if value]


def check(policy: Policy) -> None:
    """Refuse what the platform refuses when a policy is created."""
    require(policy.principals, "PARSE_SYNTAX_ERROR", "TO needs a principal")
    count = len(policy.principals) + len(policy.excepted)
    require(count <= _MOST_PRINCIPALS, "INVALID_PARAMETER_VALUE", f"{count} principals")
    require(len(policy.match) <= _MOST_CONDITIONS, "INVALID_PARAMETER_VALUE", "too many column conditions")
    aliases = {alias.lower() for alias, _ in policy.match}
    require(len(aliases) == len(policy.match), "INVALID_PARAMETER_VALUE", "an alias stands there twice")
    is_known = policy.column is None or policy.column.lower() in aliases
    require(is_known, "INVALID_PARAMETER_VALUE", f"there is no alias {policy.column}")
    for text in (
        *([policy.when] if policy.when is not None else []),
        *(condition for _, condition in policy.match),
    ):
        holds(text, {})


def holds(condition: str, tags: Tags) -> bool:
    """Whether a condition on tags holds; refuses one that is no such condition."""
    return _holds(_tree(condition), tags)


def tags_in(condition: str) -> set[str]:
    """Return the keys of the tags that a condition names."""
    return {call.expressions[0].name for call in _tree(condition).find_all(exp.Anonymous)}


@lru_cache(4096)
def _tree(condition: str) -> exp.Expr:
    return sqlglot.parse_one(condition, dialect="databricks")


def _holds(node: exp.Expr, tags: Tags) -> bool:
    match node:
        case exp.Paren(this=inner):
            return _holds(inner, tags)
        case exp.Not(this=inner):
            return not _holds(inner, tags)
        case exp.And(this=left, expression=right):
            return _holds(left, tags) & _holds(right, tags)  # both, so that both are judged
        case exp.Or(this=left, expression=right):
            return _holds(left, tags) | _holds(right, tags)
        case exp.Boolean(this=value):
            return bool(value)
        case exp.Anonymous(expressions=[exp.Literal() as key]) if node.name.lower() in ("has_tag", "hastag"):
            return key.name in tags
        case exp.Anonymous(expressions=[exp.Literal() as key, exp.Literal() as value]) if (
            node.name.lower() in ("has_tag_value", "hastagvalue")
        ):
            return tags.get(key.name) == value.name
    raise Refusal("INVALID_PARAMETER_VALUE", f"no condition on tags: {node}")


def _shown(condition: str) -> str:
    return condition.replace("has_tag_value(", "hasTagValue(").replace("has_tag(", "hasTag(")


def effective(policies: Iterable[Policy], table: str) -> list[Policy]:
    """Return the policies of a table and of what it is in."""
    return [policy for policy in policies if policy.covers(table)]


def filters_rows(policies: Iterable[Policy], user: str, table_tags: Iterable[str]) -> bool:
    """Whether a user sees only some rows of a table with these tags, inherited ones included."""
    return _hides(policies, "ROW_FILTER", user, {*table_tags})


def masks(policies: Iterable[Policy], user: str, column_tags: Iterable[str]) -> bool:
    """Whether a user sees other values in a column with these tags."""
    return _hides(policies, "COLUMN_MASK", user, {*column_tags})


def _hides(policies: Iterable[Policy], policy_type: str, user: str, tags: set[str]) -> bool:
    return any(
        policy.policy_type == policy_type
        and policy.is_for(user)
        and (policy.tag is None or policy.tag in tags)
        for policy in policies
    )


def hides(
    policies: Iterable[Policy], user: str, state: TableState, inherited: Mapping[str, str]
) -> str | None:
    """Return what hides stored values of a table from a user: its own filter or mask, or a policy; None for nothing."""
    if is_protected(state):
        return "its row filter or a mask"
    tags = {**inherited, **state.tags}
    reaching = [policy for policy in policies if policy.is_for(user) and policy.reaches(tags, state.columns)]
    if any(policy.policy_type == "ROW_FILTER" for policy in reaching):
        return "a policy that filters rows"
    if any(policy.masked(state.columns) for policy in reaching if policy.policy_type == "COLUMN_MASK"):
        return "a policy that masks a column"
    return None


def refuse_history(state: TableState, table: str, feature: str) -> None:
    """Refuse to read former versions of a table with a filter or mask of its own, whichever column has it."""
    if is_protected(state):
        raise Refusal(
            f"ROW_LEVEL_SECURITY_COLUMN_MASK_FEATURE_NOT_SUPPORTED.{feature}",
            f"row level security and column mask policies for {table} are not supported",
        )
