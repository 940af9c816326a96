r"""Surrogate pairs, such as `\ud83d\ude00`: JSON escapes characters beyond U+FFFF this way, and YAML does not.

libyaml reads private characters in their place, at the same positions of the text. Afterwards the nodes get the
characters that the pairs spell. Outside double quotes nothing is an escape: there they get the text as it is written.
"""

from __future__ import annotations

import re
from typing import Final

from yaml import Node, ScalarNode

_PAIR: Final = re.compile(
    r"(?<!\\)(?P<before>(?:\\\\)*\\u)(?P<high>[dD])(?P<middle>[89abAB][0-9a-fA-F]{2}\\u)"
    r"(?P<low>[dD])(?=[c-fC-F][0-9a-fA-F]{2})"
)
_PRIVATE: Final = re.compile(r"[\ue800-\uefff]|\\u[eE][89a-fA-F]")
"""The private characters that stand for surrogates: \\ud800 is \\ue800, \\udfff is \\uefff."""

_PRIVATE_PAIR: Final = re.compile(r"[\ue800-\uebff][\uec00-\uefff]")
_MASKED_PAIR: Final = re.compile(r"\\u([eE])([89abAB][0-9a-fA-F]{2}\\u)([eE])(?=[c-fC-F][0-9a-fA-F]{2})")
_MASK: Final = str.maketrans("dD", "eE")
_WRITTEN: Final = str.maketrans("eE", "dD")
_DISTANCE: Final = 0x1000


def masked(text: str) -> str | None:
    """Return a YAML text with private characters for its surrogate pairs; None without pairs.

    A text that has such private characters itself is not masked, so libyaml refuses its pairs.
    """
    has_escapes = "\\u" in text  # found at once, where the pattern takes a tenth of the time of `validate`
    if not has_escapes or not _PAIR.search(text) or _PRIVATE.search(text):
        return None
    return _PAIR.sub(
        lambda pair: (
            f"{pair['before']}{pair['high'].translate(_MASK)}{pair['middle']}{pair['low'].translate(_MASK)}"
        ),
        text,
    )


def unmask(node: Node) -> None:
    """Replace the private characters in a masked text's nodes by what the text says."""
    pending, seen = [node], set[int]()
    while pending:
        node = pending.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, ScalarNode):
            node.value = _spelled(node.value) if node.style == '"' else _as_written(node.value)
        else:
            pending += (
                part for item in node.value for part in (item if isinstance(item, tuple) else (item,))
            )


def joined(value: str) -> str:
    """Return a text with each pair of surrogates as the character that it spells."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _spelled(value: str) -> str:
    return _PRIVATE_PAIR.sub(lambda pair: joined("".join(chr(ord(c) - _DISTANCE) for c in pair[0])), value)


def _as_written(value: str) -> str:
    return _MASKED_PAIR.sub(
        lambda pair: f"\\u{pair[1].translate(_WRITTEN)}{pair[2]}{pair[3].translate(_WRITTEN)}", value
    )
