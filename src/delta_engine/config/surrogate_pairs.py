r"""Surrogate pairs, such as `\ud83d\ude00`: JSON escapes characters beyond U+FFFF this way, and YAML does not.

libyaml reads other characters in their place, at the same positions of the text. Afterwards the nodes get the
characters that the pairs spell. Outside double quotes nothing is an escape: there they get the text as it is written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from yaml import Node, ScalarNode

_PAIR: Final = re.compile(
    r"(?<!\\)(?P<before>(?:\\\\)*\\u)(?P<high>[dD])(?P<middle>[89abAB][0-9a-fA-F]{2}\\u)"
    r"(?P<low>[dD])(?=[c-fC-F][0-9a-fA-F]{2})"
)
_DIGITS: Final = "eabc"
"""What stands for the first digit of a surrogate, so that \\ud800 is read as \\ue800: the first that a text lacks."""


@dataclass(frozen=True, slots=True)
class Mask:
    """The characters that stand for the surrogates of one text: U+x800 to U+xFFF, where `digit` is x."""

    digit: str

    def is_in(self, text: str) -> bool:
        """Whether a text has such characters itself."""
        escaped = rf"\\u[{self.digit}{self.digit.upper()}][89a-fA-F]"
        return re.search(rf"[\u{self.digit}800-\u{self.digit}fff]|{escaped}", text) is not None

    def put_on(self, text: str) -> str:
        """Return a YAML text with these characters for its surrogate pairs."""
        digits = str.maketrans("dD", f"{self.digit}{self.digit.upper()}")
        return _PAIR.sub(
            lambda pair: (
                f"{pair['before']}{pair['high'].translate(digits)}{pair['middle']}{pair['low'].translate(digits)}"
            ),
            text,
        )

    def take_off(self, root: Node) -> None:
        """Replace the characters of a masked text's nodes by what the text says."""
        pending, seen = [root], set[int]()
        while pending:
            node = pending.pop()
            if id(node) in seen:  # an alias
                continue
            seen.add(id(node))
            if isinstance(node, ScalarNode):
                node.value = self._spelled(node.value) if node.style == '"' else self._as_written(node.value)
            else:
                pending += (
                    part for item in node.value for part in (item if isinstance(item, tuple) else (item,))
                )

    def _spelled(self, value: str) -> str:
        first, distance = int(f"{self.digit}800", 16), int(f"{self.digit}000", 16) - 0xD000
        pair = f"[{chr(first)}-{chr(first + 0x3FF)}][{chr(first + 0x400)}-{chr(first + 0x7FF)}]"
        return re.sub(pair, lambda match: _joined("".join(chr(ord(c) - distance) for c in match[0])), value)

    def _as_written(self, value: str) -> str:
        digits, either = (
            str.maketrans(f"{self.digit}{self.digit.upper()}", "dD"),
            f"[{self.digit}{self.digit.upper()}]",
        )
        pair = rf"\\u({either})([89abAB][0-9a-fA-F]{{2}}\\u)({either})(?=[c-fC-F][0-9a-fA-F]{{2}})"
        return re.sub(
            pair,
            lambda match: f"\\u{match[1].translate(digits)}{match[2]}{match[3].translate(digits)}",
            value,
        )


def mask_of(text: str) -> Mask | None:
    """Return the mask of a YAML text's surrogate pairs.

    Returns:
        None without pairs, and for a text that has characters of every mask, so that libyaml refuses its pairs.
    """
    has_escapes = "\\u" in text  # found at once, where the pattern takes a tenth of the time of `validate`
    if not has_escapes or not _PAIR.search(text):
        return None
    return next((mask for mask in map(Mask, _DIGITS) if not mask.is_in(text)), None)


def _joined(value: str) -> str:
    """Return a text with each pair of surrogates as the character that it spells."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
