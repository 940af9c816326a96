"""Statements about views (docs: "CREATE VIEW", "ALTER VIEW", "DROP VIEW", "COMMENT ON").

Tags, grants and owners are those of every securable: `sql.governance` takes `view_securable`, and for the tags of
columns `view_as_table`, because ALTER VIEW does not take them (github.com/databricks/dbt-databricks/pull/1134).
"""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine.models.views import SchemaMode, View, ViewColumn, ViewName
from delta_engine.sql.tables import sql_set_comment
from delta_engine.sql.text import quote_ident, sql_comment, sql_literal, sql_path
from delta_engine.sql.view_queries import named_columns, submitted_query


def view_securable(name: ViewName) -> str:
    """Return a view as statements about any securable name it."""
    return f"VIEW {sql_path(name.parts)}"


def view_as_table(name: ViewName) -> str:
    """Return a view as the statements name it that take tables and views alike."""
    return f"TABLE {sql_path(name.parts)}"


def sql_create_view(view: View, *, replaces: bool = False) -> str:
    """Create a view with all that the statement takes of it: comments of columns only where `takes_comments` is true.

    Replacing a view drops its grants and its identity (docs: "CREATE VIEW"), so Unity Catalog's views are altered.
    """
    verb = "CREATE OR REPLACE" if replaces else "CREATE"
    mode = "" if view.schema_mode is None else f" {_schema_mode(view.schema_mode)}"
    return (
        f"{verb} {view_securable(view.qualified_name)}{_column_list(view)}{mode}{sql_comment(view.comment)} AS\n"
        f"{submitted_query(view.query)}"
    )


def takes_comments(view: View) -> bool:
    """Whether CREATE VIEW can take the comments of columns: its list has to name every column.

    With a list, the platform treats EVOLUTION as TYPE EVOLUTION (docs of Spark: "CREATE VIEW"; measured).
    """
    return not view.evolves and named_columns(view.query) is not None


def sql_alter_view_query(name: ViewName, query: str) -> str:
    """Give a view another query. It loses all comments of columns; grants and identity stay."""
    return f"ALTER {view_securable(name)} AS\n{submitted_query(query)}"


def sql_set_schema_mode(name: ViewName, mode: SchemaMode) -> str:
    """Change what a view does when the columns that it reads change."""
    return f"ALTER {view_securable(name)} {_schema_mode(mode)}"


def sql_set_view_comment(name: ViewName, comment: str) -> str:
    """Set the comment of a view of Unity Catalog; empty clears it."""
    return sql_set_comment(view_as_table(name), comment)


def sql_set_session_view_comment(name: ViewName, comment: str) -> str:
    """Set the comment of a view of Spark's session catalog, where COMMENT ON takes tables only (measured)."""
    return f"ALTER {view_securable(name)} SET TBLPROPERTIES ('comment' = {sql_literal(comment)})"


def sql_set_view_column_comment(name: ViewName, column: str, comment: str) -> str:
    """Set the comment of a view's column; Databricks Runtime 16.1 and above."""
    return f"COMMENT ON COLUMN {sql_path((*name.parts, column))} IS {sql_literal(comment)}"


def sql_rename_view(name: ViewName, target: Sequence[str]) -> str:
    """Rename a view; Spark's session catalog takes a target of schema and name (measured)."""
    return f"ALTER {view_securable(name)} RENAME TO {sql_path(target)}"


def sql_describe_query(query: str) -> str:
    """Ask for the columns that a query returns, without running it (docs: "DESCRIBE QUERY")."""
    return f"DESCRIBE QUERY {submitted_query(query)}"


def sql_drop_view(name: ViewName) -> str:
    """Drop a view."""
    return f"DROP {view_securable(name)}"


def sql_drop_view_if_exists(name: ViewName) -> str:
    """Drop a view that may be missing."""
    return f"DROP VIEW IF EXISTS {sql_path(name.parts)}"


def _schema_mode(mode: SchemaMode) -> str:
    return f"WITH SCHEMA {mode.value.upper()}"


def _column_list(view: View) -> str:
    comments = {column.key: column.comment for column in view.columns if column.comment}
    columns = named_columns(view.query) if comments and takes_comments(view) else None
    if columns is None:
        return ""
    listed = (_column(ViewColumn(name, comments.get(name.lower(), ""))) for name in columns)
    return f" ({', '.join(listed)})"


def _column(column: ViewColumn) -> str:
    return f"{quote_ident(column.name)}{sql_comment(column.comment)}"
