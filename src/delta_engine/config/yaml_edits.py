"""Changes values of a YAML text by replacing whole keys and whole list items.

Unchanged parts keep their text, order and comments. Layouts that need finer cuts are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from delta_engine.aspects.facet import Written
from delta_engine.config.model_text import BLOCKS, Values, emit_pair, emit_value, sources_of_items
from delta_engine.config.surrogate_pairs import joined
from delta_engine.errors import DeltaEngineError

_VARIABLE = re.compile(r"\$\{[^}]*\}")


@dataclass(frozen=True, slots=True)
class EntryEditor:
    """Changes the entries of a model file with line feeds as line ends; `renames` maps old column names to new."""

    text: str
    renames: Mapping[str, str]

    def splices(self, node: Node, before: Values, after: Values) -> Iterator[Splice]:
        """Yield the splices that change a mapping in the order of `after`; raise UnusualLayoutError for finer cuts."""
        if node.kind != "mapping":
            raise UnusualLayoutError("what changes is shared by an alias")
        if node.is_flow:
            yield Splice(node.start, node.end, self._on_one_line(node, before, after))
            return
        start = node.pairs[0][0].start
        margin = " " * (start - line_start(self.text, start))
        for key in _removed(node, before, after):
            yield self._without(node, key, margin)
        for key, value in after.items():
            pair = node.pair(key)
            if before.get(key) == value:
                continue
            if pair is None:
                end = line_end(self.text, node.pairs[_place(node, key, after)][1].end)
                yield Splice(end, end, margin + _pair(key, value, margin, in_block=key in BLOCKS) + "\n")
            else:
                yield from self._changed(pair, before.get(key), value, margin)

    def _without(self, node: Node, key: str, margin: str) -> Splice:
        """Return the removal of a key; its comments stay on their own lines."""
        pair = node.pair(key)
        assert pair is not None
        start, end = line_start(self.text, pair[0].start), line_end(self.text, pair[1].end)
        if self.text[start : pair[0].start].strip():
            raise UnusualLayoutError(f"the key {key!r} shares its line with others")
        kept = comments(self.text, Node("mapping", start, end, pairs=(pair,)), start, end)
        return Splice(start, end, "".join(f"{margin}{comment}\n" for comment in kept))

    def _changed(
        self, pair: tuple[Node, Node], before: Written | None, after: Written, margin: str
    ) -> Iterator[Splice]:
        key, node = pair
        if isinstance(before, Mapping) and isinstance(after, Mapping) and node.kind == "mapping":
            yield from self.splices(node, before, after)
        elif node.kind == "sequence" and not node.is_flow and _are_mappings(before, after):
            yield from self._changed_items(key, node, _items(before), _items(after))
        elif node.is_flow:
            yield Splice(node.start, node.end, self._on_one_line(node, before, after))
        elif node.kind == "sequence" and isinstance(after, list):
            places = {item.value: place for place, item in enumerate(node.items)}
            wanted = [places.get(item, f"- {emit_value(item, in_flow=False)}") for item in after]
            yield from rearranged(self.text, key, node, wanted)
        elif node.kind == "scalar":
            gap = " " if node.start == node.end else ""
            text = emit_value(after, in_flow=False, style=node.style)
            yield Splice(node.start, node.end, gap + self._replacement(node, after, text))
        else:
            text = _pair(key.value, after, margin, in_block=True)
            yield Splice(key.start, node.end, self._replacement(node, after, text))

    def _changed_items(
        self, key: Node, node: Node, before: Sequence[Values], after: Sequence[Values]
    ) -> Iterator[Splice]:
        sources = sources_of_items(before, after, self.renames)
        changes = [
            splice
            for source, item in zip(sources, after, strict=True)
            if source is not None and before[source] != item
            for splice in self.splices(node.items[source], before[source], item)
        ]
        wanted = [
            _item(new, node.items[0]) if source is None else source
            for source, new in zip(sources, after, strict=True)
        ]
        yield from rearranged(self.text, key, node, wanted, changes)

    def _on_one_line(self, node: Node, before: Written | None, after: Written | None) -> str:
        source = self.text[node.start : node.end]
        if before == after:
            return source
        assert after is not None
        if node.is_flow and "\n" in source:
            raise UnusualLayoutError("what changes is in braces or brackets over several lines")
        if node.kind == "mapping" and isinstance(before, Mapping) and isinstance(after, Mapping):
            return f"{{{', '.join(self._pairs_on_one_line(node, before, after))}}}"
        if node.kind == "sequence" and _are_mappings(before, after):
            old, new = _items(before), _items(after)
            sources = sources_of_items(old, new, self.renames)
            items = [
                emit_value(item, in_flow=True)
                if source is None
                else self._on_one_line(node.items[source], old[source], item)
                for source, item in zip(sources, new, strict=True)
            ]
            return f"[{', '.join(items)}]"
        return self._replacement(node, after, emit_value(after, in_flow=True, style=node.style))

    def _pairs_on_one_line(self, node: Node, before: Values, after: Values) -> Iterator[str]:
        removed = _removed(node, before, after)
        added: dict[int, list[str]] = {}
        for key, value in after.items():
            if node.pair(key) is None and before.get(key) != value:
                added.setdefault(_place(node, key, after), []).append(emit_pair(key, value, in_flow=True))
        for place, (key_node, value_node) in enumerate(node.pairs):
            key = key_node.value
            if key not in removed:
                start = self.text[key_node.start : value_node.start]
                yield start + self._on_one_line(value_node, before.get(key), after.get(key))
            yield from added.get(place, ())

    def _replacement(self, node: Node, after: Written, text: str) -> str:
        """Return the text of a new value; refuse to replace a source that contains more than its value."""
        if node.kind == "alias":
            raise UnusualLayoutError("what changes is shared by an alias")
        lost = {*_VARIABLE.findall(self.text, node.start, node.end)} - {*_VARIABLE.findall(text)}
        if lost and (node.kind == "mapping" or isinstance(after, Mapping)):
            raise UnusualLayoutError(f"the variable {min(lost)} would be lost")
        return text


def rearranged(
    text: str, key: Node, sequence: Node, wanted: Sequence[int | str], changes: Sequence[Splice] = ()
) -> Iterator[Splice]:
    """Yield the splices that rearrange a block list; comment lines stay with the item below them.

    `wanted` holds the positions of the items to keep, in their new order, and the lines of new items.
    """
    places = range(len(sequence.items))
    if list(wanted) == list(places):
        yield from changes
        return
    margin, starts = _item_starts(text, sequence)
    ends = [line_end(text, item.end) for item in sequence.items]
    begin = line_end(text, after_colon(text, key))
    above: dict[int, str] = {}
    orphans = ""
    for place, item, start, end in zip(places, sequence.items, starts, ends, strict=True):
        orphans += text[begin if place == 0 else ends[place - 1] : start]
        if place in wanted:
            above[place], orphans = orphans, ""
        else:
            orphans += "".join(f"{margin}{comment}\n" for comment in comments(text, item, start, end))
    lines = ""
    for one in wanted:
        if isinstance(one, str):
            lines += _indented(one, margin)
        else:
            within = [splice for splice in changes if starts[one] <= splice.start < ends[one]]
            lines += above[one] + spliced(text, within, starts[one], ends[one])
    if not wanted:
        yield Splice(after_colon(text, key), after_colon(text, key), " []")
    yield Splice(begin, ends[-1], lines + orphans)


def _removed(node: Node, before: Values, after: Values) -> list[str]:
    removed = [key for key in before if key not in after]
    for key in removed:
        if node.pair(key) is None:
            raise UnusualLayoutError(f"{key!r} comes from a merge key")
    return removed


def _place(node: Node, key: str, after: Values) -> int:
    earlier = list(after)[: list(after).index(key)]
    places = [place for place, (found, _) in enumerate(node.pairs) if found.value in earlier]
    return max(places, default=len(node.pairs) - 1)


def _pair(key: str, value: Written, margin: str, *, in_block: bool) -> str:
    if in_block and value and isinstance(value, Mapping):
        entries = [emit_pair(name, item, in_flow=False) for name, item in value.items()]
    elif in_block and value and isinstance(value, list):
        entries = [f"- {emit_value(item, in_flow=False)}" for item in value]
    else:
        return _indented(emit_pair(key, value, in_flow=False), margin).strip()
    return f"{key}:\n" + "".join(_indented(entry, f"{margin}  ") for entry in entries).rstrip("\n")


def _item(values: Values, neighbour: Node) -> str:
    if neighbour.kind != "mapping" or neighbour.is_flow:
        return f"- {emit_value(values, in_flow=False)}"
    pairs = "\n".join(emit_pair(key, value, in_flow=False) for key, value in values.items())
    return "- " + pairs.replace("\n", "\n  ")


def _item_starts(text: str, sequence: Node) -> tuple[str, list[int]]:
    first = line_start(text, sequence.start)
    margin = text[first : sequence.start]
    starts = [first]
    for previous, item in zip(sequence.items, sequence.items[1:], strict=False):
        starts.append(text.rfind(f"\n{margin}-", previous.end, item.start) + 1)
    if sequence.is_flow or margin.strip() or text[sequence.start] != "-" or 0 in starts[1:]:
        raise UnusualLayoutError("the list does not have a line for each item")
    return margin, starts


def _indented(lines: str, margin: str) -> str:
    return "".join(f"{margin}{line}\n" for line in lines.split("\n"))


def _are_mappings(before: Written | None, after: Written) -> bool:
    """Whether both values are lists, and at least one contains mappings."""
    if not isinstance(before, list) or not isinstance(after, list):
        return False
    return any(isinstance(item, Mapping) for item in (*before, *after))


def _items(value: Written | None) -> list[Values]:
    assert isinstance(value, list)
    return value


_ALIAS = re.compile(r"(?:[\s,:?\[{-]|(?<!\S)#[^\n]*\n)*(\*[^\s,\[\]{}]+)")
_COLON = re.compile(r"(?:\s|(?<=\s)#[^\n]*\n)*:")
_COMMENT = re.compile(r"(?<!\S)#.*")


class UnusualLayoutError(DeltaEngineError):
    """A part of a YAML file has a layout that the editor does not change; the message tells why."""

    topic = "unusual-layout"


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
    return laid_out(root, text)


def laid_out(root: Any, text: str) -> Node:
    """Return the layout of a composed YAML text, which has no byte order mark and ends with a line feed."""
    return _node(root, text, 0)


def spliced(text: str, splices: Iterable[Splice], start: int = 0, end: int | None = None) -> str:
    """Return a text, or the part from `start` to `end`, with its splices applied; overlaps raise UnusualLayoutError."""
    pieces: list[str] = []
    limit = len(text) if end is None else end
    for splice in sorted(splices, key=lambda one: (one.start, one.end)):
        if splice.start < start or splice.end > limit:
            raise UnusualLayoutError("two changes concern the same place")
        pieces += (text[start : splice.start], splice.text)
        start = splice.end
    return "".join((*pieces, text[start:limit]))


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
    """Return the position after a key's colon, or after the key if it has none."""
    found = _COLON.match(text, key.end)
    return found.end() if found else key.end


def _scalars(node: Node) -> Iterator[Node]:
    if node.kind in ("scalar", "alias"):
        yield node
    for child in (*node.items, *(child for pair in node.pairs for child in pair)):
        yield from _scalars(child)


def _node(found: Any, text: str, floor: int) -> Node:
    """Return a composed node; `floor` is its earliest start, because an alias yields the earlier node of its anchor."""
    start, end = found.start_mark.index, found.end_mark.index
    if start < floor:
        alias = _ALIAS.match(text, floor)
        if alias is None:
            raise UnusualLayoutError("the place of an alias is not clear")
        return Node("alias", *alias.span(1))
    match found.id:
        case "scalar" if start == end:  # an empty value, which the parser places before the next token
            return Node("scalar", floor, floor)
        case "scalar":
            return Node("scalar", start, _scalar_end(found, text), joined(found.value), found.style or None)
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
