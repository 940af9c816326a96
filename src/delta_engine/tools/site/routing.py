"""The places of boxes in columns, and the corners of the lines between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from delta_engine.tools.site.diagram import Relation

HEADER: Final = 32
ROW: Final = 20
_STEP: Final = 4
_LANE: Final = 12
_CHANNEL: Final = 28
"""The free width of a channel at both sides of its lanes, for the ends of lines."""
_GAP: Final = 24
_NARROW_GAP: Final = 8
_PASSAGE: Final = 8
_OFFSETS: Final = (0, 4, -4, 8, -8)
_LOOP: Final = 6
"""The distance of the end of a loop from its row's centre, where other lines end."""

Point: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Passage:
    """The slot through which a bundle of lines passes a column."""

    net: int
    column: int


Column: TypeAlias = "list[str | Passage]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The size of a box."""

    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """Lines that leave the same row of a box at its right.

    Args:
        is_parent: whether the box is the referenced one.
        targets: the boxes at the other ends, each with its row and its foreign key.
    """

    node: str
    row: int
    is_parent: bool
    targets: tuple[tuple[str, int, Relation], ...]


@dataclass(slots=True, kw_only=True)
class Placed:
    """Columns with the places of what stands in them."""

    columns: Sequence[Column]
    column_of: Mapping[str | Passage, int]
    tops: dict[str | Passage, int]
    widths: list[int]
    lefts: list[int] = field(default_factory=list)
    width: int = 0
    height: int = 0


def place_columns(columns: Sequence[Column], cells: Mapping[str, Cell], nets: Sequence[Net]) -> Placed:
    """Return the tops of boxes and passages: as near to what they are connected with as the order allows."""
    heights: dict[str | Passage, int] = {
        one: cells[one].height if isinstance(one, str) else _PASSAGE for column in columns for one in column
    }
    total = max(_offsets(column, heights)[-1] for column in columns)
    placed = Placed(
        columns=columns,
        column_of={one: number for number, column in enumerate(columns) for one in column},
        tops={},
        widths=[
            max((cells[one].width for one in column if isinstance(one, str)), default=0) for column in columns
        ],
        height=total,
    )
    for column in columns:
        offsets = _offsets(column, heights)
        placed.tops |= {
            one: (total - offsets[-1]) // 2 + at for one, at in zip(column, offsets, strict=False)
        }
    links = list(_links(placed, nets))
    for near in (
        _by_end(links, at_right=True),
        _by_end(links, at_right=False),
        _by_end(links, at_right=True),
    ):
        for column in columns:
            _move_near(column, near, placed, heights, total)
    return placed


def _offsets(column: Column, heights: Mapping[str | Passage, int]) -> list[int]:
    """Return the lowest top of each cell of a column, and the end of the column."""
    found, at = [], 0
    for one, following in [*pairwise(column), (column[-1], None)]:
        found.append(at)
        is_narrow = isinstance(one, Passage) and isinstance(following, Passage)
        at += heights[one] + (0 if following is None else _NARROW_GAP if is_narrow else _GAP)
    return [*found, at]


_Port: TypeAlias = "tuple[str | Passage, int]"
"""A cell, and the distance of a port from its top."""


def _links(placed: Placed, nets: Sequence[Net]) -> Iterator[tuple[_Port, _Port]]:
    """Yield the ports that lines connect through one channel, the left one first."""
    for number, net in enumerate(nets):
        left: _Port = (net.node, row_centre(net.row))
        start = placed.column_of[net.node]
        ends = sorted((placed.column_of[node], node, row) for node, row, _ in net.targets)
        for column in range(start + 1, ends[-1][0] + 1):
            for at, node, row in ends:
                if at == column:
                    yield left, (node, row_centre(row))
            if column < ends[-1][0]:
                passage: _Port = (Passage(number, column), _PASSAGE // 2)
                yield left, passage
                left = passage


def row_centre(row: int) -> int:
    """Return the distance of a row's centre from the top of its box."""
    return HEADER + ROW * row + ROW // 2 - 2


def _by_end(
    links: Sequence[tuple[_Port, _Port]], *, at_right: bool
) -> dict[str | Passage, list[tuple[int, _Port]]]:
    found: dict[str | Passage, list[tuple[int, _Port]]] = defaultdict(list)
    for left, right in links:
        end, other = (right, left) if at_right else (left, right)
        found[end[0]].append((end[1], other))
    return found


def _move_near(
    column: Column,
    near: Mapping[str | Passage, Sequence[tuple[int, _Port]]],
    placed: Placed,
    heights: Mapping[str | Passage, int],
    total: int,
) -> None:
    """Move the cells of a column as near to their wanted tops as their order and the height allow."""
    offsets = _offsets(column, heights)
    wanted = []
    for one, offset in zip(column, offsets, strict=False):
        tops = [placed.tops[other] + at - own for own, (other, at) in near.get(one, ())]
        wanted.append((sum(tops) / len(tops) if tops else placed.tops[one]) - offset)
    for one, offset, shift in zip(column, offsets, _never_falling(wanted), strict=False):
        bounded = min(max(0, shift), total - offsets[-1])
        placed.tops[one] = offset + int(bounded) // _STEP * _STEP


def _never_falling(values: Sequence[float]) -> list[float]:
    """Return the nearest sequence in which no value is less than the one before (least squares)."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        mean, count = value, 1
        while blocks and blocks[-1][0] > mean:
            earlier, size = blocks.pop()
            mean, count = (earlier * size + mean * count) / (size + count), size + count
        blocks.append((mean, count))
    return [mean for mean, count in blocks for _ in range(count)]


@dataclass(slots=True)
class _Wire:
    """The part of a net in one channel: where it comes from, and where it goes.

    Args:
        left: the heights at the left side.
        right: the heights at the right side, by cell and row; a passage has row -1.
    """

    net: int
    left: list[int]
    right: dict[tuple[str | Passage, int], int]
    lane: int = 0

    @property
    def span(self) -> tuple[int, int]:
        """Its top and bottom."""
        heights = [*self.left, *self.right.values()]
        return min(heights), max(heights)


def routes(placed: Placed, nets: Sequence[Net]) -> dict[Relation, tuple[Point, ...]]:
    """Return the corners of each line, from child to parent; sets the places of columns, which need room for lanes."""
    channels: list[list[_Wire]] = [[] for _ in placed.columns]
    starts = _starts(placed, nets)
    for number, net in enumerate(nets):
        column = placed.column_of[net.node]
        own = {
            row: placed.tops[net.node] + row_centre(row) + _LOOP
            for node, row, _ in net.targets
            if node == net.node
        }
        last = max(placed.column_of[node] for node, _, _ in net.targets)
        left = [starts[number], *own.values()]
        for at in range(column, max(last, column + 1)):
            right: dict[tuple[str | Passage, int], int] = {
                (node, row): placed.tops[node] + row_centre(row)
                for node, row, _ in net.targets
                if placed.column_of[node] == at + 1
            }
            if at + 1 < last:
                passage = Passage(number, at + 1)
                right[passage, -1] = placed.tops[passage] + _PASSAGE // 2
            channels[at].append(_Wire(number, left, right))
            left = [right[Passage(number, at + 1), -1]] if at + 1 < last else []
    for at, wires in enumerate(channels):
        _keep_apart(wires, channels[at + 1] if at + 1 < len(channels) else [])
        _assign_lanes(wires)
    _place_in_x(placed, channels)
    return dict(_corners(placed, nets, channels))


def _starts(placed: Placed, nets: Sequence[Net]) -> list[int]:
    """Return the height at which each net leaves its box; nets of one row leave it at different heights."""
    taken: dict[tuple[str, int], int] = defaultdict(int)
    found = []
    for net in nets:
        number = taken[net.node, net.row]
        taken[net.node, net.row] += 1
        found.append(placed.tops[net.node] + row_centre(net.row) + _OFFSETS[number % len(_OFFSETS)])
    return found


def _keep_apart(wires: Sequence[_Wire], following: Sequence[_Wire]) -> None:
    """Move the right ends of wires where they would lie on those of another."""
    left_of = {height: wire.net for wire in wires for height in wire.left}
    later = {wire.net: wire for wire in following}
    right_of: dict[int, int] = {}
    for wire in wires:
        for end, height in wire.right.items():
            for offset in _OFFSETS if end[1] >= 0 else _OFFSETS[:3]:
                moved = height + offset
                if left_of.get(moved, wire.net) == wire.net == right_of.get(moved, wire.net):
                    break
            else:
                moved = height
            right_of[moved] = wire.net
            wire.right[end] = moved
            if end[1] < 0:
                later[wire.net].left[:] = [moved]


def _assign_lanes(wires: Sequence[_Wire]) -> None:
    """Give each wire that turns a lane in which it touches no other."""
    lanes: list[int] = []
    for wire in sorted(wires, key=lambda one: (one.span, one.net)):
        top, bottom = wire.span
        if top == bottom:
            continue
        wire.lane = next((lane for lane, end in enumerate(lanes) if end + _STEP < top), len(lanes))
        lanes[wire.lane : wire.lane + 1] = [bottom]


def _place_in_x(placed: Placed, channels: Sequence[Sequence[_Wire]]) -> None:
    x = 0
    for width, wires in zip(placed.widths, channels, strict=True):
        placed.lefts.append(x)
        lanes = max((wire.lane + 1 for wire in wires), default=0)
        x += width + (2 * _CHANNEL + (lanes - 1) * _LANE if wires else 0)
    has_loops = any(channels[-1])
    placed.width = x if has_loops else placed.lefts[-1] + placed.widths[-1]


def _corners(
    placed: Placed, nets: Sequence[Net], channels: Sequence[Sequence[_Wire]]
) -> Iterator[tuple[Relation, tuple[Point, ...]]]:
    wires = {(wire.net, at): wire for at, found in enumerate(channels) for wire in found}
    for number, net in enumerate(nets):
        column = placed.column_of[net.node]
        for node, row, relation in net.targets:
            wire = wires[number, column]
            x = placed.lefts[column] + placed.widths[column]
            lane = x + _CHANNEL + wire.lane * _LANE
            if node == net.node:
                end = placed.tops[node] + row_centre(row) + _LOOP
                points = [(x, wire.left[0]), (lane, wire.left[0]), (lane, end), (x, end)]
            else:
                points = _through_channels(placed, wires, number, column, (node, row), (x, wire.left[0]))
            corners = tuple(_without_needless(points))
            yield relation, corners[::-1] if net.is_parent else corners


def _through_channels(
    placed: Placed,
    wires: Mapping[tuple[int, int], _Wire],
    number: int,
    column: int,
    target: tuple[str, int],
    start: Point,
) -> list[Point]:
    points, height = [start], start[1]
    last = placed.column_of[target[0]]
    for at in range(column, last):
        wire = wires[number, at]
        end = wire.right[target if at + 1 == last else (Passage(number, at + 1), -1)]
        lane = placed.lefts[at] + placed.widths[at] + _CHANNEL + wire.lane * _LANE
        points += [(lane, height), (lane, end), (placed.lefts[at + 1], end)]
        height = end
    return points


def _without_needless(points: Sequence[Point]) -> Iterator[Point]:
    """Yield the corners at which a line turns, with its ends."""
    distinct = [point for at, point in enumerate(points) if at == 0 or point != points[at - 1]]
    for at, (x, y) in enumerate(distinct):
        if 0 < at < len(distinct) - 1:
            before, after = distinct[at - 1], distinct[at + 1]
            if before[0] == x == after[0] or before[1] == y == after[1]:
                continue
        yield x, y
