"""Where the values of a YAML text stand, and how its entries change: keys with their values, and items of lists.

What replaces an entry is text; all else in the file stays byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from delta_engine.config.yaml_nodes import compose
from delta_engine.config.yaml_text import indented
from delta_engine.errors import DeltaEngineError

_MARK: Final = "\ufeff"
_ALIAS = re.compile(r"(?:[\s,:?\[{-]|(?<!\S)#[^\n]*\n)*(\*[^\s,\[\]{}]+)")
_COLON = re.compile(r"(?:\s|(?<=\s)#[^\n]*\n)*:")
_COLON_BEHIND = re.compile(" *:")
_COMMENT = re.compile(r"(?<!\S)#.*")
_DASHES = re.compile(" *(?:- +)?")


class UnusualLayoutError(DeltaEngineError):
    """A part of a YAML file has a layout that the editor does not change; the message tells why."""

    topic = "unusual-layout"

    def __init__(self, reason: str, way_out: str = "") -> None:
        super().__init__(reason)
        self.way_out = way_out


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


def with_unix_lines(text: str, change: Callable[[str], str]) -> str:
    """Return a changed text; `change` gets lines that end with line feeds, and no byte order mark.

    The line ends and the mark of the text stay. Raises UnusualLayoutError if its lines have different line ends.
    """
    mark = _MARK if text.startswith(_MARK) else ""
    written = text.removeprefix(mark)
    unix = written.replace("\r\n", "\n")
    lines = unix.replace("\r", "\n")
    changed = change(lines)
    if changed == lines:
        return text
    if "\r" in unix or written not in (unix, unix.replace("\n", "\r\n")):
        raise UnusualLayoutError("its lines have different line ends", "Use the same line end everywhere.")
    return mark + (changed if written == unix else changed.replace("\n", "\r\n"))


def read_source(text: str, file: str) -> Node:
    """Return the root of a YAML text with one document.

    Raises:
        ConfigError: it is invalid; `file` is its name in messages.
        UnusualLayoutError: it is empty.
    """
    root = compose(text, file)
    if root is None:
        raise UnusualLayoutError("the file is empty")
    return laid_out(root, text)


def laid_out(root: Any, text: str) -> Node:
    """Return the layout of a composed YAML text, which has no byte order mark and ends with a line feed."""
    return _node(root, text, 0)


def spliced(text: str, splices: Iterable[Splice], start: int = 0, end: int | None = None) -> str:
    """Return a text, or the part from `start` to `end`, with its splices applied; overlaps raise UnusualLayoutError."""
    pieces: list[str] = []
    limit = len(text) if end is None else end
    for splice in sorted(splices, key=lambda splice: (splice.start, splice.end)):
        if splice.start < start or splice.end > limit:
            raise UnusualLayoutError("two changes affect the same place")
        pieces += (text[start : splice.start], splice.text)
        start = splice.end
    return "".join((*pieces, text[start:limit]))


def arranged(
    text: str, collection: Node, arrangement: Sequence[int | str], changes: Sequence[Splice] = ()
) -> Iterator[Splice]:
    """Yield the splices that remove, add and reorder the entries of a list or a mapping.

    Comment lines move with the entry below them, deeper ones with the entry above them. Those above a removed entry and
    behind it stay; those inside it are lost.

    Args:
        arrangement: the positions of the entries to keep and the texts of new entries, in order. The text of an item
            of a block includes its dash.
        changes: the splices inside the entries to keep.

    Raises:
        UnusualLayoutError: the layout does not allow it, or a removed entry has an anchor or an alias.
    """
    nodes = _values(collection)
    for place in {*range(len(nodes))}.difference(arrangement):
        refuse_shared(text, nodes[place])
    if list(arrangement) == [*range(len(nodes))]:
        yield from changes
    else:
        yield (_in_brackets if collection.is_flow else _on_lines)(text, collection, arrangement, changes)


def refuse_shared(text: str, node: Node) -> None:
    """Raise UnusualLayoutError if a value is an alias, or has an alias or an anchor inside."""
    if node.kind == "alias" or text[node.start : node.start + 1] in {"&", "!"}:
        raise UnusualLayoutError("the changed part has an anchor or an alias")
    for child in (*node.items, *(child for pair in node.pairs for child in pair)):
        refuse_shared(text, child)


def comments(text: str, node: Node, start: int = 0, end: int | None = None) -> list[str]:
    """Return the comments between the scalars of a node, from `start` to `end` in the text."""
    texts: list[str] = []
    for scalar in _scalars(node):
        texts += _COMMENT.findall(text, start, scalar.start)
        start = scalar.end
        if scalar.style in ("|", ">"):  # the header may end with a comment, the lines below it contain none
            texts += _COMMENT.findall(text, scalar.start, text.index("\n", scalar.start))
    return texts + _COMMENT.findall(text, start, len(text) if end is None else end)


def line_start(text: str, position: int) -> int:
    """Return the start of a position's line."""
    return text.rfind("\n", 0, position) + 1


def line_end(text: str, position: int) -> int:
    """Return the end of a position's line, after its line feed."""
    return text.index("\n", position) + 1


def after_colon(text: str, key: Node) -> int:
    """Return the position after a key's colon, or after the key if it has no colon."""
    colon = _COLON.match(text, key.end)
    return colon.end() if colon else key.end


def _in_brackets(
    text: str, flow: Node, arrangement: Sequence[int | str], changes: Sequence[Splice]
) -> Splice:
    """Return the splice that arranges entries between commas, which stay where the neighbours or their number stay."""
    spans = [(item.start, item.end) for item in flow.items] or [
        (key.start, end.end) for key, end in flow.pairs
    ]
    between = [text[end:start] for (_, end), (start, _) in pairwise(spans)]
    gaps = (text[flow.start : spans[0][0]], *between, text[spans[-1][1] : flow.end])
    kept = [place for place in arrangement if isinstance(place, int)]
    is_marked = any("#" in gap or "?" in gap for gap in gaps)
    if (kept != sorted(kept) and is_marked) or any(node.start == node.end for node in _values(flow)):
        raise UnusualLayoutError("comments or keys without values are between the changed parts")
    usual = next((gap for gap in between if "\n" in gap and not gap.strip(", \n")), ", ")
    is_permutation = len(kept) == len(arrangement) == len(spans)
    joined = ""
    for index, entry in enumerate(arrangement):
        if index:
            is_next = isinstance(entry, int) and arrangement[index - 1] == entry - 1
            place = index if is_permutation else entry if is_next else 0
            joined += between[int(place) - 1] if place else usual
        joined += entry if isinstance(entry, str) else _changed(text, *spans[entry], changes)
    return Splice(spans[0][0], spans[-1][1], joined)


def _on_lines(text: str, block: Node, arrangement: Sequence[int | str], changes: Sequence[Splice]) -> Splice:
    """Return the splice that arranges the lines of a block."""
    starts, nodes = _starts(text, block), _values(block)
    first = line_start(text, starts[0])
    head = text[first : starts[0]]
    margin = " " * len(head)
    ends = [_end(text, line_end(text, node.end), len(margin)) for node in nodes]
    begin = _below_key(text, first) if block.items else first
    above: dict[int, str] = {}
    left = ""
    for place, node in enumerate(nodes):
        left += text[ends[place - 1] if place else begin : line_start(text, starts[place])]
        if place in arrangement:
            above[place], left = left, ""
        elif comment := text[node.end : line_end(text, node.end)].strip():
            left += f"{margin}{comment}\n"
    top = arrangement[0] if arrangement else 0
    if isinstance(top, int) and top and 0 in above:  # its blank lines stay where it was
        kept = above[top].lstrip("\n")
        above[0] = above[top].removesuffix(kept) + above[0]
        above[top] = kept
    lines = ""
    for entry in arrangement:
        if isinstance(entry, str):
            lines += f"{indented(entry, len(margin))}\n"
            continue
        is_shared = entry == 0 and bool(head.strip())
        start = starts[0] if is_shared else line_start(text, starts[entry])
        body = (margin if is_shared else "") + _changed(text, start, ends[entry], changes)
        if lines or not head.strip():
            lines += above[entry] + body
        else:  # the comments above a mapping in a list get the margin of its dash
            over = re.sub(r"^ *(?=\S)", head.partition("-")[0], above[entry], flags=re.MULTILINE)
            lines = over + head + body.removeprefix(margin)
    return Splice(begin, ends[-1], lines + left)


def _values(collection: Node) -> Sequence[Node]:
    return collection.items or [value for _, value in collection.pairs]


def _changed(text: str, start: int, end: int, changes: Iterable[Splice]) -> str:
    return spliced(text, [change for change in changes if start <= change.start < end], start, end)


def _starts(text: str, block: Node) -> list[int]:
    """Return the starts of a block's entries: of keys, or of the dashes of items. The first may be behind a dash."""
    starts = [key.start for key, _ in block.pairs] or [block.start]
    dash = f"\n{' ' * (block.start - line_start(text, block.start))}-"
    for item, following in pairwise(block.items):
        starts.append(text.rfind(dash, item.end, following.start) + len(dash) - 1)
    head, *others = [text[line_start(text, start) : start] for start in starts]
    is_usual = (
        starts == sorted(starts)
        and _DASHES.fullmatch(head)
        and not "".join(others).strip()
        and all(_COLON_BEHIND.match(text, key.end) for key, _ in block.pairs)
        and not (block.items and text[block.start] != "-")
        and not any(_keeps_blank_lines(text, node) for node in _values(block))
    )
    if not is_usual:
        raise UnusualLayoutError("its entries share lines")
    return starts


def _keeps_blank_lines(text: str, node: Node) -> bool:
    """Whether a value ends with a block text whose blank lines at the end count."""
    while node.items or node.pairs:
        node = _values(node)[-1]
    return node.style in ("|", ">") and "+" in text[node.start : line_end(text, node.start)].split("#")[0]


def _end(text: str, position: int, margin: int) -> int:
    """Return the end of the comment lines from a position on that are deeper than a margin."""
    deeper = re.compile(rf"(?:(?:[ \t]*\n)*[ ]{{{margin + 1},}}#.*\n)*").match(text, position)
    return deeper.end() if deeper else position


def _below_key(text: str, start: int) -> int:
    """Return the start of the comments and blank lines above a line: they are below the key of the block."""
    while start and text[line_start(text, start - 1) : start].lstrip()[:1] in ("", "#"):
        start = line_start(text, start - 1)
    return start


def _scalars(node: Node) -> Iterator[Node]:
    if node.kind in ("scalar", "alias"):
        yield node
    for child in (*node.items, *(child for pair in node.pairs for child in pair)):
        yield from _scalars(child)


def _node(composed: Any, text: str, floor: int) -> Node:
    """Return a composed node; `floor` is its earliest start, because an alias yields the earlier node of its anchor."""
    start, end = composed.start_mark.index, composed.end_mark.index
    if start < floor:
        alias = _ALIAS.match(text, floor)
        if alias is None:
            raise UnusualLayoutError("the place of an alias is ambiguous")
        return Node("alias", *alias.span(1))
    match composed.id:
        case "scalar" if start == end:  # an empty value, which the parser places before the next token
            return Node("scalar", floor, floor)
        case "scalar":
            return Node("scalar", start, _scalar_end(composed, text), composed.value, composed.style or None)
        case "sequence":
            children = _children(composed.value, text, start)
            node = Node("sequence", start, end, is_flow=bool(composed.flow_style), items=children)
        case _:
            pairs = tuple(_pairs(composed.value, text, start))
            children = tuple(value for _, value in pairs)
            node = Node("mapping", start, end, is_flow=bool(composed.flow_style), pairs=pairs)
    # The end of a block is the end of its last value: the parser's mark is behind the comments that follow.
    return node if node.is_flow or not children else replace(node, end=children[-1].end)


def _children(composed: Iterable[Any], text: str, floor: int) -> tuple[Node, ...]:
    children: list[Node] = []
    for item in composed:
        children.append(_node(item, text, floor))
        floor = children[-1].end
    return tuple(children)


def _pairs(composed: Iterable[tuple[Any, Any]], text: str, floor: int) -> Iterator[tuple[Node, Node]]:
    for key_node, value_node in composed:
        key = _node(key_node, text, floor)
        value = _node(value_node, text, after_colon(text, key))
        yield key, value
        floor = value.end


def _scalar_end(composed: Any, text: str) -> int:
    start, end = int(composed.start_mark.index), int(composed.end_mark.index)
    if composed.style not in ("|", ">"):
        return end
    # A block scalar extends to the next line with text. Its blank lines at the end count for `|+` alone.
    block = text[start:end]
    header = block.split("\n", 1)[0].split("#", 1)[0]
    return start + len(block.removesuffix("\n") if "+" in header else block.rstrip())
