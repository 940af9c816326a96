"""Writes values as YAML text: on one line, or with a line per entry.

A text stands without quotes only if readers of YAML 1.1 and of YAML 1.2 read it as that text. The emitters of PyYAML
cannot prefer double quotes, nor indent lists below their keys, and they escape emoji.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from yaml.emitter import Emitter
from yaml.resolver import Resolver

from delta_engine.config.yaml_nodes import is_read_as_text


def one_line(value: object, *, in_flow: bool = False, quote: str | None = None) -> str:
    """Return plain data on one line.

    Args:
        in_flow: whether the value stands in braces or brackets.
        quote: the preferred quotes of texts; None for as few quotes as possible.
    """
    match value:
        case str():
            return _text(value, in_flow, quote)
        case bool():
            return "true" if value else "false"
        case Mapping():
            pairs = [pair(key, part, in_flow=True, quote=quote) for key, part in value.items()]
            return f"{{{', '.join(pairs)}}}"
        case list() | tuple():
            return f"[{', '.join([one_line(part, in_flow=True, quote=quote) for part in value])}]"
    return str(value)


def pair(key: str, value: object, *, in_flow: bool = False, quote: str | None = None) -> str:
    """Return a key and its value on one line; arguments as for `one_line`."""
    written = _text(key, in_flow, quote)
    text = one_line(value, in_flow=in_flow, quote=quote)
    if len(written) <= _LONGEST_KEY:
        return f"{written}: {text}"
    return f"? {written} : {text}" if in_flow else f"? {written}\n: {text}"


def in_lines(text: str) -> str:
    """Return a text of printable lines, the last one not blank, as a value with these lines."""
    indicator = "2" if text[:1] in (" ", "\n") else ""
    lines = text.removesuffix("\n")
    return f"|{indicator}{'-' if lines == text else ''}\n{indented(lines)}"


def block(entries: Iterable[str]) -> str:
    """Return the text of a value with lines for each entry, which begin below the key."""
    return "".join(f"\n{indented(entry)}" for entry in entries)


def list_item(text: str, dash: str = "- ") -> str:
    """Return an entry of a list; `dash` includes the spaces behind it."""
    return dash + indented(text, len(dash)).lstrip(" ")


def indented(text: str, spaces: int = 2) -> str:
    """Return lines with a margin; empty lines stay empty."""
    return "\n".join(f"{' ' * spaces}{line}" if line else "" for line in text.split("\n"))


_LONGEST_KEY: Final = 1_000
"""libyaml reads 1,024 characters as a key."""

_SYNTAX = re.compile(r"""[-?:,\[\]{}#&*!|>'"%@` ]|.*(?::[ ?]|:\Z| #| \Z)|\.\.\.""").match
_SYNTAX_IN_FLOW = re.compile(r"[,?\[\]{}]").search
_ESCAPED = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]')


@lru_cache(maxsize=4_096)
def _text(text: str, in_flow: bool, quote: str | None) -> str:
    if quote is None and _is_plain(text) and not (in_flow and _SYNTAX_IN_FLOW(text)):
        return text
    if quote == "'" and text.isprintable():
        return f"""'{text.replace("'", "''")}'"""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _is_plain(text: str) -> bool:
    """Whether a text without quotes is read as itself."""
    return (
        text.isprintable()
        and not _SYNTAX(text)
        and is_read_as_text(text)
        and not any(pattern.match(text) for _, pattern in Resolver.yaml_implicit_resolvers.get(text[0], ()))
    )


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in Emitter.ESCAPE_REPLACEMENTS:
        return f"\\{Emitter.ESCAPE_REPLACEMENTS[character]}"
    return f"\\x{ord(character):02X}" if character <= "\xff" else f"\\u{ord(character):04X}"
