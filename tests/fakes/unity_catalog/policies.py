"""ABAC policies of the fake catalog: whom they reach on which table, and what they hide.

A policy of a table, its schema or its catalog filters rows or masks columns for its principals, except those that it
excepts. With a tag, a filter reaches the tables that have it or inherit it from their schema or catalog, and a mask the
columns that have it: columns inherit none (Databricks documentation, "Core concepts for ABAC").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from delta_engine.aspects.protection import is_protected
from delta_engine.backends.sql_runner import Row
from delta_engine.state.states import TableState
from tests.fakes.unity_catalog.refusals import Refusal

EVERYBODY = "account users"
"""The group of all users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy.

    Args:
        securable: the name of the catalog, schema or table, in lower case.
        policy_type: `ROW_FILTER`, `COLUMN_MASK`, or one that hides nothing, such as `GRANT`.
        principals: those in TO.
        excepted: those in EXCEPT.
        tag: the key of a tag; None reaches every table, or every column.
    """

    name: str
    securable: str
    policy_type: str = "ROW_FILTER"
    principals: frozenset[str] = frozenset({EVERYBODY})
    excepted: frozenset[str] = frozenset()
    tag: str | None = None

    def covers(self, table: str) -> bool:
        """Whether it is defined on a table, its schema or its catalog."""
        return f"{table}.".startswith(f"{self.securable}.")

    def is_for(self, user: str) -> bool:
        return user not in self.excepted and not self.principals.isdisjoint({user, EVERYBODY})

    def as_row(self) -> Row:
        parts = [*self.securable.split("."), None, None][:3]
        names = dict(zip(("Catalog", "Schema", "Table"), parts, strict=True))
        return {"Policy Name": self.name, "Policy Type": self.policy_type, **names, "Comment": None}


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
    all_policies = tuple(policies)
    if is_protected(state):
        return "its row filter or a mask"
    if filters_rows(all_policies, user, {**inherited, **state.tags}):
        return "a policy that filters rows"
    if any(masks(all_policies, user, column.tags) for column in state.columns):
        return "a policy that masks a column"
    return None


def refuse_history(state: TableState, table: str, feature: str) -> None:
    """Refuse to read former versions of a table with a filter or mask of its own, whichever column has it."""
    if is_protected(state):
        raise Refusal(
            f"ROW_LEVEL_SECURITY_COLUMN_MASK_FEATURE_NOT_SUPPORTED.{feature}",
            f"row level security and column mask policies for {table} are not supported",
        )
