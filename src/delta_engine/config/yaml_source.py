"""The text of a YAML file with the place of every value, so that one value can be changed and nothing else.

A round trip through an emitter would lay out the whole file anew: it forgets spaces within braces, line
breaks and some comments. Here the text stays, and changes are splices of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from delta_engine.errors import DeltaEngineError


class UnusualLayoutError(DeltaEngineError):
    """A place in a YAML file that cannot be changed without risk; the message says what is there."""


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A text, a number, true, false or nothing.

    Args:
        start: where it begins in the text.
        end: where it ends.
        value: what it says.
        style: its quotes, `|` or `>`; None for plain.
    """

    start: int
    end: int
    value: str
    style: str | None


@dataclass(frozen=True, slots=True)
class AliasNode:
    """`*name`: what it stands for is somewhere else."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SequenceNode:
    """A list, in brackets (`is_flow`) or with dashes."""

    start: int
    end: int
    items: tuple[Node, ...]
    is_flow: bool


@dataclass(frozen=True, slots=True)
class MappingNode:
    """A mapping, in braces (`is_flow`) or a key per line."""

    start: int
    end: int
    pairs: tuple[tuple[Node, Node], ...]
    is_flow: bool

    def position(self, key: str) -> int | None:
        """Return the place of a key among the pairs."""
        places = (
            place
            for place, (found, _) in enumerate(self.pairs)
            if isinstance(found, ScalarNode) and found.value == key
        )
        return next(places, None)

    def get(self, key: str) -> Node | None:
        """Return a key's value, or None if the key does not stand here itself."""
        place = self.position(key)
        return None if place is None else self.pairs[place][1]


Node: TypeAlias = ScalarNode | AliasNode | SequenceNode | MappingNode


@dataclass(frozen=True, slots=True)
class Splice:
    """What stands from `start` to `end` gives way to `text`."""

    start: int
    end: int
    text: str = ""


def read_source(text: str) -> Node:
    """Return the root of a YAML text that holds one document.

    Raises:
        UnusualLayoutError: it is not valid, or empty.
    """
    events = iter(YAML(typ="safe", pure=True).parse(text))
    try:
        for event in events:
            node = _node(event, events, text)
            if node is not None:
                return node
    except YAMLError as error:
        raise UnusualLayoutError(f"it would not be valid YAML: {error}") from error
    raise UnusualLayoutError("the file is empty")


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """Return the text with splices applied; what goes in at one place goes in as given.

    Args:
        text: the text.
        splices: where and what; deletions may overlap each other.

    Raises:
        UnusualLayoutError: two changes concern the same place.
    """
    pieces: list[str] = []
    done = 0
    for splice in sorted(splices, key=lambda one: (one.start, one.end)):
        if splice.start < done and splice.text:
            raise UnusualLayoutError("two changes concern the same place")
        pieces += [text[done : splice.start], splice.text]
        done = max(done, splice.end)
    return "".join((*pieces, text[done:]))


def line_start(text: str, place: int) -> int:
    """Return where the line around a place begins."""
    return text.rfind("\n", 0, place) + 1


def line_end(text: str, place: int) -> int:
    """Return where the line around a place ends, its line break included."""
    found = text.find("\n", place)
    return len(text) if found < 0 else found + 1


def after_colon(text: str, key: Node) -> int:
    """Return the place right after a key's colon."""
    return text.index(":", key.end) + 1


def line_break(text: str) -> str:
    """Return how a text breaks its lines."""
    return "\r\n" if "\r\n" in text else "\n"


def _node(event: Any, events: Iterator[Any], text: str) -> Node | None:
    """Return the node that begins with an event; None for an event that begins none."""
    start, end = event.start_mark.index, event.end_mark.index
    match type(event).__name__:
        case "ScalarEvent":
            return ScalarNode(start, _scalar_end(event, text), event.value, event.style)
        case "AliasEvent":
            return AliasNode(start, end)
        case "SequenceStartEvent":
            items, end = _children(event, events, text)
            return SequenceNode(start, end, items, bool(event.flow_style))
        case "MappingStartEvent":
            parts, end = _children(event, events, text)
            pairs = tuple(
                (_with_mark(key, text), _placed(value, key, text))
                for key, value in zip(parts[::2], parts[1::2], strict=True)
            )
            return MappingNode(start, end, pairs, bool(event.flow_style))
    return None


def _children(event: Any, events: Iterator[Any], text: str) -> tuple[tuple[Node, ...], int]:
    """Return a collection's nodes, and its end: a block's is its last node's, without what follows."""
    nodes: list[Node] = []
    for inner in events:
        node = _node(inner, events, text)
        if node is None:
            return tuple(nodes), inner.end_mark.index if event.flow_style else nodes[-1].end
        nodes.append(node)
    raise UnusualLayoutError("the file ends within a list")


def _scalar_end(event: Any, text: str) -> int:
    start, end = event.start_mark.index, event.end_mark.index
    if event.style not in ("|", ">"):
        return int(end)
    # A block scalar reaches to the next line with something on it. Its own blank lines count for `|+` alone.
    block = text[start:end]
    header = block.split("\n", 1)[0].split("#", 1)[0]
    return int(start) + len(block.removesuffix("\n").removesuffix("\r") if "+" in header else block.rstrip())


def _with_mark(key: Node, text: str) -> Node:
    """Let a key begin at its question mark, which keys of many characters or lines have."""
    before = text[: key.start].rstrip(" ")
    return replace(key, start=len(before) - 1) if before.endswith("?") else key


def _placed(value: Node, key: Node, text: str) -> Node:
    """Put an empty value, which the parser places before whatever comes next, behind its key's colon."""
    if isinstance(value, ScalarNode) and value.start == value.end and ":" in text[key.end : value.end]:
        place = after_colon(text, key)
        return ScalarNode(place, place, value.value, value.style)
    return value
