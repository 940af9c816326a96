"""Queries about what the catalog holds and who changed it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from delta_engine.models.types import ArrayType, DataType, MapType, StructField, StructType
from delta_engine.sql.string_literals import with_portable_literals
from delta_engine.sql.text import quote_ident, sql_data_type, sql_literal


def sql_count_rows(table: str) -> str:
    """Count a table's rows: one row with the column `row_count`. Delta answers from its log."""
    return f"SELECT count(*) AS row_count FROM {table}"


def sql_at_location(location: str) -> str:
    """Return the SQL that addresses the Delta table at a location."""
    return f"delta.{quote_ident(location)}"


def sql_describe_table(table: str) -> str:
    """Return columns, then partition columns, then details, as rows of `col_name` and `data_type`."""
    return f"DESCRIBE TABLE EXTENDED {table}"


def sql_describe_as_json(table: str) -> str:
    """Return one JSON document that describes a table."""
    return f"DESCRIBE TABLE EXTENDED {table} AS JSON"


def sql_describe_history(table: str, limit: int) -> str:
    """Return the latest commits of a Delta table, newest first, in the documented history schema."""
    return f"DESCRIBE HISTORY {table} LIMIT {limit}"


def sql_read_version(table: str, version: int) -> str:
    """Read at most one row of a former version: it fails where the platform refuses time travel."""
    return f"SELECT 1 AS is_readable FROM {table} VERSION AS OF {version} LIMIT 1"


def sql_effective_policies(table: str) -> str:
    """List the policies (ABAC) of a table, its schema, its catalog and its metastore."""
    return f"SHOW EFFECTIVE POLICIES ON TABLE {table}"


def sql_describe_detail(table: str) -> str:
    """Return one row about a Delta table, with its `id`; slow, because it replays the log."""
    return f"DESCRIBE DETAIL {table}"


def sql_show_table_properties(table: str) -> str:
    """List a table's properties as rows of `key` and `value`."""
    return f"SHOW TBLPROPERTIES {table}"


def sql_show_create_table(table: str) -> str:
    """Return the CREATE TABLE statement of a table: one row, one text."""
    return f"SHOW CREATE TABLE {table}"


def sql_show_schemas(catalog: str) -> str:
    """List a catalog's schemas: one row for each, of one column."""
    return f"SHOW SCHEMAS IN {quote_ident(catalog)}"


def sql_show_tables(catalog: str, schema: str) -> str:
    """List a schema's tables as rows of `namespace` and `tableName`."""
    return f"SHOW TABLES IN {quote_ident(catalog)}.{quote_ident(schema)}"


def sql_show_views(catalog: str, schema: str) -> str:
    """List a schema's views, and the session's temporary ones: `namespace`, `viewName` and `isTemporary`."""
    return f"SHOW VIEWS IN {quote_ident(catalog)}.{quote_ident(schema)}"


def sql_information_schema(catalog: str, view: str, columns: Sequence[str], conditions: Sequence[str]) -> str:
    """Query a view of a catalog's `information_schema`; all columns if none are named."""
    where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(columns) or '*'}\nFROM {quote_ident(catalog)}.information_schema.{view}{where}"


def sql_current_user() -> str:
    """Return the current principal: one row, one text."""
    return "SELECT current_user()"


def sql_current_version(field: str) -> str:
    """Return one field of the platform's version as `version` (docs: "current_version function")."""
    return f"SELECT current_version().{field} AS version"


def sql_memberships(groups: Sequence[str]) -> str:
    """Return one row: the current principal, then whether it is a member of each group of the account."""
    members = (
        f"is_account_group_member({sql_literal(group)}) AS member_{place}"
        for place, group in enumerate(groups)
    )
    return ", ".join(("SELECT current_user() AS who", *members))


def sql_catalog_rights(catalogs: Sequence[str], *, owner: str, all_users: str) -> str:
    """Return the rights of the current principal and its groups on catalogs: `catalog`, `grantee`, `privilege`.

    The `privilege` of an owner is `owner`.
    """
    return "\nUNION ALL\n".join(
        f"SELECT {sql_literal(name)} AS catalog, {principal} AS grantee, {privilege} AS privilege\n"
        f"FROM {quote_ident(name)}.information_schema.{view}\n"
        f"WHERE catalog_name = {sql_literal(name)} AND ({principal} = current_user() "
        f"OR {principal} = {sql_literal(all_users)} OR is_account_group_member({principal}))"
        for name in catalogs
        for view, principal, privilege in (
            ("catalogs", "catalog_owner", sql_literal(owner)),
            ("catalog_privileges", "grantee", "privilege_type"),
        )
    )


def sql_references_to(primary_key: str) -> str:
    """Return a query, to suggest to users, for the foreign keys of all catalogs that reference a key."""
    return (
        "SELECT constraint_catalog, constraint_schema, constraint_name FROM "
        f"system.information_schema.referential_constraints WHERE unique_constraint_name = {sql_literal(primary_key)}"
    )


def sql_audit_events(actions: Iterable[str], names: Iterable[str], *, since: datetime, limit: int) -> str:
    """Return Unity Catalog's audit events about tables and schemas (dotted lower-case names), newest first.

    The condition on `event_date` limits the partitions that the platform reads. Actions compare without case, because
    their case differs between versions of the log.
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


def sql_recent_reads(
    tables: Collection[str], columns: Mapping[str, Collection[str]], *, since: datetime, limit: int
) -> str:
    """Return who read tables and columns since a day, latest first, with the number of all readers in `readers`.

    The condition on `event_date` limits the partitions that the platform reads (docs: "Lineage system tables
    reference").

    Args:
        tables: keys of tables of which every read counts.
        columns: names in lower case, by table key.
    """
    conditions = {
        "table_lineage": [f"lower(source_table_full_name) IN ({_literals(tables)})"] if tables else [],
        "column_lineage": [
            f"(lower(source_table_full_name) = {sql_literal(key)} AND lower(source_column_name) IN "
            f"({_literals(names)}))"
            for key, names in sorted(columns.items())
        ],
    }
    reads = "\nUNION ALL\n".join(
        "SELECT lower(source_table_full_name) AS source_table, "
        f"{'lower(source_column_name)' if name == 'column_lineage' else 'CAST(NULL AS STRING)'} AS source_column, "
        "entity_type, entity_id, created_by, target_table_full_name AS target_table, event_time\n"
        f"FROM system.access.{name}\n"
        f"WHERE event_date >= DATE '{since:%Y-%m-%d}' AND ({' OR '.join(alternatives)})"
        for name, alternatives in conditions.items()
        if alternatives
    )
    reader = "source_table, source_column, entity_type, entity_id, created_by, target_table"
    return (
        f"SELECT {reader}, max(event_time) AS last_read, count(*) OVER () AS readers\n"
        f"FROM (\n{reads}\n)\n"
        f"GROUP BY {reader}\nORDER BY last_read DESC, {reader}\nLIMIT {limit}"
    )


def _literals(texts: Iterable[str]) -> str:
    return ", ".join(map(sql_literal, sorted(texts)))


def sql_count_violations(rows: str, conditions: Iterable[str], computed: Iterable[str]) -> str:
    """Return the query that counts violations per condition: one row, in the given order; unknown results count.

    Args:
        computed: aggregates that the query computes as well.
    """
    counts = [
        f"count_if({sql_violation(condition)}) AS violations_{place}"
        for place, condition in enumerate(conditions)
    ]
    values = [f"{value} AS values_{place}" for place, value in enumerate(computed)]
    return f"SELECT {', '.join((*counts, *values))} FROM {rows}"


def sql_count_where(table: str, conditions: Iterable[str]) -> str:
    """Return the query that counts the rows that meet each condition: one row, in the given order."""
    counts = (f"count_if({condition}) AS rows_{place}" for place, condition in enumerate(conditions))
    return f"SELECT {', '.join(counts)} FROM {table}"


def sql_violation(condition: str) -> str:
    """Return the condition of the rows that violate another condition."""
    return f"NOT coalesce(({with_portable_literals(condition)}), false)"


def sql_select(table: str, columns: Iterable[str]) -> str:
    """Return a subquery in parentheses, for FROM."""
    return f"(SELECT {', '.join(columns)} FROM {table})"


def sql_column_alias(expression: str, name: str) -> str:
    """Return an expression as a named column, for SELECT."""
    quoted = quote_ident(name)
    return quoted if expression == quoted else f"{expression} AS {quoted}"


def sql_null(data_type: DataType) -> str:
    """Return a NULL of a type."""
    return f"CAST(NULL AS {sql_data_type(data_type)})"


def sql_as_it_will_be(expression: str, observed: DataType, renamed: DataType, desired: DataType) -> str:
    """Return an expression with the desired fields, under their desired names; new fields are NULL.

    Args:
        renamed: the observed type with the desired names of its fields.
        desired: only the fields of this type count.
    """
    match observed, renamed, desired:
        case StructType(), StructType(), StructType():
            return _struct(expression, observed, renamed, desired)
        case ArrayType(element), ArrayType(renamed_element), ArrayType(desired_element):
            inside = sql_as_it_will_be("x", element, renamed_element, desired_element)
            return expression if inside == "x" else f"transform({expression}, x -> {inside})"
        case MapType(_, value), MapType(_, renamed_value), MapType(_, desired_value):
            inside = sql_as_it_will_be("x", value, renamed_value, desired_value)
            return expression if inside == "x" else f"transform_values({expression}, (k, x) -> {inside})"
    return expression


def _struct(expression: str, observed: StructType, renamed: StructType, desired: StructType) -> str:
    pairs = zip(observed.fields, renamed.fields, strict=True)
    existing = {named.name.lower(): (field, named) for field, named in pairs}
    fields = [
        (field.name, _field(expression, field, existing.get(field.name.lower()))) for field in desired.fields
    ]
    so_far = [(field.name, _inside(expression, field)) for field in observed.fields]
    if sorted(fields) == sorted(so_far):
        return expression
    named = ", ".join(f"{sql_literal(name)}, {value}" for name, value in fields)
    return f"IF({expression} IS NULL, NULL, named_struct({named}))"


def _field(expression: str, desired: StructField, existing: tuple[StructField, StructField] | None) -> str:
    if existing is None:
        return sql_null(desired.data_type)
    observed, renamed = existing
    inside = _inside(expression, observed)
    return sql_as_it_will_be(inside, observed.data_type, renamed.data_type, desired.data_type)


def _inside(expression: str, field: StructField) -> str:
    return f"{expression}.{quote_ident(field.name)}"
