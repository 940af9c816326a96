r"""String literals in SQL that users and platforms write.

Readers of SQL disagree on them. `'it''s'` is `it's` for Spark 4.1 and later, and `its` before (apache/spark, pull
request 51242). Delta 4.3.1 stores a CHECK as a list of words with blanks between them, so that `'it''s'` becomes
`'it' 's'`, which Spark joins to `its`, and `r'\d'` becomes `r '\d'`, which Spark refuses (measured).
"""

from __future__ import annotations

import re
from typing import Final

from delta_engine.sql.text import sql_literal

LITERAL: Final = r"""(?:(?<!\w)[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")"""
COMMENT: Final = r"(?:--(?:\\\n|\\(?!\n)|[^\r\n\\])*(?=[\r\n]|\Z)|/\*(?:[^*]|\*(?!/))*\*/)"
_BETWEEN: Final = rf"(?:\s|{COMMENT})*"
_TOKEN: Final = re.compile(
    rf"(?:(?<!\w)(?P<binary>[xX]){_BETWEEN})?(?P<chain>{LITERAL}(?:{_BETWEEN}{LITERAL})*)"
    rf"|`(?:[^`]|``)*`|{COMMENT}",
    re.DOTALL,
)
_EACH_LITERAL: Final = re.compile(rf"(?P<literal>{LITERAL})|{COMMENT}", re.DOTALL)

_ESCAPE: Final = re.compile(
    r"\\u(?P<short>[0-9a-fA-F]{4})|\\U(?P<long>[0-9a-fA-F]{8})|\\(?P<octal>[01][0-7]{2})|\\(?P<other>.)|(?:''|\"\")",
    re.DOTALL,
)
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_FIRST_PAIR: Final = 0x10000
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def with_portable_literals(sql: str) -> str:
    r"""Return SQL with its string literals written so that every version of Spark and of Delta reads the same.

    Each literal, and each chain of adjacent literals, becomes one literal in single quotes with `\'` for a quote. What
    it means follows Spark 4.1 (docs: "Literals"). `x '1F'` becomes `x'1F'`. All else keeps its
    spelling. The result maps to itself.
    """
    if "'" not in sql and '"' not in sql:
        return sql
    return _TOKEN.sub(_portable, sql)


def literal_text(sql: str) -> str:
    """Return what a string literal, or a chain of them, means; ValueError for other SQL."""
    token = _TOKEN.fullmatch(sql.strip())
    if token is None or not token["chain"] or token["binary"]:
        raise ValueError(f"{sql!r} is no string literal")
    return _meaning(token["chain"])


def _portable(token: re.Match[str]) -> str:
    if not token["chain"]:
        return token[0]
    return (token["binary"] or "") + sql_literal(_meaning(token["chain"]))


def _meaning(chain: str) -> str:
    literals = (each["literal"] for each in _EACH_LITERAL.finditer(chain))
    return _without_surrogates("".join(_units(literal) for literal in literals if literal))


def _units(literal: str) -> str:
    """Return the text of one literal; characters beyond U+FFFF that it escapes are pairs of surrogates."""
    if literal[0] in "rR":
        return literal[2:-1]
    quote = literal[0]
    return _ESCAPE.sub(lambda escape: _unescaped(escape, quote), literal[1:-1])


def _unescaped(escape: re.Match[str], quote: str) -> str:
    if escape["other"]:
        return _ESCAPED.get(escape["other"], escape["other"])
    if escape["octal"]:
        return chr(int(escape["octal"], 8))
    if code := escape["short"] or escape["long"]:
        return _code_units(int(code, 16))
    return quote if escape[0][0] == quote else escape[0]


def _code_units(code: int) -> str:
    """Return a character of a code as Java has it: beyond U+FFFF a pair, cut to 16 bits even for invalid codes."""
    if code < _FIRST_PAIR:
        return chr(code)
    first, second = divmod(code - _FIRST_PAIR, 0x400)
    return chr((first + 0xD800) & 0xFFFF) + chr(second + 0xDC00)


def _without_surrogates(text: str) -> str:
    """Return a text with pairs of surrogates joined, and `?` for others, as Java encodes them."""
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _LONE_SURROGATE.sub("?", joined)
