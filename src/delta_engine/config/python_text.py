"""Formats Python source text: literals and layout only, no models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

MAX_LINE_LENGTH = 100

Code: TypeAlias = "str | Call | Sequence[Code] | Mapping[str, Code]"
"""An expression: verbatim text, a call, a list, or a dict with verbatim keys."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call; `(name, value)` is a keyword argument, and `is_spread` forces a line per argument."""

    function: str
    arguments: Sequence[Code | tuple[str, Code]]
    is_spread: bool = False


def literal(text: str) -> str:
    """Return text as a string literal, in double quotes unless single quotes need fewer escapes."""
    if '"' in text:
        return repr(text)
    return '"' + repr("'" + text)[2:]


def python_text(code: Code, *, indent: int = 0, reserved: int = 0) -> str:
    """Return an expression on one line if it fits, else an item per line; `reserved` counts its other characters."""
    if isinstance(code, str):
        return code
    line = on_one_line(code)
    if line is not None and indent + reserved + len(line) <= MAX_LINE_LENGTH:
        return line
    opening, items, closing = _parts(code)
    if not items:
        return opening + closing
    margin = " " * (indent + 4)
    lines = [f"{margin}{prefix}{_nested(item, prefix, indent + 4)},\n" for prefix, item in items]
    return f"{opening}\n{''.join(lines)}{' ' * indent}{closing}"


def on_one_line(code: Code) -> str | None:
    """Return an expression on one line, or None if it needs line breaks."""
    if isinstance(code, str):
        return code
    if isinstance(code, Call) and code.is_spread and code.arguments:
        return None
    opening, items, closing = _parts(code)
    texts = [(prefix, on_one_line(item)) for prefix, item in items]
    if any(text is None for _, text in texts):
        return None
    return f"{opening}{', '.join(f'{prefix}{text}' for prefix, text in texts)}{closing}"


def _parts(code: Call | Sequence[Code] | Mapping[str, Code]) -> tuple[str, list[tuple[str, Code]], str]:
    """Return the opening, the items with their prefixes, and the closing of an expression."""
    if isinstance(code, Call):
        return f"{code.function}(", [_argument(argument) for argument in code.arguments], ")"
    if isinstance(code, Mapping):
        return "{", [(f"{key}: ", value) for key, value in code.items()], "}"
    return "[", [("", item) for item in code], "]"


def _nested(item: Code, prefix: str, indent: int) -> str:
    return python_text(item, indent=indent, reserved=len(prefix) + len(","))


def _argument(argument: Code | tuple[str, Code]) -> tuple[str, Code]:
    if isinstance(argument, tuple):
        name, value = argument
        return f"{name}=", value
    return "", argument
