"""Statements about policies (docs: "CREATE POLICY", "DROP POLICY", "SHOW POLICIES", "DESCRIBE POLICY").

There is no ALTER POLICY: every change is CREATE OR REPLACE.
"""

from __future__ import annotations

from collections.abc import Iterable

from delta_engine.models.functions import FunctionName
from delta_engine.models.policies import AbacPolicy, PolicyFilter, PolicyMask, PolicyName, PolicyScope
from delta_engine.sql.expressions import databricks_dialect
from delta_engine.sql.governance import function_parts
from delta_engine.sql.string_literals import with_portable_literals
from delta_engine.sql.text import idents, quote_ident, sql_comment, sql_path


def sql_create_policy(policy: AbacPolicy, *, replaces: bool = False) -> str:
    """Create a policy, or replace the one of that name on its scope.

    Raises:
        ValueError: its function has no whole name.
    """
    verb = "CREATE OR REPLACE" if replaces else "CREATE"
    excepted = f" EXCEPT {idents(policy.excepted)}" if policy.excepted else ""
    when = f" WHEN {_condition(policy.when)}" if policy.when is not None else ""
    conditions = (f"{_condition(text)} AS {quote_ident(alias)}" for alias, text in policy.match.items())
    match_columns = f" MATCH COLUMNS {', '.join(conditions)}" if policy.match else ""
    return (
        f"{verb} POLICY {_place(policy.qualified_name)}{sql_comment(policy.comment)}"
        f" {_protection(policy)} TO {idents(policy.to)}{excepted} FOR TABLES{when}{match_columns}{_columns(policy)}"
    )


def sql_drop_policy(name: PolicyName) -> str:
    """Drop a policy. Its tables are then unfiltered or unmasked for its principals."""
    return f"DROP POLICY {_place(name)}"


def sql_show_policies(scope: PolicyScope) -> str:
    """List the policies of a catalog, a schema or a table, without those that it inherits."""
    return f"SHOW POLICIES ON {_scope(scope)}"


def sql_describe_policy(name: PolicyName) -> str:
    """Describe a policy: a row per property."""
    return f"DESCRIBE POLICY {_place(name)}"


def policy_function(policy: AbacPolicy) -> FunctionName:
    """Return the function of a policy in lower case; ValueError unless its name has three parts."""
    parts = [part.lower() for part in function_parts(policy.protection.function)]
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"{policy.protection.function!r} is not the full name of a function")
    return FunctionName(*parts)


def is_constant(argument: str) -> bool:
    """Whether an argument of a policy's function is a constant."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(with_portable_literals(argument), dialect=databricks_dialect())
    except (SqlglotError, RecursionError):
        return False
    plain = tree.this if isinstance(tree, exp.Neg) else tree
    return isinstance(plain, exp.Literal | exp.Boolean | exp.Null)


def _protection(policy: AbacPolicy) -> str:
    word = "COLUMN MASK" if isinstance(policy.protection, PolicyMask) else "ROW FILTER"
    return f"{word} {sql_path(policy_function(policy).parts)}"


def _columns(policy: AbacPolicy) -> str:
    arguments = [_argument(text, policy.match) for text in policy.protection.using]
    using = f" USING COLUMNS ({', '.join(arguments)})" if arguments else ""
    match policy.protection:
        case PolicyMask(_, column):
            return f" ON COLUMN {quote_ident(column)}{using}"
        case PolicyFilter():
            return using


def _argument(text: str, aliases: Iterable[str]) -> str:
    is_alias = text.lower() in map(str.lower, aliases)
    return quote_ident(text) if is_alias else _condition(text)


def _condition(text: str) -> str:
    """Return SQL within a statement: a comment to the end of the line must not hide what follows."""
    sql = with_portable_literals(text.strip())
    return f"{sql} \n" if "--" in sql.rpartition("\n")[2] else sql


def _place(name: PolicyName) -> str:
    return f"{quote_ident(name.policy)} ON {_scope(name.scope)}"


def _scope(scope: PolicyScope) -> str:
    return f"{scope.kind.value.upper()} {sql_path(scope.parts)}"
