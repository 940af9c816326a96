"""SQL expressions that people write: compared in normal form, and looked into. Never changed, never run.

Platforms spell what they store their own way. What does not parse is compared as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from delta_engine.sql.dialect import databricks_dialect

if TYPE_CHECKING:
    from sqlglot import Token, exp

_MANY: Final = 4096

_AGGREGATES: Final = frozenset(
    {
        *("bitmap_construct_agg", "bitmap_or_agg", "count_min_sketch", "every", "histogram_numeric"),
        *("hll_sketch_agg", "hll_union_agg", "schema_of_json_agg", "schema_of_variant_agg"),
        *("schema_of_xml_agg", "some", "try_avg", "try_sum"),
    }
)
"""Functions over many rows that the parser does not know as such (Databricks documentation, "Built-in functions")."""

_GENERATORS: Final = frozenset(
    {
        *("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer"),
        *("stack", "json_tuple", "variant_explode", "variant_explode_outer"),
    }
)

_UNSTEADY: Final = frozenset({"rand", "random", "randn", "randstr", "shuffle", "uniform", "uuid"})

_OF_THE_MOMENT: Final = frozenset(
    {
        *("current_catalog", "current_date", "current_schema", "current_time", "current_timestamp"),
        *("current_timezone", "current_user", "localtimestamp", "session_user", "user"),
    }
)

_CASTING: Final = frozenset(("cast", "as"))
_TYPES: Final = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "dec": "decimal"}
"""Words for types that are the same for Spark; `a::int` is a cast as well."""


def is_same_expression(one: str, other: str) -> bool:
    """Whether two expressions differ in spelling alone: case and quotes of names, parentheses, `!=` and `<>`.

    The parser takes more for the same than is: formats of dates, texts of a length, functions with arguments the other
    way round. So names, texts and numbers have to be the same as well: rather a needless change than a missing one.
    """
    if one == other:
        return True
    return _normal_form(one) == _normal_form(other) and _words(one) == _words(other)


def referenced_columns(expression: str) -> frozenset[str]:
    """Return the columns that an expression reads, in lower case; of `address.zip` it is `address`.

    Nothing is known of an expression that does not parse: the set is empty.
    """
    return frozenset(place[0] for place in read_places(expression))


def read_places(expression: str) -> frozenset[tuple[str, ...]]:
    """Return the paths, in lower case, of the columns and fields that an expression reads; up to a first `[…]`.

    Nothing is known of an expression that does not parse.
    """
    return _read_places(expression) or frozenset()


def reads(expression: str, path: Sequence[str]) -> bool:
    """Whether an expression reads a place, something inside it, or something around it.

    Args:
        expression: any word of it may be a column, if it does not parse: whoever stored it could read it.
        path: a column, and the fields that lead to a place inside it, through structs alone.
    """
    place, places = [step.lower() for step in path], _read_places(expression)
    if places is None:
        return place[0] in {token.text.lower() for token in _tokens(expression) if not _is_text(token)}
    return any(all(one == other for one, other in zip(place, read, strict=False)) for read in places)


def expression_problem(expression: str) -> str | None:
    """Return why an expression cannot give a value for a single row; None if it can.

    No subqueries, no aggregates, window functions and generators, no parameters, nothing that draws lots (Databricks
    documentation, "ADD CONSTRAINT clause" and "CREATE TABLE"). Delta 4.3.1 takes a CHECK with a subquery or `rand()`,
    and then fails every write.
    """
    from sqlglot import exp

    if "${" in expression:
        return "holds ${, which Spark takes for a variable"
    tree = _parsed(expression)
    if tree is None or isinstance(tree, exp.Command) or _ends_early(expression):
        return "is no SQL expression"
    if any(node.comments for node in tree.walk()):
        return "holds a comment"
    if tree.find(exp.Placeholder, exp.Parameter):
        return "holds a parameter"
    if tree.find(exp.Query):
        return "holds a subquery"
    functions = set(_functions(tree))
    if tree.find(exp.AggFunc, exp.Window) or functions & _AGGREGATES or _counts_any(tree):
        return "looks at more than one row"
    if functions & _GENERATORS:
        return "makes several rows of one"
    if functions & _UNSTEADY:
        return "gives another value each time"
    return "holds a *" if tree.find(exp.Star) else None


def generation_problem(expression: str) -> str | None:
    """Return why the values of a column cannot be computed by an expression; None if they can.

    Delta takes functions alone that give the same at any time, for anybody (measured on 4.3.1).
    """
    problem = expression_problem(expression)
    if problem is None and set(_functions(_parsed(expression))) & _OF_THE_MOMENT:
        return "depends on when it is computed, or for whom"
    return problem


def condition_problem(expression: str) -> str | None:
    """Return why an expression cannot be a condition that rows meet or do not; None if it can."""
    from sqlglot import exp

    tree = _parsed(expression)
    plain = tree.unnest() if tree else None
    if isinstance(plain, (exp.Literal, exp.Null, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)):
        return expression_problem(expression) or "is no condition"
    return expression_problem(expression)


def is_text_literal(expression: str) -> bool:
    """Whether an expression is a text in quotes, and nothing else."""
    from sqlglot import exp

    tree = _parsed(expression)
    plain = tree.unnest() if tree else None
    return isinstance(plain, exp.Literal) and bool(plain.is_string)


@lru_cache(_MANY)
def _read_places(expression: str) -> frozenset[tuple[str, ...]] | None:
    """Return what `read_places` does, and None for an expression that does not parse."""
    from sqlglot import exp

    places = set()
    tree = _parsed(expression)
    if tree is None:
        return None
    for column in tree.find_all(exp.Column):
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
                    node.set("this", node.name.lower())
        return repr(plain)
    except RecursionError:
        return expression.strip()


def _parsed(expression: str) -> exp.Condition | None:
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        return parse_one(expression, dialect=databricks_dialect(), into=exp.Condition)
    except (SqlglotError, RecursionError):
        return None


def _ends_early(expression: str) -> bool:
    from sqlglot import TokenType

    return any(token.token_type is TokenType.SEMICOLON for token in _tokens(expression))


def _functions(tree: exp.Condition | None) -> Iterator[str]:
    """Yield the names of the functions that are called, in lower case."""
    from sqlglot import exp

    for call in tree.find_all(exp.Func) if tree else ():
        yield call.name.lower() if isinstance(call, exp.Anonymous) else call.sql_name().lower()


def _counts_any(tree: exp.Condition) -> bool:
    """Whether the aggregate `any` is called: it stands behind LIKE as well."""
    from sqlglot import exp

    return any(not isinstance(one.parent, (exp.Like, exp.ILike)) for one in tree.find_all(exp.Any))


@lru_cache(_MANY)
def _words(expression: str) -> tuple[tuple[bool, str], ...]:
    """Return the texts, and the names and numbers of an expression, sorted; those in lower case, types by one name."""
    from sqlglot import TokenType

    found = []
    for token in _tokens(expression):
        word = token.text.lower()
        if _is_text(token):
            found.append((True, token.text))
        elif token.token_type is TokenType.NOT:
            found.append((False, "not"))
        elif any(character.isalnum() for character in word) and word not in _CASTING:
            found.append((False, _TYPES.get(word, word)))
    return tuple(sorted(found))


def _is_text(token: Token) -> bool:
    from sqlglot import TokenType

    texts = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.NATIONAL_STRING)
    return token.token_type in texts


def _tokens(expression: str) -> Sequence[Token]:
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    try:
        return tokenize(expression, dialect=databricks_dialect())
    except SqlglotError:
        return ()
