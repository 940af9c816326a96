"""The layout of entity-relationship diagrams: boxes in columns, and a curve for each foreign key that crosses no box.

Tables stand right of the tables that they reference. A curve bends only between columns, and passes a column through a
slot. Curves to the same key share their slots and the place where they bend. Same input, same layout.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias

from delta_engine.tools.site.layers import assign_layers, connected

HEADER: Final = 32
ROW: Final = 20
STEEP: Final = 96
"""The height of a curve above which its middle is a vertical line."""

_SWEEPS: Final = 12
_ROOM: Final = 1.1
"""The height of a diagram, in heights of its tallest column: with more room, curves cross less."""
_GAP: Final = 24
_NARROW_GAP: Final = 10
_CHANNEL: Final = 64
_LANE: Final = 9
_LOOP: Final = 30
_LOOP_HALF: Final = 6
"""Half the height of a loop at a single row."""
_BETWEEN_PARTS: Final = 48
_MARGIN: Final = 16
_WIDE: Final = 1.6
"""The wanted proportion of width to height."""
_USUAL_BOX: Final = (280, 110)

Point: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Relation:
    """A foreign key: the keys of both tables, and the row of each at which its curve ends."""

    child: str
    child_row: int
    parent: str
    parent_row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bow:
    """The part of a curve between two columns, or between two rows of a box.

    Args:
        bend: where it changes its height, from the left.
    """

    start: Point
    bend: int
    end: Point


@dataclass(slots=True, kw_only=True, eq=False)
class Slot:
    """The place of a box, or of curves that pass a column: then its width is that of the column, and its height 0."""

    key: str = ""
    column: int
    width: int = 0
    height: int = 0
    x: int = 0
    y: int = 0
    left: list[_Hop] = field(default_factory=list)
    right: list[_Hop] = field(default_factory=list)


_Port: TypeAlias = tuple[Slot, int]
"""A slot, and how far below its top curves leave or enter it."""
_Hop: TypeAlias = tuple[_Port, _Port]
"""The ports that curves connect through one channel, the left one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The places of boxes, with the size of the whole, and the curves of foreign keys from child to parent.

    Straight lines connect the bows of a curve.
    """

    width: int
    height: int
    boxes: Sequence[Slot]
    curves: Mapping[Relation, Sequence[Bow]]


def lay_out(sizes: Mapping[str, tuple[int, int]], relations: Iterable[Relation]) -> Layout:
    """Return the layout of tables and foreign keys between them, in any order.

    Connected tables stay together; the largest group comes first.

    Args:
        sizes: the width and height of each table's box, by key.
    """
    ordered = sorted(set(relations))
    groups = connected(sorted(sizes), [(relation.parent, relation.child) for relation in ordered])
    group_of = {key: number for number, group in enumerate(groups) for key in group}
    inside: list[list[Relation]] = [[] for _ in groups]
    for relation in ordered:
        inside[group_of[relation.parent]].append(relation)
    parts = [
        _Component({key: sizes[key] for key in group}, relations)
        for group, relations in zip(groups, inside, strict=True)
    ]
    width, height = _pack(parts)
    return Layout(
        width=width,
        height=height,
        boxes=[box for part in parts for box in part.boxes.values()],
        curves=dict(curve for part in parts for curve in part.curves()),
    )


class _Component:
    """A group of connected tables."""

    def __init__(self, sizes: Mapping[str, tuple[int, int]], relations: Sequence[Relation]) -> None:
        capacity = max(2, round(math.sqrt(len(sizes) * _USUAL_BOX[0] / (_WIDE * _USUAL_BOX[1]))))
        pairs = [(relation.parent, relation.child) for relation in relations]
        layers = assign_layers(list(sizes), pairs, capacity)
        self.boxes = {
            key: Slot(key=key, column=layers[key], width=width, height=height)
            for key, (width, height) in sizes.items()
        }
        self._columns: list[list[Slot]] = [[] for _ in range(max(layers.values()) + 1)]
        for box in self.boxes.values():
            self._columns[box.column].append(box)
        self._ways = self._connect(relations)
        _place_in_y(self._columns)
        self._bends = _place_in_x(self._columns)
        self._slots = [slot for column in self._columns for slot in column]
        self.move(0, -min(slot.y for slot in self._slots))
        has_loops = any(parent == child for parent, child in pairs)
        self.width = max(slot.x + slot.width for slot in self._slots) + (_LOOP if has_loops else 0)
        self.height = max(slot.y + slot.height for slot in self._slots)

    def _connect(self, relations: Sequence[Relation]) -> dict[Relation, list[_Port]]:
        """Return the ports that each curve passes, from left to right; adds the slots for passages to the columns."""
        passages: dict[tuple[str, int, int], Slot] = {}
        ways = {}
        for relation in relations:
            start = self.boxes[relation.parent], _row_centre(relation.parent_row)
            end = self.boxes[relation.child], _row_centre(relation.child_row)
            if end[0].column < start[0].column:
                start, end = end, start
            if start == end:
                start, end = (start[0], start[1] - _LOOP_HALF), (end[0], end[1] + _LOOP_HALF)
            ways[relation] = [start]
            for column in range(start[0].column + 1, end[0].column):
                shared = relation.parent, relation.parent_row, column
                if shared not in passages:
                    passages[shared] = Slot(column=column)
                    self._columns[column].append(passages[shared])
                ways[relation].append((passages[shared], 0))
            ways[relation].append(end)
        for left, right in dict.fromkeys(hop for way in ways.values() for hop in pairwise(way)):
            if left[0] is not right[0]:
                left[0].right.append((left, right))
                right[0].left.append((left, right))
        return ways

    def move(self, x: int, y: int) -> None:
        """Move all slots."""
        for slot in self._slots:
            slot.x += x
            slot.y += y

    def curves(self) -> Iterator[tuple[Relation, tuple[Bow, ...]]]:
        """Yield the curves between the boxes where they are now."""
        for relation, way in self._ways.items():
            bows = [self._bow(left, right) for left, right in pairwise(way)]
            if way[0][0].key == relation.parent:
                bows = [Bow(start=bow.end, bend=bow.bend, end=bow.start) for bow in reversed(bows)]
            yield relation, tuple(bows)

    def _bow(self, left: _Port, right: _Port) -> Bow:
        edge = left[0].x + left[0].width
        is_loop = left[0] is right[0]
        return Bow(
            start=(edge, _height(left)),
            bend=edge + (_LOOP if is_loop else self._bends[left]),
            end=(edge if is_loop else right[0].x, _height(right)),
        )


def _row_centre(row: int) -> int:
    return HEADER + ROW * row + ROW // 2 - 2


def _height(port: _Port) -> int:
    slot, below_top = port
    return slot.y + below_top


def _place_in_y(columns: Sequence[list[Slot]]) -> None:
    """Order and place the slots of columns, again and again, by what they are connected with at one side."""
    room = _ROOM * max(_offsets(column)[-1] for column in columns)
    for column in columns:
        _stack(column, [room / 2] * len(column), room)
    for sweep in range(_SWEEPS):
        rightwards = sweep % 2 == 0
        for column in columns if rightwards else columns[::-1]:
            tops = {slot: _wanted_top(slot, rightwards=rightwards) for slot in column}
            column.sort(key=lambda slot: tops[slot] + slot.height / 2)
            _stack(column, [tops[slot] for slot in column], room)


def _wanted_top(slot: Slot, *, rightwards: bool) -> float:
    if rightwards:
        tops = [_height(left) - own for left, (_, own) in slot.left]
    else:
        tops = [_height(right) - own for (_, own), right in slot.right]
    return sum(tops) / len(tops) if tops else slot.y


def _offsets(column: Sequence[Slot]) -> list[int]:
    """Return the least distances of slots from the top of their column, and its least height."""
    offsets = [0]
    for slot, following in pairwise(column):
        gap = _GAP if slot.height or following.height else _NARROW_GAP
        offsets.append(offsets[-1] + slot.height + gap)
    return [*offsets, offsets[-1] + column[-1].height]


def _stack(column: Sequence[Slot], tops: Sequence[float], room: float) -> None:
    """Place slots below each other, as near to the wanted tops as possible (least squares)."""
    *offsets, least_height = _offsets(column)
    blocks: list[tuple[float, int]] = []
    for top, offset in zip(tops, offsets, strict=True):
        mean, count = top - offset, 1
        while blocks and blocks[-1][0] > mean:
            earlier, size = blocks.pop()
            mean, count = (earlier * size + mean * count) / (size + count), size + count
        blocks.append((mean, count))
    shifts = [mean for mean, count in blocks for _ in range(count)]
    for slot, offset, shift in zip(column, offsets, shifts, strict=True):
        slot.y = offset + math.floor(min(max(0, shift), room - least_height))


def _place_in_x(columns: Sequence[Sequence[Slot]]) -> dict[_Port, int]:
    """Place columns next to each other; return how far right of its column the curves from each port bend."""
    bends: dict[_Port, int] = {}
    x = 0
    for column in columns:
        width = max(slot.width for slot in column)
        for slot in column:
            slot.x, slot.width = x, width
        ends: dict[_Port, list[int]] = defaultdict(list)
        for left, right in (hop for slot in column for hop in slot.right):
            ends[left].append(_height(right))
        lanes = _lanes(ends)
        channel = _CHANNEL + _LANE * max(lanes.values(), default=0)
        for port in ends:
            bends[port] = _CHANNEL // 2 + _LANE * lanes[port] if port in lanes else channel // 2
        x += width + channel
    return bends


def _lanes(ends: Mapping[_Port, Sequence[int]]) -> dict[_Port, int]:
    """Return the lanes for the vertical lines of steep curves from the same port; lines in one lane do not meet.

    Of curves that lead down, the highest start gets the last lane, and of those that lead up the lowest: they cross
    least.
    """
    spans = {
        port: (min(_height(port), *heights), max(_height(port), *heights))
        for port, heights in ends.items()
        if any(abs(height - _height(port)) > STEEP for height in heights)
    }

    def order(port: _Port) -> tuple[bool, int]:
        leads_up = sum(ends[port]) < _height(port) * len(ends[port])
        return leads_up, _height(port) if leads_up else -_height(port)

    lanes: dict[_Port, int] = {}
    for port in sorted(spans, key=order):
        top, bottom = spans[port]
        crossed = [
            lane for other, lane in lanes.items() if spans[other][0] <= bottom and top <= spans[other][1]
        ]
        lanes[port] = 1 + max(crossed, default=-1)
    return lanes


def _pack(parts: Sequence[_Component]) -> tuple[int, int]:
    """Place groups next to and below each other, the largest first; return the size of the whole."""
    area = sum((part.width + _BETWEEN_PARTS) * (part.height + _BETWEEN_PARTS) for part in parts)
    widest = max([math.sqrt(area * _WIDE), *(part.width for part in parts)], default=0)
    x = y = _MARGIN
    right = below = 0
    for part in sorted(parts, key=lambda part: (-part.height, -part.width)):
        if x > _MARGIN and x + part.width > widest + _MARGIN:
            x, y = _MARGIN, below + _BETWEEN_PARTS
        part.move(x, y)
        right, below = max(right, x + part.width), max(below, y + part.height)
        x += part.width + _BETWEEN_PARTS
    return right + _MARGIN, below + _MARGIN
