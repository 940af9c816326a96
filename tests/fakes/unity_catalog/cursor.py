"""The words of a statement, one after the other: sqlglot's tokenizer, and Spark's own rules for literals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar

from sqlglot import Token, TokenType
from sqlglot.dialects.databricks import Databricks

from delta_engine.errors import StatementError

Item = TypeVar("Item")

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|[0-3][0-7]{2}|.)", re.DOTALL)
_SPECIAL = {
    "0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"
}  # fmt: skip
_WORD = re.compile(r"[A-Za-z_]\w*\Z")
_EATS_THE_REST = ("SHOW", "DESCRIBE")  # to sqlglot what follows these is one text


class Kind(Enum):
    """What a piece of a statement is."""

    WORD = auto()
    NAME = auto()  # in backticks
    TEXT = auto()
    SYMBOL = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Piece:
    """One word, name, literal or symbol, and where it stands."""

    kind: Kind
    text: str
    start: int
    end: int


class Cursor:
    """Walks through one statement. What it does not find where it must be is a syntax error."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._pieces = [*_pieces(sql), Piece(Kind.END, "", len(sql), len(sql))]
        self._place = 0

    def at(self, *words: str) -> bool:
        """Whether these words or symbols come next."""
        ahead = self._pieces[self._place : self._place + len(words)]
        return len(ahead) == len(words) and all(map(_is, ahead, words))

    def take(self, *words: str) -> bool:
        """Step over these words if they come next."""
        is_taken = self.at(*words)
        self._place += len(words) * is_taken
        return is_taken

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            raise self.error(f"expected {' '.join(words)}")

    @property
    def is_at_end(self) -> bool:
        return self._pieces[self._place].kind is Kind.END

    def end(self) -> None:
        if not self.is_at_end:
            raise self.error("expected the end")

    def word(self) -> str:
        """Take a word, in upper case."""
        return self._next(Kind.WORD).text.upper()

    def name(self) -> str:
        return self._next(Kind.NAME, Kind.WORD).text

    def path(self) -> tuple[str, ...]:
        names = [self.name()]
        while self.take("."):
            names.append(self.name())
        return tuple(names)

    def text(self) -> str:
        return self._next(Kind.TEXT).text

    def integer(self) -> int:
        sign = -1 if self.take("-") else 1
        return sign * int(self._next(Kind.SYMBOL).text)

    def items(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        items_read = [item()]
        while self.take(","):
            items_read.append(item())
        return tuple(items_read)

    def listed(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        self.expect("(")
        items_read = self.items(item)
        self.expect(")")
        return items_read

    def sql_in_parentheses(self) -> str:
        """Take everything between a parenthesis and the one that closes it, as it is written."""
        self.expect("(")
        sql = self.sql_until(")")
        self.expect(")")
        return sql

    def sql_until(self, *stops: str) -> str:
        """Take everything up to one of the words or symbols outside of parentheses, as it is written."""
        start, depth = self._pieces[self._place], 0
        while not self.is_at_end:
            if depth == 0 and any(map(self.at, stops)):
                break
            depth += self.at("(") - self.at(")")
            self._place += 1
        sql = self.sql[start.start : self._pieces[self._place - 1].end]
        if not sql:
            raise self.error("expected an expression")
        return sql

    def error(self, what: str) -> StatementError:
        place = self._pieces[self._place]
        return StatementError(
            f"{what} at {self.sql[place.start :][:40]!r}", sql=self.sql, error_class="PARSE_SYNTAX_ERROR"
        )

    def _next(self, *kinds: Kind) -> Piece:
        piece = self._pieces[self._place]
        if piece.kind not in kinds:
            raise self.error(f"expected a {kinds[0].name.lower()}")
        self._place += 1
        return piece


def _pieces(sql: str) -> Iterator[Piece]:
    first = sql.split(maxsplit=1)[0].upper() if sql.strip() else ""
    skipped = len(first) if first in _EATS_THE_REST else 0
    if skipped:
        yield Piece(Kind.WORD, first, 0, skipped)
    for token in Databricks().tokenize(sql[skipped:]):
        yield from _of_token(token, sql, skipped)


def _of_token(token: Token, sql: str, offset: int) -> Iterator[Piece]:
    start, end = token.start + offset, token.end + offset + 1
    written = sql[start:end]
    if token.token_type is TokenType.IDENTIFIER:
        yield Piece(Kind.NAME, written[1:-1].replace("``", "`"), start, end)
    elif token.token_type is TokenType.STRING:
        yield Piece(Kind.TEXT, _ESCAPE.sub(_unescaped, written[1:-1]), start, end)
    elif all(map(_WORD.match, written.split())):
        for word in written.split():  # PRIMARY KEY is one token
            yield Piece(Kind.WORD, word, start, end)
    else:
        yield Piece(Kind.SYMBOL, written, start, end)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 1:
        return _SPECIAL.get(code, code)
    return chr(int(code[1:], 16) if code[0] == "u" else int(code, 8))


def _is(piece: Piece, word: str) -> bool:
    return piece.kind in (Kind.WORD, Kind.SYMBOL) and piece.text.upper() == word
