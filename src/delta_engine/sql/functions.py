"""Statements about functions (docs: "CREATE FUNCTION (SQL and Python)", "DROP FUNCTION", "SET TAG", "UNSET TAG").

Grants and owners are those of every securable: `sql.governance` takes `function_securable`.
"""

from __future__ import annotations

from itertools import count

from typing_extensions import assert_never

from delta_engine.models.functions import Function, FunctionLanguage, FunctionName, Parameter
from delta_engine.sql.string_literals import with_portable_literals
from delta_engine.sql.text import quote_ident, sql_comment, sql_data_type, sql_path


def function_securable(name: FunctionName) -> str:
    """Return a function as statements about any securable name it."""
    return f"FUNCTION {sql_path(name.parts)}"


def sql_create_function(function: Function, *, replaces: bool = False) -> str:
    """Create a function, or replace one of the same signature: its body, result, comments and defaults."""
    verb = "CREATE OR REPLACE" if replaces else "CREATE"
    parameters = ", ".join(map(_parameter, function.parameters))
    return (
        f"{verb} {function_securable(function.qualified_name)}({parameters})"
        f" RETURNS {sql_data_type(function.returns)}{_characteristics(function)} {_body(function)}"
    )


def sql_drop_function(name: FunctionName) -> str:
    """Drop a function. What uses it fails afterwards, so nothing may use it."""
    return f"DROP {function_securable(name)}"


def sql_drop_function_if_exists(name: FunctionName) -> str:
    """Drop a function that may be missing."""
    return f"DROP FUNCTION IF EXISTS {sql_path(name.parts)}"


def sql_describe_function(name: FunctionName) -> str:
    """Describe a function: a row per line. Only Spark's session catalog describes bodies this way (measured)."""
    return f"DESCRIBE FUNCTION EXTENDED {sql_path(name.parts)}"


def sql_set_function_tag(name: FunctionName, key: str, value: str) -> str:
    """Set a tag; key and value are identifiers there. Functions take tags from Databricks Runtime 18.1."""
    assigned = f" = {quote_ident(value)}" if value else ""
    return f"SET TAG ON {function_securable(name)} {quote_ident(key)}{assigned}"


def sql_unset_function_tag(name: FunctionName, key: str) -> str:
    """Remove a tag, which must exist."""
    return f"UNSET TAG ON {function_securable(name)} {quote_ident(key)}"


def submitted_body(function: Function) -> str:
    """Return the body as CREATE FUNCTION submits it, which is what the record has of it."""
    return submitted_text(function.language, function.body)


def submitted_text(language: FunctionLanguage, body: str) -> str:
    """Return a body as CREATE FUNCTION submits it; the result maps to itself."""
    match language:
        case FunctionLanguage.SQL:
            return with_portable_literals(body.strip())
        case FunctionLanguage.PYTHON:
            return body.strip("\r\n")
    assert_never(language)


def _parameter(parameter: Parameter) -> str:
    default = (
        "" if parameter.default is None else f" DEFAULT {with_portable_literals(parameter.default.strip())}"
    )
    name, data_type = quote_ident(parameter.name), sql_data_type(parameter.data_type)
    return f"{name} {data_type}{default}{sql_comment(parameter.comment)}"


def _characteristics(function: Function) -> str:
    language = " LANGUAGE PYTHON" if function.language is FunctionLanguage.PYTHON else ""
    deterministic = {None: "", True: " DETERMINISTIC", False: " NOT DETERMINISTIC"}[function.is_deterministic]
    return f"{language}{deterministic}{sql_comment(function.comment)}"


def _body(function: Function) -> str:
    body = submitted_body(function)
    match function.language:
        case FunctionLanguage.SQL:
            return f"RETURN {body}"
        case FunctionLanguage.PYTHON:
            quote = _dollar_quote(body)
            return f"AS {quote}\n{body}\n{quote}"
    assert_never(function.language)


def _dollar_quote(body: str) -> str:
    """Return the shortest of `$$`, `$py1$`, `$py2$`, … that a body does not contain."""
    quotes = (f"$py{number}$" if number else "$$" for number in count())
    return next(quote for quote in quotes if quote not in body)
