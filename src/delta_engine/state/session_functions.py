"""Reads SQL functions of Spark's session catalog from the rows of DESCRIBE FUNCTION EXTENDED (measured, Spark 4.1.1).

The row `Usage: …` has the function as JSON: body, types and comments as they were submitted, without a comment that
ends the body. There are no owners, grants and tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

import msgspec

from delta_engine.backends import error_conditions
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models.functions import FunctionName, Parameter
from delta_engine.models.type_text import parse_data_type
from delta_engine.sql.expressions import databricks_dialect
from delta_engine.sql.functions import sql_describe_function
from delta_engine.sql.string_literals import literal_text
from delta_engine.state.failed_reads import not_managed, require_answers, unreadable
from delta_engine.state.function_states import ABSENT_FUNCTION, FunctionState
from delta_engine.state.unmanaged import Unmanaged

_USAGE: Final = "Usage: "
_PREFIX: Final = "sqlFunction."
_KEYWORDS: Final = ("DEFAULT", "COMMENT")


def read_function(runner: SqlRunner, name: FunctionName) -> FunctionState:
    """Return a function of an existing schema.

    Raises:
        CatalogReadError: the function is unreadable, or the engine does not manage functions of its kind.
        StatementError: the failure concerns every function.
    """
    try:
        described = described_function(name, runner.run(sql_describe_function(name)))
    except StatementError as error:
        if error_conditions.is_missing_function(error):
            return ABSENT_FUNCTION
        require_answers(error, f"function {name}")
        raise unreadable(name, error) from error
    if isinstance(described, Unmanaged):
        raise not_managed(name, described)
    return described


def described_function(name: FunctionName, rows: Sequence[Row]) -> FunctionState | Unmanaged:
    """Return a function of the session catalog from the rows of its description.

    Raises:
        CatalogReadError: the description has another form than the measured one.
    """
    lines = [str(value) for row in rows for value in row.values()]
    usage = next((line.removeprefix(_USAGE) for line in lines if line.startswith(_USAGE)), None)
    if usage is None or not usage.startswith("{"):
        return Unmanaged("it is a function of a Java class")
    try:
        facts = msgspec.json.decode(usage, type=dict[str, str])
        if facts.get(f"{_PREFIX}isTableFunc") == "true":
            return Unmanaged("it is a table function")
        return FunctionState(
            returns=parse_data_type(facts[f"{_PREFIX}returnType"]),
            body=facts.get(f"{_PREFIX}expression") or facts[f"{_PREFIX}query"],
            parameters=tuple(_parameters(facts.get(f"{_PREFIX}inputParam", ""))),
            is_deterministic=facts.get(f"{_PREFIX}deterministic") == "true",
            comment=facts.get(f"{_PREFIX}comment", ""),
        )
    except (KeyError, ValueError) as error:
        raise CatalogReadError(
            f"its description is not of the measured form: {error}",
            securable=f"{name.kind} {name}",
            way_out="Report it, with what DESCRIBE FUNCTION EXTENDED returns.",
        ) from error


def _parameters(text: str) -> Iterator[Parameter]:
    """Yield the parameters of `name TYPE DEFAULT … COMMENT '…', …`."""
    for pieces in _split(text):
        keywords = [piece.keyword for piece in pieces]
        end = len(pieces)
        comment = keywords.index("COMMENT") if "COMMENT" in keywords else end
        default = keywords.index("DEFAULT") if "DEFAULT" in keywords else comment
        yield Parameter(
            pieces[0].text,
            parse_data_type(_sql(pieces[1:default])),
            _sql(pieces[default + 1 : comment]) if default < comment else None,
            literal_text(_sql(pieces[comment + 1 :])) if comment < end else "",
        )


class _Piece(NamedTuple):
    """A word of a parameter.

    Args:
        text: a name without quotes.
        sql: its text up to the next word.
        keyword: DEFAULT or COMMENT; empty for all else, and inside of brackets.
    """

    text: str
    sql: str
    keyword: str


def _split(text: str) -> Iterator[list[_Piece]]:
    """Yield the pieces of each parameter; a comma inside of brackets separates nothing."""
    from sqlglot import TokenType, tokenize
    from sqlglot.errors import SqlglotError

    opening, closing = {TokenType.L_PAREN}, {TokenType.R_PAREN}
    brackets = (
        opening | {TokenType.LT},
        closing | {TokenType.GT},
    )  # comparisons in defaults have no brackets
    try:
        tokens = tokenize(text, dialect=databricks_dialect())
    except SqlglotError as error:
        raise ValueError(f"its parameters are {text}") from error
    depth, pieces = 0, list[_Piece]()
    for token, following in zip_longest(tokens, tokens[1:]):
        opens, closes = (opening, closing) if _is_in_default(pieces) else brackets
        depth += (token.token_type in opens) - (token.token_type in closes)
        if token.token_type is TokenType.COMMA and depth == 0:
            yield pieces
            pieces = []
            continue
        is_keyword = depth == 0 and pieces and token.text.upper() in _KEYWORDS
        keyword = token.text.upper() if is_keyword and token.token_type is not TokenType.STRING else ""
        sql = text[token.start : following.start if following else len(text)]
        pieces.append(_Piece(token.text, sql, keyword))
    if pieces:
        yield pieces


def _is_in_default(pieces: Sequence[_Piece]) -> bool:
    return any(piece.keyword == "DEFAULT" for piece in pieces)


def _sql(pieces: Sequence[_Piece]) -> str:
    return "".join(piece.sql for piece in pieces).strip()
