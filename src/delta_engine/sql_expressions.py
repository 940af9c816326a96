"""SQL expressions that people write: compared in normal form, and looked into. Never changed, never run.

Platforms spell what they store their own way. What does not parse is compared as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

_MANY = 4096


def is_same_expression(one: str, other: str) -> bool:
    """Whether two expressions differ in spelling alone: case and quotes of names, parentheses, `!=` and `<>`."""
    return one == other or _normal_form(one) == _normal_form(other)


def referenced_columns(expression: str) -> frozenset[str]:
    """Return the columns that an expression reads, in lower case; of `address.zip` it is `address`.

    Nothing is known of an expression that does not parse: the set is empty.
    """
    return frozenset(place[0] for place in _read_places(expression))


def reads(expression: str, path: Sequence[str]) -> bool:
    """Whether an expression reads a place, something inside it, or something around it.

    Args:
        expression: it reads nothing that is known of, if it does not parse.
        path: a column, and the fields that lead to a place inside it, through structs alone.
    """
    place = [step.lower() for step in path]
    return any(
        all(one == other for one, other in zip(place, read, strict=False))
        for read in _read_places(expression)
    )


def condition_problem(expression: str) -> str | None:
    """Return why an expression cannot be a condition on single rows; None if it can.

    Databricks documentation, "ADD CONSTRAINT clause": no subqueries, no aggregates, no window functions.
    """
    from sqlglot import exp

    if "${" in expression:
        return "holds ${, which Spark takes for a variable"
    tree = _parsed(expression)
    if tree is None:
        return "is no SQL expression"
    if any(node.comments for node in tree.walk()):
        return "holds a comment"
    if tree.find(exp.Query):
        return "holds a subquery"
    if tree.find(exp.AggFunc, exp.Window):
        return "looks at more than one row"
    return None


@lru_cache(_MANY)
def _read_places(expression: str) -> frozenset[tuple[str, ...]]:
    """Return the paths, in lower case, of the columns and fields that an expression reads; up to a first `[…]`."""
    from sqlglot import exp

    places = set()
    tree = _parsed(expression)
    for column in tree.find_all(exp.Column) if tree else ():
        names, around = [part.name.lower() for part in column.parts], column.parent
        while isinstance(around, exp.Dot):
            names.append(around.name.lower())
            around = around.parent
        places.add(tuple(names))
    return frozenset(places)


@lru_cache(_MANY)
def _normal_form(expression: str) -> str:
    from sqlglot import exp

    tree = _parsed(expression)
    if tree is None:
        return expression.strip()
    try:
        plain = tree.unnest()
        for parentheses in list(plain.find_all(exp.Paren)):
            parentheses.replace(parentheses.this)
        for node in plain.walk():
            node.comments = None
            node.type = None
            match node:
                case exp.Identifier():
                    node.set("this", node.name.lower())
                    node.set("quoted", False)
                case exp.Anonymous():
                    node.set("this", node.name.lower())
                case exp.Literal(is_string=False):
                    node.set("this", _plain_number(node.name))
        return repr(plain)
    except RecursionError:
        return expression.strip()


def _parsed(expression: str) -> exp.Condition | None:
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        return parse_one(expression, dialect="databricks", into=exp.Condition)
    except (SqlglotError, RecursionError):
        return None


def _plain_number(text: str) -> str:
    """Return a decimal number without useless zeros; with an exponent it is a double, and stays as it is."""
    try:
        return text.lower() if "e" in text.lower() else f"{Decimal(text).normalize():f}"
    except InvalidOperation:
        return text
