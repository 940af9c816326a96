"""Reads the bodies of functions: what the platform cannot take, what they call, and which tables they read.

A body stays opaque text: nothing here changes or compares it.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping, Sequence, Set
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Final

from typing_extensions import assert_never

from delta_engine.models.functions import Function, FunctionLanguage, FunctionName
from delta_engine.sql.expressions import databricks_dialect
from delta_engine.sql.functions import submitted_body
from delta_engine.sql.string_literals import with_portable_literals

if TYPE_CHECKING:
    from sqlglot import Token, exp

MAX_BODY_BYTES: Final = 2**20
"""The largest body. The platform documents no limit; a larger one is data, not a function."""

_VARIABLE_FIX: Final = {
    FunctionLanguage.SQL: "Remove it from the comment or the name; the engine escapes it in string literals.",
    FunctionLanguage.PYTHON: "Separate the two characters, as in '$' + '{x}'.",
}


def body_problem(function: Function) -> tuple[str, str] | None:
    """Return why no platform can run a body, and the fix; None if nothing is certain to fail."""
    body = submitted_body(function)
    if not body.strip():
        return "its body is empty", "Write the body, or name its file as body_file."
    if len(body.encode()) > MAX_BODY_BYTES:
        return f"its body is larger than {MAX_BODY_BYTES >> 20} MiB", "Put the data into a table."
    if "\0" in body:
        return "its body contains a NUL character", "Remove it."
    if "${" in body:
        return "its body contains ${, which Spark reads as a variable", _VARIABLE_FIX[function.language]
    return _sql_problem(body) if function.language is FunctionLanguage.SQL else None


def body_doubt(function: Function) -> str | None:
    """Return why a body may be invalid; None if a parser reads it. The platform's own parser knows more."""
    body = submitted_body(function)
    match function.language:
        case FunctionLanguage.SQL:
            return None if _parsed(body) else "sqlglot does not read its body as SQL"
        case FunctionLanguage.PYTHON:
            return _python_doubt(body)
    assert_never(function.language)


def called_functions(function: Function) -> frozenset[FunctionName]:
    """Return the functions that a function calls; see `called_by`."""
    return called_by(function.qualified_name, function.language, submitted_body(function))


def called_by(home: FunctionName, language: FunctionLanguage, body: str) -> frozenset[FunctionName]:
    """Return the functions that a SQL body calls by a qualified name, completed from the function's own name.

    A name without a schema is that of a built-in function, or depends on the session.
    """
    if language is FunctionLanguage.PYTHON:
        return frozenset()
    return frozenset(_whole_name(parts, home) for parts in qualified_calls(sql_tokens(body)))


def call_cycles(calls: Mapping[str, Set[str]]) -> list[tuple[str, ...]]:
    """Return the groups of functions that call each other in a circle, each sorted; `calls` has keys by key."""
    try:
        TopologicalSorter(calls).prepare()  # finds in one pass that there are none
    except CycleError:
        pass
    else:
        return []
    reached = {key: _reached(key, calls) for key in calls}
    groups = {
        tuple(sorted(other for other in reached[key] if key in reached.get(other, ())))
        for key in calls
        if key in reached[key]
    }
    return sorted(groups)


def _reached(start: str, calls: Mapping[str, Set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        called = calls.get(waiting.pop(), frozenset()) - reached
        reached |= called
        waiting += called
    return reached


def _sql_problem(body: str) -> tuple[str, str] | None:
    from sqlglot import TokenType

    tokens = sql_tokens(body)
    if not tokens:
        return "its body is not SQL: a string, a quoted name or a comment does not end", "Close it."
    if tokens[0].text.upper() == "RETURN":
        return "its body begins with RETURN, which the engine writes", "Remove the word RETURN."
    depth = 0
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            return "its body contains a semicolon", "Write one expression or one query, without a semicolon."
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth < 0:
            break
    if depth:
        return "its body has an unmatched parenthesis", "Close or remove it."
    return None


def _python_doubt(body: str) -> str | None:
    """Return why a body is no Python; that of the engine may be older than that of the platform."""
    try:
        tree = ast.parse("def function():\n" + textwrap.indent(textwrap.dedent(body), "    ", lambda _: True))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" in line {error.lineno - 1}" if isinstance(error, SyntaxError) and error.lineno else ""
        return f"its body is not valid Python{line}: {error.msg if isinstance(error, SyntaxError) else error}"
    returns = any(isinstance(node, ast.Return) for node in ast.walk(tree))
    return None if returns else "its body returns nothing: write return"


def _parsed(body: str) -> exp.Expr | None:
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(body, dialect=databricks_dialect())
    except (SqlglotError, RecursionError):
        return None
    is_value = isinstance(tree, exp.Query | exp.Condition | exp.Subquery)
    return tree if is_value and not isinstance(tree, exp.Command) else None


def sql_tokens(sql: str) -> Sequence[Token]:
    """Return the tokens of SQL; none if a string, a quoted name or a comment does not end."""
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    try:
        return tokenize(with_portable_literals(sql), dialect=databricks_dialect())
    except SqlglotError:
        return ()


def qualified_calls(tokens: Sequence[Token]) -> Iterator[tuple[str, ...]]:
    """Yield the names of two or three parts before parentheses; sqlglot's tree loses those of built-in functions."""
    from sqlglot import TokenType

    parts: list[str] = []
    is_open = False  # whether a dot came last
    for token in tokens:
        if token.token_type is TokenType.DOT:
            is_open = bool(parts)
        elif token.token_type is TokenType.L_PAREN and not is_open:
            if 2 <= len(parts) <= 3:
                yield tuple(parts)
            parts = []
        elif token.token_type is not TokenType.STRING and _is_name(token):
            parts = [*parts, token.text] if is_open else [token.text]
            is_open = False
        else:
            parts, is_open = [], False


def _is_name(token: Token) -> bool:
    from sqlglot import TokenType

    return token.token_type is TokenType.IDENTIFIER or token.text.isidentifier()


def _whole_name(parts: Sequence[str], home: FunctionName) -> FunctionName:
    return FunctionName(*(home.catalog, home.schema)[: 3 - len(parts)], *parts)
