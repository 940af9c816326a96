r"""How Spark reads the string literals of an expression, character by character, and how Delta stores a CHECK.

Spark 4.1 reads a doubled quote as a quote, earlier versions as the border of two literals. Both join adjacent literals.
`tests/integration/test_string_literals.py` compares this with Spark and Delta.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


class Piece(NamedTuple):
    """A part of an expression; `text` is the text of a literal, None for other SQL."""

    sql: str
    text: str | None = None


def as_spark_reads(expression: str, *, doubles_quotes: bool = True) -> list[tuple[str, bool]]:
    """Return the texts of literals, adjacent ones joined, and the SQL between them without blanks.

    Args:
        doubles_quotes: whether a doubled quote is a quote, as in Spark 4.1.
    """
    read: list[tuple[str, bool]] = []
    for piece in _pieces(expression, doubles_quotes=doubles_quotes):
        text, is_literal = (piece.sql.strip(), False) if piece.text is None else (piece.text, True)
        if not text and not is_literal:
            continue
        if read and read[-1][1] is is_literal:
            read[-1] = (read[-1][0] + text, is_literal)
        else:
            read.append((text, is_literal))
    return [(_as_java_encodes(text), is_literal) for text, is_literal in read]


def as_delta_stores(expression: str) -> str:
    """Return a CHECK as Delta stores it: words with blanks between them, of which a doubled quote ends one."""
    return " ".join(_delta_words(expression))


def _delta_words(expression: str) -> Iterator[str]:
    start = place = 0
    while place < len(expression):
        if expression[place] not in "'\"`":
            place += 1
            continue
        if expression[start:place].strip():
            yield expression[start:place].strip()
        end = _end(expression, place, doubles_quotes=expression[place] == "`")
        yield expression[place:end]
        start = place = end
    if expression[start:].strip():
        yield expression[start:].strip()


def _pieces(expression: str, *, doubles_quotes: bool) -> Iterator[Piece]:
    place = 0
    while place < len(expression):
        first = expression[place]
        begins_word = place == 0 or not (expression[place - 1].isalnum() or expression[place - 1] == "_")
        if first in "rR" and begins_word and expression[place + 1 : place + 2] in ("'", '"'):
            end = expression.index(expression[place + 1], place + 2) + 1
            yield Piece(expression[place:end], expression[place + 2 : end - 1])
        elif first in "'\"":
            end = _end(expression, place, doubles_quotes=doubles_quotes)
            yield Piece(expression[place:end], _text(expression[place + 1 : end - 1], first))
        elif first == "`":
            end = _end(expression, place, doubles_quotes=True)
            yield Piece(expression[place:end])
        else:
            end = place + 1
            yield Piece(first)
        place = end


def _end(expression: str, start: int, *, doubles_quotes: bool) -> int:
    quote, place = expression[start], start + 1
    while True:
        is_doubled = doubles_quotes and expression[place : place + 2] == quote * 2
        if is_doubled or (expression[place] == "\\" and quote != "`"):
            place += 2
        elif expression[place] == quote:
            return place + 1
        else:
            place += 1


def _text(inside: str, quote: str) -> str:
    text, place = "", 0
    while place < len(inside):
        if inside[place] == quote:
            text, place = text + quote, place + 2
        elif inside[place] == "\\":
            character, length = _escaped(inside[place + 1 :])
            text, place = text + character, place + 1 + length
        else:
            text, place = text + inside[place], place + 1
    return text


def _escaped(after: str) -> tuple[str, int]:
    """Return what a backslash and the characters after it stand for, and how many these are."""
    for letter, length in (("u", 4), ("U", 8)):
        digits = after[1 : 1 + length]
        if (
            after[0] == letter
            and len(digits) == length
            and all(digit in "0123456789abcdefABCDEF" for digit in digits)
        ):
            return chr(int(digits, 16)), 1 + length
    octal = after[:3]
    if len(octal) == 3 and octal[0] in "01" and all(digit in "01234567" for digit in octal):
        return chr(int(octal, 8)), 3
    return _ESCAPED.get(after[0], after[0]), 1


def _as_java_encodes(text: str) -> str:
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return "".join("?" if 0xD800 <= ord(character) <= 0xDFFF else character for character in joined)
