"""Statements and clauses about tags, owners, privileges, row filters and masks, and the names of functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from delta_engine.models.parts import QualifiedName
from delta_engine.sql.text import idents, quote_ident, sql_literal, sql_name, sql_pairs


def sql_set_tags(securable: str, tags: Mapping[str, str], column: str | None = None) -> str:
    """Set tags of a securable (such as ``TABLE `dev`.`silver`.`orders` ``) or of its column; other tags remain."""
    return f"ALTER {securable}{_of_column(column)} SET TAGS ({sql_pairs(tags)})"


def sql_unset_tags(securable: str, keys: Iterable[str], column: str | None = None) -> str:
    """Remove tags; arguments as in `sql_set_tags`."""
    return f"ALTER {securable}{_of_column(column)} UNSET TAGS ({', '.join(map(sql_literal, keys))})"


def sql_set_owner(securable: str, principal: str) -> str:
    """Change the owner of a securable; `securable` as in `sql_set_tags`."""
    return f"ALTER {securable} OWNER TO {quote_ident(principal)}"


def sql_set_predictive_optimization(securable: str, setting: str) -> str:
    """Enable, disable or inherit predictive optimization of a table or a schema; `securable` as in `sql_set_tags`."""
    return f"ALTER {securable} {setting.upper()} PREDICTIVE OPTIMIZATION"


def sql_describe_schema(schema: str) -> str:
    """Describe a schema, with its predictive optimization: a row per item."""
    return f"DESCRIBE SCHEMA EXTENDED {schema}"


def sql_grant(securable: str, privileges: Iterable[str], principal: str) -> str:
    """Grant privileges on a securable to one principal; `securable` as in `sql_set_tags`."""
    return f"GRANT {', '.join(privileges)} ON {securable} TO {quote_ident(principal)}"


def sql_revoke(securable: str, privileges: Iterable[str], principal: str) -> str:
    """Revoke privileges from one principal, which may lack them."""
    return f"REVOKE {', '.join(privileges)} ON {securable} FROM {quote_ident(principal)}"


def sql_show_grants(securable: str) -> str:
    """List the grants on a securable and on its parents: a row per principal and privilege."""
    return f"SHOW GRANTS ON {securable}"


def sql_row_filter(function: QualifiedName, columns: Sequence[str]) -> str:
    """Return the clause of a row filter, for SET and for WITH in CREATE TABLE."""
    return f"ROW FILTER {sql_name(function)} ON ({idents(columns)})"


def sql_mask(function: QualifiedName, using_columns: Sequence[str]) -> str:
    """Return the clause of a column mask, for a column's definition and for SET."""
    using = f" USING COLUMNS ({idents(using_columns)})" if using_columns else ""
    return f"MASK {sql_name(function)}{using}"


def sql_set_row_filter(table: str, clause: str) -> str:
    """Set or replace a table's row filter; `clause` comes from `sql_row_filter`."""
    return f"ALTER TABLE {table} SET {clause}"


def sql_drop_row_filter(table: str) -> str:
    """Remove a table's row filter."""
    return f"ALTER TABLE {table} DROP ROW FILTER"


def sql_set_mask(table: str, column: str, clause: str) -> str:
    """Set or replace a column's mask; `clause` comes from `sql_mask`."""
    return f"ALTER TABLE {table}{_of_column(column)} SET {clause}"


def sql_drop_mask(table: str, column: str) -> str:
    """Remove a column's mask."""
    return f"ALTER TABLE {table}{_of_column(column)} DROP MASK"


def _of_column(name: str | None) -> str:
    return "" if name is None else f" ALTER COLUMN {quote_ident(name)}"


_PART = re.compile(r"(`(?:[^`]|``)*`)|([^`.]+)")


def full_function_name(function: str, table: QualifiedName) -> QualifiedName:
    """Return the lower-case name, completed from the protected table; raises ValueError for an invalid name."""
    parts = [part.lower() for part in function_parts(function)]
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise ValueError(f"{function!r} is not a function's name")
    return QualifiedName(*(table.catalog.lower(), table.schema.lower())[: 3 - len(parts)], *parts)


def function_parts(function: str) -> tuple[str, ...]:
    """Return the parts of a function name without quotes, which may contain dots; empty for an invalid name."""
    parts = _PART.findall(function.strip())
    spelled = ".".join(quoted or plain for quoted, plain in parts)
    if spelled != function.strip():
        return ()
    return tuple(quoted[1:-1].replace("``", "`") if quoted else plain for quoted, plain in parts)
