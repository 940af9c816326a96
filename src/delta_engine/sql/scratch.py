"""Statements about scratch objects: functions and schemas that the engine makes to try a platform, and drops."""

from __future__ import annotations

from delta_engine.models.parts import QualifiedName
from delta_engine.sql.text import quote_ident, sql_function


def sql_create_function(function: QualifiedName, parameter: str, returned: str, expression: str) -> str:
    """Create a SQL function of one parameter (docs: "CREATE FUNCTION").

    Args:
        function: its name.
        parameter: the parameter's type; its name is `x`.
        returned: the type that it returns.
        expression: what it returns.
    """
    return f"CREATE FUNCTION {sql_function(function)}(x {parameter}) RETURNS {returned} RETURN {expression}"


def sql_drop_function(function: QualifiedName) -> str:
    """Drop a function, if it is there."""
    return f"DROP FUNCTION IF EXISTS {sql_function(function)}"


def sql_drop_empty_schema(catalog: str, schema: str) -> str:
    """Drop a schema, if it is there; the platform refuses it while anything is in it."""
    return f"DROP SCHEMA IF EXISTS {quote_ident(catalog.lower())}.{quote_ident(schema.lower())} RESTRICT"
