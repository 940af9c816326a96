"""Conditions on governed tags, as policies have them in WHEN and MATCH COLUMNS.

They are calls of `has_tag` and `has_tag_value`, joined by AND, OR and NOT (docs: "Core concepts for ABAC"). The
platform shows them in other words: `hasTag` is the former name of `has_tag` (terraform-provider-databricks 5661).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from typing_extensions import assert_never

from delta_engine.sql.expressions import databricks_dialect
from delta_engine.sql.string_literals import with_portable_literals
from delta_engine.sql.text import sql_literal

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True, slots=True)
class HasTag:
    """Whether an object has a tag, with a value or with any; `value` None is any."""

    key: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Negation:
    """Whether a condition does not hold."""

    inner: TagCondition


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Whether both conditions hold."""

    left: TagCondition
    right: TagCondition


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Whether one of two conditions holds."""

    left: TagCondition
    right: TagCondition


TagCondition: TypeAlias = HasTag | Negation | Conjunction | Disjunction | bool
"""A condition; the constants TRUE and FALSE stand for themselves."""

_ARGUMENTS: Final = {"has_tag": 1, "hastag": 1, "has_tag_value": 2, "hastagvalue": 2}
"""The number of arguments by function, in lower case."""


@lru_cache(maxsize=1024)
def tag_condition(text: str) -> TagCondition:
    """Return what a condition says; ValueError with the reason for any other text."""
    from sqlglot import parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(with_portable_literals(text), dialect=databricks_dialect())
    except (SqlglotError, RecursionError) as error:
        raise ValueError("is not a SQL condition") from error
    return _condition(tree)


def is_same_condition(left: str | None, right: str | None) -> bool:
    """Whether two conditions say the same in other words; conditions of other functions compare as text."""
    return left == right or _normal(left) == _normal(right)


def present_spelling(text: str) -> str:
    """Return a condition in the present words of the platform; another text as it is."""
    try:
        return spelled_condition(tag_condition(text))
    except ValueError:
        return text


def holds(condition: TagCondition, tags: Mapping[str, str]) -> bool:
    """Whether a condition holds for an object with these tags, inherited ones included."""
    match condition:
        case HasTag(key, None):
            return key in tags
        case HasTag(key, value):
            return tags.get(key) == value
        case Negation(inner):
            return not holds(inner, tags)
        case Conjunction(left, right):
            return holds(left, tags) and holds(right, tags)
        case Disjunction(left, right):
            return holds(left, tags) or holds(right, tags)
        case bool(value):
            return value
    assert_never(condition)


def named_tags(condition: TagCondition) -> Iterator[HasTag]:
    """Yield the tags that a condition asks for, from left to right."""
    match condition:
        case HasTag():
            yield condition
        case Negation(inner):
            yield from named_tags(inner)
        case Conjunction(left, right) | Disjunction(left, right):
            yield from named_tags(left)
            yield from named_tags(right)
        case bool():
            pass
        case _:
            assert_never(condition)


def spelled_condition(condition: TagCondition) -> str:
    """Return a condition in the present words of the platform, with the parentheses that it needs."""
    match condition:
        case HasTag(key, None):
            return f"has_tag({sql_literal(key)})"
        case HasTag(key, str(value)):
            return f"has_tag_value({sql_literal(key)}, {sql_literal(value)})"
        case Negation(inner):
            return f"NOT {_inside(inner, Conjunction, Disjunction)}"
        case Conjunction(left, right):
            return f"{_inside(left, Disjunction)} AND {_inside(right, Conjunction, Disjunction)}"
        case Disjunction(left, right):
            return f"{spelled_condition(left)} OR {_inside(right, Disjunction)}"
        case bool(value):
            return str(value).upper()
    raise AssertionError(condition)


def _inside(condition: TagCondition, *weaker: type[TagCondition]) -> str:
    text = spelled_condition(condition)
    return f"({text})" if isinstance(condition, weaker) else text


def _normal(text: str | None) -> TagCondition | str:
    if not text or not text.strip():
        return ""
    try:
        return tag_condition(text)
    except ValueError:
        return " ".join(text.split())


def _condition(node: exp.Expr) -> TagCondition:
    from sqlglot import exp

    match node:
        case exp.Paren(this=inner):
            return _condition(inner)
        case exp.Not(this=inner):
            return Negation(_condition(inner))
        case exp.And(this=left, expression=right):
            return Conjunction(_condition(left), _condition(right))
        case exp.Or(this=left, expression=right):
            return Disjunction(_condition(left), _condition(right))
        case exp.Boolean(this=value):
            return bool(value)
        case exp.Anonymous(expressions=arguments) if node.name.lower() in _ARGUMENTS:
            return _has_tag(node.name, arguments)
    raise ValueError("contains something other than has_tag, has_tag_value, AND, OR and NOT")


def _has_tag(function: str, arguments: list[exp.Expr]) -> HasTag:
    from sqlglot import exp

    texts = [literal.name for literal in arguments if isinstance(literal, exp.Literal) and literal.is_string]
    if len(texts) != len(arguments) or len(texts) != _ARGUMENTS[function.lower()]:
        raise ValueError(
            f"calls {function} with other arguments than {_ARGUMENTS[function.lower()]} string literals"
        )
    return HasTag(*texts)
