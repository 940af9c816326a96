"""Conditions of the rows for which an expression fails: a cast of 'abc', a division by zero, an invalid date.

Each operation that may fail has a form that gives NULL instead (`try_cast`, `try_divide`, …). A row fails if that form
gives NULL although its operands have values. Operations that are not computed for a row, as in the other branch of a
CASE, do not count. An operand counts even where another one is NULL, for which Spark may skip it. All forms exist in
Spark 4.1 and Databricks Runtime 15.3 (docs: "Built-in functions").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final

from delta_engine.sql.expressions import databricks_dialect
from delta_engine.sql.string_literals import with_portable_literals

if TYPE_CHECKING:
    from sqlglot import Dialect, exp

_MAX_LENGTH: Final = 20_000
"""The length of a condition that a query and a message can bear."""

_TRIED: Final = {
    "aes_decrypt": "try_aes_decrypt",
    "element_at": "try_element_at",
    "mod": "try_mod",
    "parse_json": "try_parse_json",
    "to_binary": "try_to_binary",
    "to_number": "try_to_number",
    "to_timestamp": "try_to_timestamp",
}
"""Functions with another that gives NULL where they fail."""

_CASTS: Final = {
    **{name: name for name in ("bigint", "binary", "boolean", "date", "double", "float", "int")},
    **{name: name for name in ("smallint", "string", "timestamp", "tinyint")},
    "decimal": "decimal(10,0)",
    "to_date": "date",
    "to_timestamp_ltz": "timestamp_ltz",
    "to_timestamp_ntz": "timestamp_ntz",
}
"""Functions of one argument that cast it."""

_FIRST_VALUES: Final = ("coalesce", "ifnull", "nvl")


class _UnknownError(Exception):
    """The rows cannot be told: the operation runs for each element of an array, or for some keys of a DECODE."""


def failure_condition(expression: str) -> str | None:
    """Return the condition of the rows for which an expression fails; None if nothing in it can be tolerated."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(with_portable_literals(expression), dialect=_verbatim_dialect(), into=exp.Condition)
        condition = _fails(tree)
    except (SqlglotError, RecursionError, _UnknownError):
        return None
    return condition if condition is not None and len(condition) <= _MAX_LENGTH else None


def _fails(node: exp.Expr) -> str | None:
    """Return the condition under which a node, or one that it computes, fails; None for never."""
    from sqlglot import exp

    match node:
        case exp.Case():
            return _case(_case_steps(node), node.args.get("default"))
        case exp.If():
            return _case([(node.this, _sql(node.this), node.args["true"])], node.args.get("false"))
        case exp.And():
            return _case([(node.left, f"NOT coalesce({_sql(node.left)}, true)", None)], node.right)
        case exp.Or():
            return _case([(node.left, f"coalesce({_sql(node.left)}, false)", None)], node.right)
        case exp.Anonymous() if node.name.lower() in _FIRST_VALUES:
            steps = [(expression, f"{_sql(expression)} IS NOT NULL", None) for expression in node.expressions]
            return _case(steps, None)
        case exp.Anonymous() if node.name.lower() == "nvl2":
            first, present, missing = node.expressions
            return _case([(first, f"{_sql(first)} IS NOT NULL", present)], missing)
        case exp.Lambda() | exp.DecodeCase():
            if _tolerant(node) != node:
                raise _UnknownError
            return None
    inside = [_fails(child) for child in node.iter_expressions()]
    return _any_of([*inside, _fails_itself(node)])


def _case_steps(case: exp.Case) -> Iterator[tuple[exp.Expr, str, exp.Expr | None]]:
    for branch in case.args["ifs"]:
        compared = f"{_sql(case.this)} = {_sql(branch.this)}" if case.this else _sql(branch.this)
        yield branch.this, compared, branch.args["true"]


def _case(steps: Iterable[tuple[exp.Expr, str, exp.Expr | None]], otherwise: exp.Expr | None) -> str | None:
    """Return when a computation fails that stops at the first condition which holds.

    Args:
        steps: what is computed first, the condition, and what is computed if it holds.
        otherwise: what is computed if none holds.
    """
    branches, is_possible = [], False
    for computed, condition, then in steps:
        if failure := _fails(computed):
            branches.append(f"WHEN {failure} THEN true")
        inside = None if then is None else _fails(then)
        branches.append(f"WHEN {condition} THEN {inside or 'false'}")
        is_possible = is_possible or bool(failure or inside)
    last = None if otherwise is None else _fails(otherwise)
    if not (is_possible or last):
        return None
    return f"CASE {' '.join(branches)} ELSE {last or 'false'} END"


def _fails_itself(node: exp.Expr) -> str | None:
    """Return when an operation fails whose operands do not."""
    from sqlglot import exp

    if _tolerated(node.copy()) is None or _is_cast_twice(node):
        return None
    if _is_element(node):
        array, place = _operands(node)
        size = f"size({_sql(array)})"
        if isinstance(node, exp.Bracket):
            return f"({_sql(array)} IS NOT NULL AND {_sql(place)} >= {size})"
        return f"({_sql(array)} IS NOT NULL AND abs({_sql(place)}) > {size})"
    there = [
        f"{_sql(operand)} IS NOT NULL"
        for operand in _operands(node)
        if not isinstance(operand.unnest(), exp.Literal)
    ]
    return f"({' AND '.join([f'{_sql(node)} IS NULL', *there])})"


def _is_cast_twice(node: exp.Expr) -> bool:
    from sqlglot import exp

    if not isinstance(node, exp.Cast):
        return False
    inside = node.this.unnest()
    return isinstance(inside, exp.Cast) and bool(inside.to == node.to)


def _operands(node: exp.Expr) -> Sequence[exp.Expr]:
    from sqlglot import exp

    match node:
        case exp.Binary():
            return [node.left, node.right]
        case exp.Bracket():
            return [node.this, *node.expressions]
        case exp.Cast():
            return [node.this]
    return list(node.expressions)


def _is_element(node: exp.Expr) -> bool:
    from sqlglot import exp

    is_call = isinstance(node, exp.Anonymous) and node.name.lower() == "element_at"
    return is_call or isinstance(node, exp.Bracket)


def _tolerant(tree: exp.Expr) -> exp.Expr:
    """Return an expression that gives NULL wherever it can be told to, instead of failing."""
    root = tree.copy()
    for node in reversed(list(root.walk())):  # operands before the operations on them
        tolerated = _tolerated(node)
        if tolerated is None:
            continue
        if node is root:
            root = tolerated
        else:
            node.replace(tolerated)
    return root


def _tolerated(node: exp.Expr) -> exp.Expr | None:
    """Return the form of one operation that gives NULL instead of failing; None if no such form exists."""
    from sqlglot import exp

    match node:
        case exp.Cast() if type(node) is exp.Cast and not isinstance(node.this, exp.Literal):
            return exp.TryCast(this=node.this, to=node.to)
        case exp.IntDiv():
            return exp.IntDiv(this=node.left, expression=_call("nullif", node.right, exp.Literal.number(0)))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            tried = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "mod": "mod"}
            return _call(f"try_{tried[node.key]}", node.left, node.right)
        case exp.Bracket(expressions=[exp.Literal(is_string=False) as place]):
            return _call("get", node.this, place)
        case exp.Anonymous():
            return _tolerated_call(node.name.lower(), node.expressions)
    return None


def _tolerated_call(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr | None:
    from sqlglot import exp

    match name, arguments:
        case "to_date", [text, form]:
            return _cast(_call("try_to_timestamp", text, form), "date")
        case _, [value] if name in _CASTS:
            return _cast(value, _CASTS[name])
        case "element_at", [_, exp.Literal(is_string=True)]:
            return None  # of a map, where a missing key gives NULL
    return _call(_TRIED[name], *arguments) if name in _TRIED else None


def _cast(value: exp.Expr, data_type: str) -> exp.Expr:
    from sqlglot import exp

    return exp.TryCast(this=value, to=exp.DataType.build(data_type, dialect=_verbatim_dialect()))


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    from sqlglot import exp

    return exp.Anonymous(this=name, expressions=list(arguments))


def _any_of(conditions: Iterable[str | None]) -> str | None:
    distinct = list(dict.fromkeys(condition for condition in conditions if condition))
    if len(distinct) > 1:
        return f"({' OR '.join(distinct)})"
    return distinct[0] if distinct else None


def _sql(node: exp.Expr) -> str:
    """Return the SQL of the tolerant form, in parentheses unless it is a single term."""
    from sqlglot import exp

    tolerant = _tolerant(node)
    text = tolerant.sql(dialect=_verbatim_dialect())
    is_term = isinstance(tolerant, (exp.Column, exp.Func, exp.Literal, exp.Paren, exp.Dot, exp.Bracket))
    return text if is_term and not isinstance(tolerant, exp.Connector) else f"({text})"


@cache
def _verbatim_dialect() -> type[Dialect]:
    """Return the dialect that writes each function call as it was read: others change date formats and names."""
    parent = databricks_dialect()

    class Verbatim(parent):  # type: ignore[misc, valid-type]  # a variable, to type checkers
        class Parser(parent.Parser):  # type: ignore[misc, name-defined]  # the same
            FUNCTIONS: ClassVar[dict[str, object]] = {}

    return Verbatim
