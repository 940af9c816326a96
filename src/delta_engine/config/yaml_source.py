"""Locates every value of a YAML text, so that an edit keeps the rest byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from delta_engine.errors import DeltaEngineError

_ALIAS = re.compile(r"\*[^\s,\[\]{}]+")
_COMMENT = re.compile(r"(?<!\S)#.*")


class UnusualLayoutError(DeltaEngineError):
    """A part of a YAML file has a layout that the editor does not change; the message tells why."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value or key in a YAML text.

    Args:
        kind: `scalar`, `sequence`, `mapping`, or `alias` for a value that an anchor defines.
        end: the exclusive end, before any following comments and line breaks.
        style: a scalar's quotes, `|` or `>`; None for plain.
    """

    kind: str
    start: int
    end: int
    value: str = ""
    style: str | None = None
    is_flow: bool = False
    items: tuple[Node, ...] = ()
    pairs: tuple[tuple[Node, Node], ...] = ()

    def pair(self, key: str) -> tuple[Node, Node] | None:
        """Return a mapping's own key and its value, or None; merged keys do not count."""
        return next((pair for pair in self.pairs if pair[0].kind == "scalar" and pair[0].value == key), None)


@dataclass(frozen=True, slots=True)
class Splice:
    """Replaces the characters from `start` to `end`."""

    start: int
    end: int
    text: str = ""


def read_source(text: str) -> Node:
    """Return the root of a YAML text with one document; raise UnusualLayoutError if it is invalid or empty."""
    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except YAMLError as error:
        raise UnusualLayoutError(f"it would not be valid YAML: {error}") from error
    if root is None:
        raise UnusualLayoutError("the file is empty")
    return _node(root, text, 0)


def spliced(text: str, splices: Iterable[Splice], start: int = 0, end: int | None = None) -> str:
    """Return a text, or the part from `start` to `end`, with its splices applied; overlaps raise UnusualLayoutError."""
    result = text[:end]
    limit = len(result)
    for splice in sorted(splices, key=lambda one: (one.start, one.end))[::-1]:
        if splice.end > limit:
            raise UnusualLayoutError("two changes concern the same place")
        result = result[: splice.start] + splice.text + result[splice.end :]
        limit = splice.start
    return result[start:]


def comments(text: str, node: Node, start: int = 0, end: int | None = None) -> list[str]:
    """Return the comments between the scalars of a node, from `start` to `end` in the text."""
    found: list[str] = []
    for scalar in _scalars(node):
        found += _COMMENT.findall(text, start, scalar.start)
        start = scalar.end
        if scalar.style in ("|", ">"):  # the header may end with a comment, the lines below it contain none
            found += _COMMENT.findall(text, scalar.start, text.index("\n", scalar.start))
    return found + _COMMENT.findall(text, start, len(text) if end is None else end)


def line_start(text: str, position: int) -> int:
    """Return the start of a position's line."""
    return text.rfind("\n", 0, position) + 1


def line_end(text: str, position: int) -> int:
    """Return the end of a position's line, after its line feed."""
    return text.index("\n", position) + 1


def after_colon(text: str, key: Node) -> int:
    """Return the position after a key's colon."""
    return text.find(":", key.end) + 1


def _scalars(node: Node) -> Iterator[Node]:
    if node.kind in ("scalar", "alias"):
        yield node
    for child in (*node.items, *(child for pair in node.pairs for child in pair)):
        yield from _scalars(child)


def _node(found: Any, text: str, floor: int) -> Node:
    """Return a composed node; `floor` is its earliest start, because an alias yields the earlier node of its anchor."""
    start, end = found.start_mark.index, found.end_mark.index
    if start < floor:
        start = text.index("*", floor)
        return Node("alias", start, start + len(_ALIAS.findall(text, start)[0]))
    match found.id:
        case "scalar" if start == end:  # an empty value, which the parser places before the next token
            return Node("scalar", floor, floor)
        case "scalar":
            return Node("scalar", start, _scalar_end(found, text), found.value, found.style)
        case "sequence":
            children = _children(found.value, text, start)
            node = Node("sequence", start, end, is_flow=bool(found.flow_style), items=children)
        case _:
            pairs = tuple(_pairs(found.value, text, start))
            children = tuple(value for _, value in pairs)
            node = Node("mapping", start, end, is_flow=bool(found.flow_style), pairs=pairs)
    # The end of a block is the end of its last value: the parser's mark is behind the comments that follow.
    return node if node.is_flow or not children else replace(node, end=children[-1].end)


def _children(found: Iterable[Any], text: str, floor: int) -> tuple[Node, ...]:
    children: list[Node] = []
    for item in found:
        children.append(_node(item, text, floor))
        floor = children[-1].end
    return tuple(children)


def _pairs(found: Iterable[tuple[Any, Any]], text: str, floor: int) -> Iterator[tuple[Node, Node]]:
    for key_found, value_found in found:
        key = _node(key_found, text, floor)
        value = _node(value_found, text, after_colon(text, key))
        yield key, value
        floor = value.end


def _scalar_end(found: Any, text: str) -> int:
    start, end = int(found.start_mark.index), int(found.end_mark.index)
    if found.style not in ("|", ">"):
        return end
    # A block scalar extends to the next line with text. Its blank lines at the end count for `|+` alone.
    block = text[start:end]
    header = block.split("\n", 1)[0].split("#", 1)[0]
    return start + len(block.removesuffix("\n") if "+" in header else block.rstrip())
