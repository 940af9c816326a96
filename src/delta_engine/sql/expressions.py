"""Compares and inspects SQL expressions of models and catalogs; never changes or runs them.

Each platform has its own spelling of stored expressions. Expressions that do not parse are compared as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlglot import Token, exp
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from delta_engine.models import Column
from delta_engine.models.types import ArrayType, DataType, StructType
from delta_engine.sql.string_literals import with_portable_literals
from delta_engine.sql.text import sql_literal

if TYPE_CHECKING:
    from sqlglot import Dialect

_CACHE_SIZE: Final = 4096

_AGGREGATES: Final = frozenset(
    {
        *("bitmap_construct_agg", "bitmap_or_agg", "count_min_sketch", "every", "histogram_numeric"),
        *("hll_sketch_agg", "hll_union_agg", "schema_of_json_agg", "schema_of_variant_agg"),
        *("schema_of_xml_agg", "some", "try_avg", "try_sum"),
    }
)
"""Aggregates that the parser does not know (docs: "Built-in functions")."""

_GENERATORS: Final = frozenset(
    {
        *("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer"),
        *("stack", "json_tuple", "variant_explode", "variant_explode_outer"),
    }
)

_NON_DETERMINISTIC: Final = frozenset({"rand", "random", "randn", "randstr", "shuffle", "uniform", "uuid"})

_CONTEXT_FUNCTIONS: Final = frozenset(
    {
        *("current_catalog", "current_date", "current_schema", "current_time", "current_timestamp"),
        *("current_timezone", "current_user", "localtimestamp", "session_user", "user"),
    }
)

_CASTING: Final = frozenset(("cast", "as"))
_TYPES: Final = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "dec": "decimal"}
"""Synonyms of types in Spark."""


def is_same_expression(expression: str, other: str) -> bool:
    """Whether two expressions differ in spelling alone: case and quotes of names, parentheses, string literals.

    The parser also normalizes date formats, string lengths and argument order. So names, texts and numbers must be
    equal as well: a needless change is better than a missing one.
    """
    if expression == other:
        return True
    return _normal_form(expression) == _normal_form(other) and _words(expression) == _words(other)


def referenced_columns(expression: str) -> frozenset[str]:
    """Return the columns that an expression reads, in lower case, without fields; empty if it does not parse."""
    return frozenset(place[0] for place in read_places(expression))


def read_places(expression: str) -> frozenset[tuple[str, ...]]:
    """Return the column and field paths that an expression reads, in lower case; empty if it does not parse.

    A path ends before a first `[…]`.
    """
    return _read_places(expression) or frozenset()


def reads(expression: str, path: Sequence[str]) -> bool:
    """Whether an expression reads a place, anything inside it, or anything around it.

    In an expression that does not parse, every word counts as a column.
    """
    place, places = [step.lower() for step in path], _read_places(expression)
    if places is None:
        return place[0] in {token.text.lower() for token in _tokens(expression) if not _is_text(token)}
    return any(
        all(step == read_step for step, read_step in zip(place, read, strict=False)) for read in places
    )


@lru_cache(_CACHE_SIZE)
def expression_problem(expression: str) -> str | None:
    """Return why an expression cannot compute the same value from a single row each time; None if it can.

    It refuses what `row_problem` refuses, and random functions. Delta 4.3.1 accepts a CHECK with a subquery or
    `rand()`, and then fails every write.
    """
    problem = row_problem(expression)
    if problem is None and set(_functions(_parsed(expression))) & _NON_DETERMINISTIC:
        return "returns another value each time"
    return problem


@lru_cache(_CACHE_SIZE)
def row_problem(expression: str) -> str | None:
    """Return why an expression cannot compute a value from a single row; None if it can.

    Subqueries, aggregates, window functions, generators and parameters are refused (docs: "ADD CONSTRAINT clause",
    "CREATE TABLE").
    """
    from sqlglot import exp

    if "${" in with_portable_literals(expression):
        return "contains ${ outside a string, which Spark reads as a variable"
    tree = _parsed(expression)
    if tree is None or isinstance(tree, exp.Command) or _ends_early(expression):
        return "is not a SQL expression"
    if any(node.comments for node in tree.walk()):
        return "contains a comment"
    if tree.find(exp.Placeholder, exp.Parameter):
        return "contains a parameter"
    if tree.find(exp.Query):
        return "contains a subquery"
    functions = set(_functions(tree))
    if tree.find(exp.AggFunc, exp.Window) or functions & _AGGREGATES or _counts_any(tree):
        return "reads more than one row"
    if functions & _GENERATORS:
        return "returns several rows for one row"
    return "holds a *" if tree.find(exp.Star) else None


@lru_cache(_CACHE_SIZE)
def generation_problem(expression: str) -> str | None:
    """Return why an expression cannot generate a column's values; None if it can.

    Delta accepts only functions whose result depends on neither time nor user (measured on 4.3.1).
    """
    problem = expression_problem(expression)
    if problem is None and set(_functions(_parsed(expression))) & _CONTEXT_FUNCTIONS:
        return "depends on the time or the user of the query"
    return problem


@lru_cache(_CACHE_SIZE)
def condition_problem(expression: str) -> str | None:
    """Return why an expression cannot be a condition on rows; None if it can."""
    from sqlglot import exp

    tree = _parsed(expression)
    plain = tree.unnest() if tree else None
    if isinstance(plain, (exp.Literal, exp.Null, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)):
        return expression_problem(expression) or "is not a condition"
    return expression_problem(expression)


def is_text_literal(expression: str) -> bool:
    """Whether an expression is a single quoted text."""
    from sqlglot import exp

    tree = _parsed(expression)
    plain = tree.unnest() if tree else None
    return isinstance(plain, exp.Literal) and bool(plain.is_string)


def with_column_renamed(expression: str, column: str, name: str) -> str:
    """Return an expression that reads a column under another name, with portable literals; `name` is SQL."""
    from sqlglot import exp

    expression = with_portable_literals(expression)
    tree = _parsed(expression)
    read = (
        [node.parts[0].meta for node in tree.find_all(exp.Column) if _is_named(node, column)] if tree else []
    )
    for place in sorted(read, key=lambda place: -place["start"]):
        expression = expression[: place["start"]] + name + expression[place["end"] + 1 :]
    return expression


def gives_null_on_purpose(expression: str) -> bool:
    """Whether an expression says itself that a value may become NULL: `NULL`, `nullif`, `try_…`, CASE without ELSE."""
    from sqlglot import exp

    tree = _parsed(expression)
    if tree is None:
        return False
    has_open_case = any(case.args.get("default") is None for case in tree.find_all(exp.Case))
    tried = any(token.text.lower().startswith("try_") for token in _tokens(expression) if not _is_text(token))
    return has_open_case or tried or tree.find(exp.Null, exp.Nullif) is not None


@lru_cache(_CACHE_SIZE)
def _read_places(expression: str) -> frozenset[tuple[str, ...]] | None:
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


@lru_cache(_CACHE_SIZE)
def _normal_form(expression: str) -> str:
    from sqlglot import exp

    tree = _parsed(expression)
    if tree is None:
        return with_portable_literals(expression).strip()
    try:
        plain = tree.copy().unnest()
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
        return with_portable_literals(expression).strip()


@lru_cache(16)  # several questions about one expression follow each other
def _parsed(expression: str) -> exp.Condition | None:
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        return parse_one(with_portable_literals(expression), dialect=databricks_dialect(), into=exp.Condition)
    except (SqlglotError, RecursionError):
        return None


def _is_named(column: exp.Column, name: str) -> bool:
    return bool(column.parts[0].name.lower() == name.lower())


def _ends_early(expression: str) -> bool:
    from sqlglot import TokenType

    return any(token.token_type is TokenType.SEMICOLON for token in _tokens(expression))


def _functions(tree: exp.Condition | None) -> Iterator[str]:
    from sqlglot import exp

    for call in tree.find_all(exp.Func) if tree else ():
        yield call.name.lower() if isinstance(call, exp.Anonymous) else call.sql_name().lower()


def _counts_any(tree: exp.Condition) -> bool:
    """Whether the expression calls the aggregate `any`; after LIKE the same word is a quantifier."""
    from sqlglot import exp

    return any(not isinstance(node.parent, (exp.Like, exp.ILike)) for node in tree.find_all(exp.Any))


@lru_cache(_CACHE_SIZE)
def _words(expression: str) -> tuple[tuple[bool, str], ...]:
    """Return an expression's texts, names and numbers, sorted; names in lower case, type synonyms replaced."""
    from sqlglot import TokenType

    words = []
    for token in _tokens(expression):
        word = token.text.lower()
        if _is_text(token):
            words.append((True, token.text))
        elif token.token_type is TokenType.NOT:
            words.append((False, "not"))
        elif any(character.isalnum() for character in word) and word not in _CASTING:
            words.append((False, _TYPES.get(word, word)))
    return tuple(sorted(words))


def _is_text(token: Token) -> bool:
    from sqlglot import TokenType

    texts = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.NATIONAL_STRING)
    return token.token_type in texts


def _tokens(expression: str) -> Sequence[Token]:
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    try:
        return tokenize(with_portable_literals(expression), dialect=databricks_dialect())
    except SqlglotError:
        return ()


def unknown_columns(expression: str, columns: Sequence[Column]) -> list[str]:
    """Return unknown columns and field paths of an expression, sorted; empty if it does not parse."""
    types = {column.key: column.data_type for column in columns}
    unknown = set()
    for name, *inside in read_places(expression):
        if name not in types:
            unknown.add(name)
        elif not _has(types[name], inside):
            unknown.add(".".join((name, *inside)))
    return sorted(unknown)


def _has(data_type: DataType, path: Sequence[str]) -> bool:
    """Whether a type has a path. A field of an array of structs is an array, and maps may have any key."""
    match data_type:
        case StructType(fields) if path:
            data_types = (field.data_type for field in fields if field.name.lower() == path[0])
            inside = next(data_types, None)
            return inside is not None and _has(inside, path[1:])
        case ArrayType(element):
            return _has(element, path)
    return True


@cache
def databricks_dialect() -> type[Dialect]:
    """Return sqlglot's Databricks dialect for SQL `with_portable_literals`, without array constructors.

    The original reads `list[0]` and `array[0]` as array constructors and loses the qualifier of `payload.list[0]`. In
    Spark, brackets never construct an array. It also writes `${`, which Spark takes for a variable.
    """
    from sqlglot.dialects.databricks import Databricks

    class SparkSql(Databricks):
        class Parser(Databricks.Parser):  # type: ignore[misc, valid-type]  # a variable, to type checkers
            ARRAY_CONSTRUCTORS: ClassVar[dict[str, type[exp.Expression]]] = {}

        class Generator(Databricks.Generator):  # type: ignore[misc, valid-type]  # the same
            def literal_sql(self, expression: exp.Literal) -> str:
                plain: str = super().literal_sql(expression)
                return sql_literal(expression.name) if expression.is_string else plain

    return SparkSql
