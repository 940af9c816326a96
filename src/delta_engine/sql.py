"""SQL text: quoting, literals, types, and one pure builder per kind of statement.

Identifiers come in raw and are quoted here and nowhere else. A table comes in as the SQL that addresses
it (`addressing`), because a table by path is not three quoted parts. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from typing_extensions import assert_never

from delta_engine.model_parts import Identity, QualifiedName
from delta_engine.types import (
    ArrayType,
    AtomicType,
    CharacterType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    UnsupportedType,
)

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def quote_ident(name: str) -> str:
    """Return a raw identifier in backticks, with its own backticks doubled."""
    return "`" + name.replace("`", "``") + "`"


def sql_path(path: Sequence[str]) -> str:
    """Return the way to a field: a column's name and the steps into it, each quoted."""
    return ".".join(map(quote_ident, path))


def escape_sql_literal(text: str) -> str:
    r"""Return text as it stands between the quotes of a SQL string literal.

    A quote becomes `\'`, right in every Spark version (`''` means two literals side by side before
    Spark 4). `${` becomes `$\{`, which reads back as `${`: Spark substitutes variables inside literals
    (`spark.sql.variable.substitute`), and serverless does not let that be switched off.
    """
    return text.translate(_ESCAPES).replace("${", "$\\{")


def sql_literal(text: str) -> str:
    """Return text as a SQL string literal."""
    return f"'{escape_sql_literal(text)}'"


def sql_data_type(data_type: DataType) -> str:
    """Return a type as SQL that Spark and Databricks parse."""
    match data_type:
        case AtomicType(name):
            return name
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case CharacterType(name, length):
            return f"{name}({length})"
        case ArrayType(element):
            return f"array<{sql_data_type(element)}>"
        case MapType(key, value):
            return f"map<{sql_data_type(key)},{sql_data_type(value)}>"
        case StructType(fields):
            return f"struct<{', '.join(map(_struct_field, fields))}>"
        case UnsupportedType(text, reason):
            raise ValueError(f"type {text!r} has no SQL: {reason}")
    assert_never(data_type)


def sql_column_definition(
    path: Sequence[str], data_type: DataType, *, is_nullable: bool = True, extra: str = "", comment: str = ""
) -> str:
    """Return a column, or a field inside one, as CREATE TABLE and ADD COLUMNS declare it.

    Args:
        path: the column's name, and the way into it.
        data_type: its type.
        is_nullable: False for NOT NULL.
        extra: a clause between NOT NULL and COMMENT, such as DEFAULT; empty for none.
        comment: empty for none.
    """
    not_null = "" if is_nullable else " NOT NULL"
    clause = f" {extra}" if extra else ""
    return f"{sql_path(path)} {sql_data_type(data_type)}{not_null}{clause}{_comment(comment)}"


def sql_generation(generated_as: str | None, identity: Identity | None) -> str:
    """Return the clause for a column whose values the platform makes; empty for one that writers fill."""
    if identity is not None:
        kind = "ALWAYS" if identity.always else "BY DEFAULT"
        return f"GENERATED {kind} AS IDENTITY (START WITH {identity.start} INCREMENT BY {identity.step})"
    return "" if generated_as is None else f"GENERATED ALWAYS AS ({generated_as})"


def sql_default(expression: str) -> str:
    """Return the clause for a column's default."""
    return f"DEFAULT {expression}"


def sql_partitioned_by(columns: Sequence[str]) -> str:
    """Return the clause of CREATE TABLE for Hive-style partitions."""
    return f"PARTITIONED BY ({_idents(columns)})"


def sql_location(location: str) -> str:
    """Return the clause of CREATE TABLE for the place of an external table's files."""
    return f"LOCATION {sql_literal(location)}"


def sql_schema(catalog: str, schema: str) -> str:
    """Return the SQL that addresses a schema, as the catalog stores its name."""
    return f"{quote_ident(catalog.lower())}.{quote_ident(schema.lower())}"


def sql_create_schema(catalog: str, schema: str, comment: str = "") -> str:
    """Create a schema."""
    return f"CREATE SCHEMA {quote_ident(catalog)}.{quote_ident(schema)}{_comment(comment)}"


def sql_set_schema_comment(schema: str, comment: str) -> str:
    """Set a schema's comment; empty clears it. `schema` is the SQL that addresses it."""
    return f"COMMENT ON SCHEMA {schema} IS {sql_literal(comment)}"


def sql_create_table(
    table: str,
    *,
    columns: Sequence[str],
    constraints: Sequence[str] = (),
    comment: str = "",
    properties: Mapping[str, str],
    clauses: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
) -> str:
    """Create a Delta table whole, in one statement.

    There is no IF NOT EXISTS: it reports success when somebody else has just made a different table.

    Args:
        table: the SQL that addresses the table.
        columns: column definitions, in order.
        constraints: constraint clauses, after the columns.
        comment: the table's comment; empty for none.
        properties: table properties.
        clauses: further clauses of the table, in any order.
        cluster_by: the columns of liquid clustering.
    """
    body = ",\n  ".join((*columns, *constraints))
    table_comment = f"\nCOMMENT {sql_literal(comment)}" if comment else ""
    tblproperties = f"\nTBLPROPERTIES ({_pairs(properties)})" if properties else ""
    clustering = f"\nCLUSTER BY ({_idents(cluster_by)})" if cluster_by else ""
    further = "".join(f"\n{clause}" for clause in clauses)
    return (
        f"CREATE TABLE {table} (\n  {body}\n)\nUSING delta{clustering}{table_comment}{further}{tblproperties}"
    )


def sql_add_columns(table: str, definitions: Iterable[str]) -> str:
    """Add columns, all in one statement."""
    return f"ALTER TABLE {table} ADD COLUMNS ({', '.join(definitions)})"


def sql_drop_columns(table: str, paths: Iterable[Sequence[str]]) -> str:
    """Drop columns and fields, all in one statement."""
    return f"ALTER TABLE {table} DROP COLUMNS ({', '.join(map(sql_path, paths))})"


def sql_set_column_comments(table: str, comments: Iterable[tuple[Sequence[str], str]]) -> str:
    """Set (path, comment) pairs in one statement; an empty comment clears."""
    return _alter_columns(table, ((path, f"COMMENT {sql_literal(text)}") for path, text in comments))


def sql_set_not_null(table: str, paths: Iterable[Sequence[str]]) -> str:
    """Tighten columns to NOT NULL in one statement; Databricks checks the rows. Not in open Spark."""
    return _alter_columns(table, ((path, "SET NOT NULL") for path in paths))


def sql_drop_not_null(table: str, paths: Iterable[Sequence[str]]) -> str:
    """Make columns and fields nullable in one statement."""
    return _alter_columns(table, ((path, "DROP NOT NULL") for path in paths))


def sql_set_defaults(table: str, defaults: Iterable[tuple[str, str]]) -> str:
    """Set (name, expression) pairs as defaults in one statement; the table needs `allowColumnDefaults`."""
    return _alter_columns(table, (((name,), f"SET {sql_default(text)}") for name, text in defaults))


def sql_drop_defaults(table: str, names: Iterable[str]) -> str:
    """Take defaults away in one statement; a column without one is no error."""
    return _alter_columns(table, (((name,), "DROP DEFAULT") for name in names))


def sql_move_column(table: str, name: str, after: str | None) -> str:
    """Move a column behind another one; to the front without one.

    One statement per move: Spark does not count on the earlier moves of the same one (measured on 4.1.1).
    """
    place = "FIRST" if after is None else f"AFTER {quote_ident(after)}"
    return _alter_columns(table, [((name,), place)])


def sql_change_column_types(table: str, types: Iterable[tuple[Sequence[str], DataType]]) -> str:
    """Change (path, type) pairs in one statement; a path is a column's name and the way into it."""
    return _alter_columns(table, ((path, f"TYPE {sql_data_type(kind)}") for path, kind in types))


def sql_set_table_comment(table: str, comment: str) -> str:
    """Set the table's comment; empty clears it (warehouses refuse UNSET)."""
    return f"COMMENT ON TABLE {table} IS {sql_literal(comment)}"


def sql_on_streaming_table(statement: str) -> str:
    """Return a statement about a table as one about a streaming table (docs: "ALTER STREAMING TABLE")."""
    table = "ALTER TABLE "
    return (
        f"ALTER STREAMING TABLE {statement.removeprefix(table)}" if statement.startswith(table) else statement
    )


def sql_set_table_properties(table: str, properties: Mapping[str, str]) -> str:
    """Set properties; those not named stay as they are."""
    return f"ALTER TABLE {table} SET TBLPROPERTIES ({_pairs(properties)})"


def sql_unset_table_properties(table: str, keys: Iterable[str]) -> str:
    """Remove properties; a key that is not there is no error."""
    return f"ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ({', '.join(map(sql_literal, keys))})"


def sql_cluster_automatically(table: str) -> str:
    """Let the platform choose the columns by which it clusters a table."""
    return f"ALTER TABLE {table} CLUSTER BY AUTO"


def sql_alter_clustering(table: str, columns: Sequence[str]) -> str:
    """Cluster a table by other columns; by none, without any."""
    return f"ALTER TABLE {table} CLUSTER BY {f'({_idents(columns)})' if columns else 'NONE'}"


def sql_drop_table(table: str) -> str:
    """Drop a table. Databricks keeps a managed one for a while: `sql_undrop_table`."""
    return f"DROP TABLE {table}"


def sql_undrop_table(table: str) -> str:
    """Bring back a managed table that was dropped within the last seven days (docs: "UNDROP")."""
    return f"UNDROP TABLE {table}"


def sql_count_rows(table: str) -> str:
    """Count a table's rows, as one row with the column `row_count`; Delta answers from its log."""
    return f"SELECT count(*) AS row_count FROM {table}"


def sql_rename_table(observed: str, desired: str) -> str:
    """Give a table another name in its schema."""
    return f"ALTER TABLE {observed} RENAME TO {desired}"


def sql_rename_column(table: str, path: Sequence[str], desired: str) -> str:
    """Rename a column, or a field inside one; the table needs column mapping."""
    return f"ALTER TABLE {table} RENAME COLUMN {sql_path(path)} TO {quote_ident(desired)}"


def sql_primary_key(name: str, columns: Sequence[str], *, rely: bool = False) -> str:
    """Return the constraint clause of a primary key, for CREATE TABLE and ADD."""
    trusted = " NOT ENFORCED RELY" if rely else ""
    return f"CONSTRAINT {quote_ident(name)} PRIMARY KEY ({_idents(columns)}){trusted}"


def sql_add_primary_key(table: str, name: str, columns: Sequence[str], *, rely: bool = False) -> str:
    """Add a primary key to an existing table."""
    return f"ALTER TABLE {table} ADD {sql_primary_key(name, columns, rely=rely)}"


def sql_foreign_key(
    name: str,
    columns: Sequence[str],
    references: str,
    referenced_columns: Sequence[str],
    *,
    rely: bool = False,
) -> str:
    """Return the constraint clause of a foreign key, for CREATE TABLE and ADD.

    Args:
        name: the constraint's name.
        columns: the columns, in key order.
        references: the SQL that addresses the referenced table.
        referenced_columns: its columns, in key order.
        rely: whether the optimizer may trust it.
    """
    trusted = " NOT ENFORCED RELY" if rely else ""
    return (
        f"CONSTRAINT {quote_ident(name)} FOREIGN KEY ({_idents(columns)}) "
        f"REFERENCES {references} ({_idents(referenced_columns)}){trusted}"
    )


def sql_add_constraint(table: str, clause: str) -> str:
    """Add a constraint, given its clause, to an existing table."""
    return f"ALTER TABLE {table} ADD {clause}"


def sql_add_check(table: str, name: str, expression: str) -> str:
    """Add an enforced check; the platform scans the rows first."""
    return f"ALTER TABLE {table} ADD CONSTRAINT {quote_ident(name)} CHECK ({expression})"


def sql_not_null_condition(*path: str) -> str:
    """Return the condition that a column, or a field of a struct that is there, is not null."""
    named = ".".join(map(quote_ident, path))
    around = "".join(
        f"{'.'.join(map(quote_ident, path[:depth]))} IS NULL OR " for depth in range(1, len(path))
    )
    return f"{around}{named} IS NOT NULL"


def sql_column_alias(name: str, alias: str) -> str:
    """Return a column under another name, for SELECT."""
    return f"{quote_ident(name)} AS {quote_ident(alias)}"


def sql_null_column(name: str, data_type: DataType) -> str:
    """Return a column that is NULL in every row, for SELECT."""
    return f"CAST(NULL AS {sql_data_type(data_type)}) AS {quote_ident(name)}"


def sql_count_violations(table: str, columns: Iterable[str], conditions: Iterable[str]) -> str:
    """Count the rows that do not meet conditions, all in one row; an unknown answer is a no, as for CHECK.

    Args:
        table: the SQL that addresses the table.
        columns: what conditions may use besides the table's own columns.
        conditions: the conditions; the counts come back in their order.
    """
    counts = ", ".join(
        f"count_if(NOT coalesce(({condition}), false)) AS violations_{place}"
        for place, condition in enumerate(conditions)
    )
    return f"SELECT {counts} FROM (SELECT {', '.join(('*', *columns))} FROM {table})"


def sql_add_not_null_check(table: str, name: str, column: str) -> str:
    """Add an enforced check that a column is not null; the platform scans the rows first."""
    return f"ALTER TABLE {table} ADD CONSTRAINT {quote_ident(name)} CHECK ({quote_ident(column)} IS NOT NULL)"


def sql_drop_constraint(table: str, name: str, *, if_exists: bool = False) -> str:
    """Drop a constraint by the spelling the catalog has."""
    guard = "IF EXISTS " if if_exists else ""
    return f"ALTER TABLE {table} DROP CONSTRAINT {guard}{quote_ident(name)}"


def sql_set_tags(securable: str, tags: Mapping[str, str], column: str | None = None) -> str:
    """Set tags; those not named stay as they are.

    Args:
        securable: a table or a schema, such as ``TABLE `dev`.`silver`.`orders` ``.
        tags: values by key; the empty value makes a tag that is its key alone.
        column: the table's column that they are for; None for the table itself.
    """
    return f"ALTER {securable}{_of_column(column)} SET TAGS ({_pairs(tags)})"


def sql_unset_tags(securable: str, keys: Iterable[str], column: str | None = None) -> str:
    """Take tags away; the arguments are those of `sql_set_tags`."""
    return f"ALTER {securable}{_of_column(column)} UNSET TAGS ({', '.join(map(sql_literal, keys))})"


def sql_set_owner(securable: str, principal: str) -> str:
    """Give a table or a schema to somebody else; `securable` is that of `sql_set_tags`."""
    return f"ALTER {securable} OWNER TO {quote_ident(principal)}"


def sql_grant(securable: str, privileges: Iterable[str], principal: str) -> str:
    """Grant privileges on a table or a schema to one principal; `securable` is that of `sql_set_tags`."""
    return f"GRANT {', '.join(privileges)} ON {securable} TO {quote_ident(principal)}"


def sql_revoke(securable: str, privileges: Iterable[str], principal: str) -> str:
    """Revoke privileges of one principal; what it does not have is no error."""
    return f"REVOKE {', '.join(privileges)} ON {securable} FROM {quote_ident(principal)}"


def sql_row_filter(function: QualifiedName, columns: Sequence[str]) -> str:
    """Return the clause of a row filter, for SET and for WITH in CREATE TABLE."""
    return f"ROW FILTER {sql_function(function)} ON ({_idents(columns)})"


def sql_mask(function: QualifiedName, using_columns: Sequence[str]) -> str:
    """Return the clause of a column mask, for a column's definition and for SET."""
    using = f" USING COLUMNS ({_idents(using_columns)})" if using_columns else ""
    return f"MASK {sql_function(function)}{using}"


def sql_set_row_filter(table: str, clause: str) -> str:
    """Set a table's row filter, in one step if it has another one.

    Args:
        table: the SQL that addresses the table.
        clause: what `sql_row_filter` returns.
    """
    return f"ALTER TABLE {table} SET {clause}"


def sql_drop_row_filter(table: str) -> str:
    """Let everybody see all rows."""
    return f"ALTER TABLE {table} DROP ROW FILTER"


def sql_set_mask(table: str, column: str, clause: str) -> str:
    """Set a column's mask, in one step if it has another one.

    Args:
        table: the SQL that addresses the table.
        column: the column's name.
        clause: what `sql_mask` returns.
    """
    return f"ALTER TABLE {table}{_of_column(column)} SET {clause}"


def sql_drop_mask(table: str, column: str) -> str:
    """Let everybody see a column as it is."""
    return f"ALTER TABLE {table}{_of_column(column)} DROP MASK"


def sql_function(name: QualifiedName) -> str:
    """Return a function's three-part name, as the catalog stores it."""
    return ".".join(map(quote_ident, name.key.split(".")))


def sql_show_table_properties(table: str) -> str:
    """List a table's properties as rows of `key` and `value`."""
    return f"SHOW TBLPROPERTIES {table}"


def sql_describe_as_json(table: str) -> str:
    """Return one row with one text: everything about a table, as a JSON document."""
    return f"DESCRIBE TABLE EXTENDED {table} AS JSON"


def sql_show_create_table(table: str) -> str:
    """Return one row with one text: the statement that would create a table like this one."""
    return f"SHOW CREATE TABLE {table}"


def sql_current_user() -> str:
    """Return one row with one text: who runs it."""
    return "SELECT current_user()"


def sql_describe_table(table: str) -> str:
    """Return a table's columns, then its partition columns, then its details, as rows of `col_name` and `data_type`."""
    return f"DESCRIBE TABLE EXTENDED {table}"


def sql_describe_history(table: str, limit: int) -> str:
    """Return the latest commits of a Delta table, newest first, as rows of the documented history schema."""
    return f"DESCRIBE HISTORY {table} LIMIT {limit}"


def sql_describe_detail(table: str) -> str:
    """Return a row about a Delta table, with its `id`; it replays the log, so never for many tables."""
    return f"DESCRIBE DETAIL {table}"


def _idents(names: Iterable[str]) -> str:
    return ", ".join(map(quote_ident, names))


def _of_column(name: str | None) -> str:
    return "" if name is None else f" ALTER COLUMN {quote_ident(name)}"


def _comment(text: str) -> str:
    return f" COMMENT {sql_literal(text)}" if text else ""


def _struct_field(field: StructField) -> str:
    not_null = "" if field.is_nullable else " NOT NULL"
    return f"{quote_ident(field.name)}: {sql_data_type(field.data_type)}{not_null}{_comment(field.comment)}"


def _alter_columns(table: str, changes: Iterable[tuple[Sequence[str], str]]) -> str:
    # Several columns in one ALTER COLUMN are one commit. COLUMN stands once: repeating it is a parse
    # error in Spark 4.1.
    listed = ", ".join(f"{sql_path(path)} {change}" for path, change in changes)
    return f"ALTER TABLE {table} ALTER COLUMN {listed}"


def _pairs(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{sql_literal(key)} = {sql_literal(properties[key])}" for key in sorted(properties))
