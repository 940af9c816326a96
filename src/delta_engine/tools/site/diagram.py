"""The layout of entity-relationship diagrams: boxes in columns, and lines that cross no box.

Tables stand right of the tables that they reference. A line leaves at the right of a box and arrives at the left of
another. It turns only in the channels between columns, and passes a column through a slot of its own. Lines to the same
key share a trunk. Same input, same layout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from delta_engine.tools.site.layers import assign_layers, connected, ordered_columns
from delta_engine.tools.site.routing import HEADER, ROW, Cell, Net, Point, place_columns, routes

_FOOT: Final = 4
_CHARACTER: Final = 7.3  # the width of a monospaced character of 12 px, rounded up
_PADDING: Final = 48
_NARROWEST: Final = 140
_BETWEEN_PARTS: Final = 48
_MARGIN: Final = 16
_WIDE: Final = 1.6
"""The wanted proportion of width to height."""
_USUAL_BOX: Final = (280, 110)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A table to draw.

    Args:
        key: identifies it, and decides its order.
        title: its name, as shown.
        rows: the columns of its keys, as shown.
    """

    key: str
    title: str
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Relation:
    """A foreign key: the keys of both tables, and the row of each at which its line ends."""

    child: str
    child_row: int
    parent: str
    parent_row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A table with its place."""

    entity: Entity
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A foreign key with its corners, from the child to the parent; each part is horizontal or vertical."""

    relation: Relation
    corners: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """Boxes and lines, with the size of the whole."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def lay_out(entities: Sequence[Entity], relations: Sequence[Relation]) -> Diagram:
    """Return the diagram of tables and foreign keys between them, in any order.

    Connected tables stay together; the largest group comes first.
    """
    by_key = {entity.key: entity for entity in sorted(entities, key=lambda one: one.key)}
    edges = sorted(set(relations))
    groups = connected(list(by_key), [(one.parent, one.child) for one in edges])
    group_of = {key: number for number, group in enumerate(groups) for key in group}
    inside: list[list[Relation]] = [[] for _ in groups]
    for edge in edges:
        inside[group_of[edge.parent]].append(edge)
    parts = [
        _lay_out_group([by_key[key] for key in group], edges)
        for group, edges in zip(groups, inside, strict=True)
    ]
    return _packed(parts)


def box_size(entity: Entity) -> tuple[int, int]:
    """Return the width and height of a table's box."""
    longest = max(map(text_width, (entity.title, *entity.rows)), default=0)
    width = max(_NARROWEST, math.ceil((longest * _CHARACTER + _PADDING) / 4) * 4)
    return width, HEADER + ROW * len(entity.rows) + _FOOT


def text_width(text: str) -> int:
    """Return the width of a text in characters; those of East Asian scripts take two."""
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _lay_out_group(entities: Sequence[Entity], relations: Sequence[Relation]) -> Diagram:
    keys = [entity.key for entity in entities]
    capacity = max(2, round(math.sqrt(len(keys) * _USUAL_BOX[0] / (_WIDE * _USUAL_BOX[1]))))
    layers = assign_layers(keys, [(one.parent, one.child) for one in relations], capacity)
    nets = _nets(relations, layers)
    sizes = {entity.key: box_size(entity) for entity in entities}
    columns = ordered_columns(layers, nets)
    cells = {key: Cell(width=width, height=height) for key, (width, height) in sizes.items()}
    placed = place_columns(columns, cells, nets)
    found = routes(placed, nets)
    boxes = tuple(
        Box(
            entity=entity,
            x=placed.lefts[placed.column_of[entity.key]],
            y=placed.tops[entity.key],
            width=placed.widths[placed.column_of[entity.key]],
            height=sizes[entity.key][1],
        )
        for entity in entities
    )
    lines = tuple(Line(relation=one, corners=found[one]) for one in relations)
    return Diagram(width=placed.width, height=placed.height, boxes=boxes, lines=lines)


def _nets(relations: Sequence[Relation], layers: Mapping[str, int]) -> list[Net]:
    """Return the bundles of lines that leave the same port of a box at its right."""
    targets: dict[tuple[str, int, str], list[tuple[str, int, Relation]]] = {}
    for one in relations:
        parent, child = (one.parent, one.parent_row), (one.child, one.child_row)
        if layers[one.parent] <= layers[one.child]:
            targets.setdefault((*parent, "parent"), []).append((*child, one))
        else:
            targets.setdefault((*child, "child"), []).append((*parent, one))
    return [
        Net(node=node, row=row, is_parent=kind == "parent", targets=tuple(found))
        for (node, row, kind), found in targets.items()
    ]


def _packed(parts: Sequence[Diagram]) -> Diagram:
    """Return groups beside and below each other, the largest first."""
    by_size = sorted(parts, key=lambda part: (-part.height, -part.width, part.boxes[0].entity.key))
    area = sum((part.width + _BETWEEN_PARTS) * (part.height + _BETWEEN_PARTS) for part in parts)
    widest = max([math.sqrt(area * _WIDE), *(part.width for part in parts)], default=0)
    boxes: list[Box] = []
    lines: list[Line] = []
    x = y = _MARGIN
    right = below = 0
    for part in by_size:
        if x > _MARGIN and x + part.width > widest + _MARGIN:
            x, y = _MARGIN, below + _BETWEEN_PARTS
        boxes += (_moved_box(box, x, y) for box in part.boxes)
        lines += (_moved_line(line, x, y) for line in part.lines)
        right, below = max(right, x + part.width), max(below, y + part.height)
        x += part.width + _BETWEEN_PARTS
    return Diagram(width=right + _MARGIN, height=below + _MARGIN, boxes=tuple(boxes), lines=tuple(lines))


def _moved_box(box: Box, x: int, y: int) -> Box:
    return Box(entity=box.entity, x=box.x + x, y=box.y + y, width=box.width, height=box.height)


def _moved_line(line: Line, x: int, y: int) -> Line:
    return Line(relation=line.relation, corners=tuple((left + x, top + y) for left, top in line.corners))
