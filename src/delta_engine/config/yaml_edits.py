"""Changes of a YAML text as splices: set, add and remove keys, and rearrange lists.

Everything takes the text, nodes of it and what is wanted, and gives splices that touch nothing else.
What a line or an item means is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from delta_engine.config.yaml_emitter import Value, emit_pair, emit_value
from delta_engine.config.yaml_source import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Splice,
    UnusualLayoutError,
    after_colon,
    line_break,
    line_end,
    line_start,
)

_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Kept:
    """An item that a list had already, by its place then.

    Args:
        place: its place.
        text: what to write in its stead; None leaves it as it is.
    """

    place: int
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Added:
    """A new item: its text, in lines that are not indented."""

    lines: tuple[str, ...]


Item = Kept | Added


def set_key(
    text: str, mapping: MappingNode, key: str, value: Value, after: Sequence[str] = ()
) -> Iterator[Splice]:
    """Give a key a value; a key that is new goes behind the last of the `after` that are there."""
    place = mapping.position(key)
    if place is None:
        yield _added_pair(text, mapping, emit_pair(key, value, in_flow=mapping.is_flow), after)
        return
    key_node, old = mapping.pairs[place]
    style = old.style if isinstance(old, ScalarNode) else None
    new = emit_value(value, in_flow=mapping.is_flow, style=style)
    if old.end > old.start and "\n" not in text[key_node.end : old.start]:
        yield Splice(old.start, old.end, new)
    else:
        yield Splice(after_colon(text, key_node), old.end, f" {new}")


def add_block(
    text: str, mapping: MappingNode, key: str, value: Value, after: Sequence[str] = ()
) -> Iterator[Splice]:
    """Add a key to a block mapping, with a mapping or a list under it, a line per entry."""
    indent = _block_indent(text, mapping)
    if isinstance(value, Mapping):
        entries = [emit_pair(name, item, in_flow=False) for name, item in value.items()]
    else:
        assert isinstance(value, list)
        entries = [f"- {emit_value(item, in_flow=False)}" for item in value]
    lines = "".join(f"\n{entry}" for entry in entries).replace("\n", f"\n{indent}")
    yield _added_pair(text, mapping, f"{key}:{lines}", after)


def remove_keys(text: str, mapping: MappingNode, keys: Sequence[str]) -> Iterator[Splice]:
    """Remove keys with their values; other keys must remain.

    Raises:
        UnusualLayoutError: a key does not stand here itself.
    """
    places = set()
    for key in keys:
        place = mapping.position(key)
        if place is None:
            raise UnusualLayoutError(f"{key!r} comes from somewhere else, by an alias")
        places.add(place)
    spans = [(key.start, value.end) for key, value in mapping.pairs]
    if mapping.is_flow:
        yield from _removed_from_flow(text, spans, places)
        return
    for place in sorted(places):
        start, end = spans[place]
        if not text[line_start(text, start) : start].strip():
            yield Splice(line_start(text, start), line_end(text, end))
        elif place + 1 < len(spans) and "\n" not in text[line_end(text, end) : spans[place + 1][0]]:
            yield Splice(start, spans[place + 1][0])
        else:
            yield Splice(start, end)


def rearrange(text: str, sequence: SequenceNode, key: Node, wanted: Sequence[Item]) -> Iterator[Splice]:
    """Give a list these items in this order; comment lines stay with the item below them.

    Args:
        text: the file.
        sequence: the list.
        key: the key whose value it is.
        wanted: what it shall hold. What it held and is not named goes, except comment lines above it.

    Raises:
        UnusualLayoutError: the list begins on a line with something else.
    """
    if sequence.is_flow:
        yield from _rearranged_flow(text, sequence, wanted)
        return
    if not wanted:
        place = after_colon(text, key)
        yield Splice(place, place, " []")
    yield _rearranged_block(text, sequence, wanted)


def _added_pair(text: str, mapping: MappingNode, pair: str, after: Sequence[str]) -> Splice:
    if not mapping.pairs:
        return Splice(mapping.end - 1, mapping.end - 1, pair)
    places = [place for name in after if (place := mapping.position(name)) is not None]
    last = max(places, default=len(mapping.pairs) - 1)
    end = mapping.pairs[last][1].end
    if mapping.is_flow:
        separator = _separator(text, [(key.start, value.end) for key, value in mapping.pairs], last)
        return Splice(end, end, separator + pair)
    broken = line_break(text)
    margin = " " * _column(text, mapping)
    lines = "".join(f"{margin}{line}{broken}" for line in pair.split("\n"))
    return Splice(line_end(text, end), line_end(text, end), lines)


def _column(text: str, mapping: MappingNode) -> int:
    """Return how far the keys of a block mapping are indented."""
    start = mapping.pairs[0][0].start
    return start - line_start(text, start)


def _block_indent(text: str, mapping: MappingNode) -> str:
    """Return how much deeper this file writes what stands under a key of a mapping."""
    column = _column(text, mapping)
    for _, value in mapping.pairs:
        if isinstance(value, (MappingNode, SequenceNode)) and not value.is_flow:
            start = value.pairs[0][0].start if isinstance(value, MappingNode) else value.start
            deeper = start - line_start(text, start) - column
            if deeper > 0:
                return " " * deeper
    return _INDENT


def _separator(text: str, spans: Sequence[tuple[int, int]], place: int) -> str:
    """Return what to put between an item within braces or brackets and a new one: a line break if others have."""
    for left in (place - 1, place):
        if 0 <= left < len(spans) - 1:
            found = text[spans[left][1] : spans[left + 1][0]]
            if "\n" in found and not found.replace(",", "", 1).strip():
                return found
    return ", "


def _removed_from_flow(text: str, spans: Sequence[tuple[int, int]], places: set[int]) -> Iterator[Splice]:
    """Yield deletions of items with one comma each; what stands on other lines stays."""
    first_kept = min(set(range(len(spans))) - places, default=len(spans))
    for place in sorted(places):
        start, end = spans[place]
        if place > first_kept and "\n" not in text[spans[place - 1][1] : start]:
            yield Splice(spans[place - 1][1], end)
        elif place + 1 < len(spans) and "\n" not in text[end : spans[place + 1][0]]:
            yield Splice(start, spans[place + 1][0])
        else:
            yield _removed_with_its_line(text, start, end)


def _removed_with_its_line(text: str, start: int, end: int) -> Splice:
    comma = re.compile(r"[ \t]*,").match(text, end)
    end = comma.end() if comma else end
    rest = text[end : line_end(text, end)].strip()
    if not text[line_start(text, start) : start].strip() and (not rest or rest.startswith("#")):
        return Splice(line_start(text, start), line_end(text, end))
    return Splice(start, end)


def _rearranged_flow(text: str, sequence: SequenceNode, wanted: Sequence[Item]) -> Iterator[Splice]:
    """Fill the slots of the kept items in the wanted order, delete the others, put new ones between."""
    spans = [(node.start, node.end) for node in sequence.items]
    kept = sorted(item.place for item in wanted if isinstance(item, Kept))
    if not kept:
        start, end = (spans[0][0], spans[-1][1]) if spans else (sequence.end - 1, sequence.end - 1)
        yield Splice(start, end, ", ".join(_flow_text(text, item, spans) for item in wanted))
        return
    yield from _removed_from_flow(text, spans, set(range(len(spans))) - set(kept))
    slots = iter(kept)
    slot: int | None = None
    added = ""
    for item in wanted:
        if isinstance(item, Kept):
            previous, slot = slot, next(slots)
            if previous is None:
                yield Splice(spans[slot][0], spans[slot][0], added)
            else:
                yield Splice(spans[previous][1], spans[previous][1], added)
            added = ""
            if item != Kept(slot):
                yield Splice(*spans[slot], _flow_text(text, item, spans))
        elif slot is None:
            added += item.lines[0] + _separator(text, spans, kept[0])
        else:
            added += _separator(text, spans, slot) + item.lines[0]
    if slot is not None:
        yield Splice(spans[slot][1], spans[slot][1], added)


def _flow_text(text: str, item: Item, spans: Sequence[tuple[int, int]]) -> str:
    if isinstance(item, Added):
        return item.lines[0]
    start, end = spans[item.place]
    return text[start:end] if item.text is None else item.text


def _rearranged_block(text: str, sequence: SequenceNode, wanted: Sequence[Item]) -> Splice:
    """Return the list's lines anew: every item's as they are, with the comment lines above them."""
    dashes = _dashes(text, sequence)
    ends = [line_end(text, item.end) for item in sequence.items]
    begin = _comments_start(text, dashes[0])
    starts = [begin, *ends[:-1]]
    kept = {item.place for item in wanted if isinstance(item, Kept)}
    above: dict[int, str] = {}
    orphans = ""
    for place, dash in enumerate(dashes):
        orphans += text[starts[place] : line_start(text, dash)]
        if place in kept:
            above[place], orphans = orphans, ""
    pieces = []
    for position, item in enumerate(wanted):
        if isinstance(item, Kept):
            node = sequence.items[item.place]
            first = line_start(text, dashes[item.place])
            new = text[node.start : node.end] if item.text is None else item.text
            pieces.append(above[item.place] + text[first : node.start] + new)
            pieces.append(text[node.end : ends[item.place]])
        else:
            neighbours = [one.place for one in wanted[:position][::-1] if isinstance(one, Kept)]
            pieces.append(_new_lines(text, sequence, dashes, (neighbours or [0])[0], item))
    return Splice(begin, ends[-1], "".join((*pieces, orphans)))


def _dashes(text: str, sequence: SequenceNode) -> list[int]:
    """Return where the dash of every item stands."""
    first = line_start(text, sequence.start)
    column = sequence.start - first
    found: list[int] = []
    for item in sequence.items:
        start = line_start(text, item.start)
        while text[start : start + column].strip() or text[start + column : start + column + 1] != "-":
            if start <= first:
                raise UnusualLayoutError("a list begins on a line with something else")
            start = line_start(text, start - 1)
        if start + column in found:
            raise UnusualLayoutError("an item of a list is empty")
        found.append(start + column)
    return found


def _comments_start(text: str, dash: int) -> int:
    """Return where the blank and comment lines above a list's first item begin."""
    start = line_start(text, dash)
    while start:
        above = line_start(text, start - 1)
        line = text[above:start].strip()
        if line and not line.startswith("#"):
            return start
        start = above
    return start


def _new_lines(text: str, sequence: SequenceNode, dashes: Sequence[int], neighbour: int, item: Added) -> str:
    """Return a new item's lines, laid out like a neighbour's."""
    dash = dashes[neighbour]
    margin = text[line_start(text, dash) : dash]
    start = sequence.items[neighbour].start
    is_beside = line_start(text, start) == line_start(text, dash)
    gap = start - dash - 1 if is_beside else 1
    broken = line_break(text)
    inner = broken + margin + " " * (gap + 1)
    return f"{margin}-{' ' * gap}{inner.join(item.lines)}{broken}"
