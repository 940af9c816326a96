"""Reads the policies (ABAC) that reach a table, with one statement per table.

They belong to the table, its schema, its catalog or its metastore. Reading them needs READ METADATA or MANAGE on the
table, or its ownership, and nothing on its parents. The platform refuses it otherwise, so an empty answer means that
no policy exists (Databricks' SQL reference, "SHOW POLICIES": Databricks Runtime 16.4 or later, or a SQL warehouse).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import StatementError
from delta_engine.sql.queries import sql_effective_policies

ROW_FILTER: Final = "ROW_FILTER"
"""The type of policies that filter rows. Every other type that hides values counts as one that masks columns."""

_RIGHTS: Final = frozenset({"GRANT", "DENY"})
"""The types of policies that give or take privileges, and hide no values (docs: "ABAC_POLICY_DEFINITIONS")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivePolicy:
    """A policy that may filter rows or mask columns of a table.

    Args:
        policy_type: `ROW_FILTER`, `COLUMN_MASK`, or a type that this module does not know.
        securable: what it is defined on, such as `schema prod.sales`.
    """

    name: str
    policy_type: str
    securable: str

    def __str__(self) -> str:
        return f"{self.name} of {self.securable} ({self.policy_type})"


@dataclass(frozen=True, slots=True)
class EffectivePolicyReader:
    """Reads the policies that reach tables."""

    runner: SqlRunner

    def read(self, table: str) -> tuple[EffectivePolicy, ...]:
        """Return the policies that may hide values of a table, sorted by name and securable.

        Args:
            table: the SQL that addresses it.

        Raises:
            StatementError: they cannot be read, or the answer has an undocumented form.
        """
        sql = sql_effective_policies(table)
        policies = (_policy(row, sql) for row in self.runner.run(sql))
        hiding = (policy for policy in policies if policy.policy_type not in _RIGHTS)
        return tuple(sorted(hiding, key=lambda policy: (policy.name, policy.securable)))


def _policy(row: Row, sql: str) -> EffectivePolicy:
    """Return the policy of a row; the documentation titles its columns `Policy Name`, `Policy Type`, `Catalog` …."""
    values = {key.lower().replace(" ", "_"): value for key, value in row.items()}
    name, policy_type = values.get("policy_name"), values.get("policy_type")
    if not name or not policy_type:
        raise StatementError(f"the answer names no policy: {', '.join(row)}", sql=sql, error_class=None)
    return EffectivePolicy(name=str(name), policy_type=str(policy_type).upper(), securable=_securable(values))


def _securable(values: Mapping[str, object]) -> str:
    parts = [str(values[key]) for key in ("catalog", "schema", "table") if values.get(key)]
    kind = ("metastore", "catalog", "schema", "table")[len(parts)]
    return f"{kind} {'.'.join(parts)}" if parts else "the metastore"
