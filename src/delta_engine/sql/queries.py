"""Queries: what exists, who did it, and what the rows say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from delta_engine.sql.text import quote_ident, sql_literal


def sql_count_rows(table: str) -> str:
    """Count a table's rows, as one row with the column `row_count`; Delta answers from its log."""
    return f"SELECT count(*) AS row_count FROM {table}"


def sql_column_alias(expression: str, name: str) -> str:
    """Return an expression as a column, for SELECT."""
    quoted = quote_ident(name)
    return quoted if expression == quoted else f"{expression} AS {quoted}"


def sql_select(table: str, columns: Iterable[str]) -> str:
    """Return a query in parentheses, for FROM.

    Args:
        table: the SQL that addresses the table.
        columns: what to select.
    """
    return f"(SELECT {', '.join(columns)} FROM {table})"


def sql_count_violations(rows: str, conditions: Iterable[str]) -> str:
    """Count the rows that do not meet conditions, all in one row; an unknown answer is a no, as for CHECK.

    Args:
        rows: the SQL of a table, or a query in parentheses.
        conditions: the conditions; the counts come back in their order.
    """
    counts = ", ".join(
        f"count_if({sql_violation(condition)}) AS violations_{place}"
        for place, condition in enumerate(conditions)
    )
    return f"SELECT {counts} FROM {rows}"


def sql_violation(condition: str) -> str:
    """Return the condition that a row does not meet another one."""
    return f"NOT coalesce(({condition}), false)"


def sql_show_table_properties(table: str) -> str:
    """List a table's properties as rows of `key` and `value`."""
    return f"SHOW TBLPROPERTIES {table}"


def sql_describe_as_json(table: str) -> str:
    """Return one row with one text: everything about a table, as a JSON document."""
    return f"DESCRIBE TABLE EXTENDED {table} AS JSON"


def sql_show_create_table(table: str) -> str:
    """Return one row with one text: the statement that would create a table like this one."""
    return f"SHOW CREATE TABLE {table}"


def sql_show_schemas(catalog: str) -> str:
    """Return the statement that lists a catalog's schemas: one row for each, of one column."""
    return f"SHOW SCHEMAS IN {quote_ident(catalog)}"


def sql_current_user() -> str:
    """Return one row with one text: who runs it."""
    return "SELECT current_user()"


def sql_memberships(groups: Sequence[str]) -> str:
    """Return one row: who runs it, then whether it is in each of some groups of the account."""
    members = (
        f"is_account_group_member({sql_literal(group)}) AS member_{place}"
        for place, group in enumerate(groups)
    )
    return ", ".join(("SELECT current_user() AS who", *members))


def sql_catalog_rights(catalogs: Sequence[str], *, owner: str, everybody: str) -> str:
    """Return what the caller holds on catalogs, itself or through a group: `catalog`, `grantee` and `privilege`.

    Args:
        catalogs: the catalogs' names in lower case.
        owner: what to call ownership.
        everybody: the group that every principal is in.
    """
    return "\nUNION ALL\n".join(
        f"SELECT {sql_literal(name)} AS catalog, {principal} AS grantee, {privilege} AS privilege\n"
        f"FROM {quote_ident(name)}.information_schema.{view}\n"
        f"WHERE catalog_name = {sql_literal(name)} AND ({principal} = current_user() "
        f"OR {principal} = {sql_literal(everybody)} OR is_account_group_member({principal}))"
        for name in catalogs
        for view, principal, privilege in (
            ("catalogs", "catalog_owner", sql_literal(owner)),
            ("catalog_privileges", "grantee", "privilege_type"),
        )
    )


def sql_describe_table(table: str) -> str:
    """Return a table's columns, then its partition columns, then its details, as rows of `col_name` and `data_type`."""
    return f"DESCRIBE TABLE EXTENDED {table}"


def sql_describe_history(table: str, limit: int) -> str:
    """Return the latest commits of a Delta table, newest first, as rows of the documented history schema."""
    return f"DESCRIBE HISTORY {table} LIMIT {limit}"


def sql_describe_detail(table: str) -> str:
    """Return a row about a Delta table, with its `id`; it replays the log, so never for many tables."""
    return f"DESCRIBE DETAIL {table}"


def sql_references_to(primary_key: str) -> str:
    """Return a question for people: which foreign keys of any catalog reference a key (docs: "Information schema")."""
    return (
        "SELECT constraint_catalog, constraint_schema, constraint_name FROM "
        f"system.information_schema.referential_constraints WHERE unique_constraint_name = {sql_literal(primary_key)}"
    )


def sql_audit_events(actions: Iterable[str], names: Iterable[str], *, since: datetime, limit: int) -> str:
    """Return the events of Unity Catalog's audit log about some tables and schemas, newest first.

    `event_date` is there so that the platform reads a few days alone.

    Args:
        actions: values of `action_name`, in any case: it differs between versions of the log.
        names: the dotted names of tables and schemas, in lower case.
        since: after when, UTC.
        limit: how many rows, at most.
    """
    name = "lower(coalesce(request_params['full_name_arg'], request_params['securable_full_name']))"
    return (
        f"SELECT event_time, user_identity.email AS who, action_name, {name} AS full_name, "
        "to_json(response) AS response\n"
        "FROM system.access.audit\n"
        f"WHERE event_date >= DATE '{since:%Y-%m-%d}' AND event_time > TIMESTAMP '{since:%Y-%m-%dT%H:%M:%S}Z' "
        f"AND service_name = 'unityCatalog' AND lower(action_name) IN ({_literals(map(str.lower, actions))}) "
        f"AND {name} IN ({_literals(names)})\n"
        f"ORDER BY event_time DESC\nLIMIT {limit}"
    )


def _literals(texts: Iterable[str]) -> str:
    return ", ".join(map(sql_literal, sorted(texts)))
