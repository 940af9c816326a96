"""The diagram of a schema, ready for its template: shapes, texts and the foreign keys in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from delta_engine.models import QualifiedName, Table
from delta_engine.models.constraints import referenced_table
from delta_engine.telemetry.visible import in_one_line
from delta_engine.tools.site.diagram import Box, Entity, Line, Relation, lay_out, text_width
from delta_engine.tools.site.documented import Documentation
from delta_engine.tools.site.files import table_path
from delta_engine.tools.site.routing import Point

_LONGEST: Final = 32
_RADIUS: Final = 6
_FOOT: Final = 10
_HALF: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRow:
    """A column of a key: `PK`, `FK` or both, and its name, shortened."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBox:
    """A table in the diagram.

    Args:
        name: its whole name.
        path: of its page; None if the site has none.
        is_outside: whether it belongs to another schema, or no model declares it.
    """

    number: int
    box: Box
    name: QualifiedName
    rows: tuple[DrawnRow, ...]
    path: str | None
    is_outside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLine:
    """A foreign key in the diagram: the data of its path, and the numbers of its boxes."""

    data: str
    child: int
    parent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationInWords:
    """A foreign key for those who do not see the diagram."""

    table: Table
    columns: tuple[str, ...]
    other: QualifiedName
    other_path: str | None
    other_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The diagram of a schema.

    Args:
        alone: how many tables of the schema have no foreign key and are not drawn.
    """

    width: int
    height: int
    boxes: tuple[DrawnBox, ...]
    lines: tuple[DrawnLine, ...]
    relations: tuple[RelationInWords, ...]
    alone: int


def draw(tables: Sequence[Table], documentation: Documentation) -> Drawing | None:
    """Return the diagram of the foreign keys of a schema's tables; None if they have none."""
    relations = tuple(_in_words(tables, documentation))
    if not relations:
        return None
    names = {name.key: name for one in relations for name in (one.table.qualified_name, one.other)}
    own = {table.key for table in tables}
    columns = _columns(names, relations, documentation)
    entities = [
        Entity(
            key=key,
            title=_shortened(name.table if key in own else _near_name(name, tables[0])),
            rows=tuple(_shortened(column) for column, _ in columns[key].values()) or ("",),
        )
        for key, name in names.items()
    ]
    rows = {key: {column: at for at, column in enumerate(found)} for key, found in columns.items()}
    diagram = lay_out(entities, list(_relations(relations, rows)))
    numbers = {box.entity.key: number for number, box in enumerate(diagram.boxes)}
    return Drawing(
        width=diagram.width,
        height=diagram.height,
        boxes=tuple(
            DrawnBox(
                number=numbers[box.entity.key],
                box=box,
                name=names[box.entity.key],
                rows=tuple(
                    DrawnRow(mark=mark, text=text)
                    for text, (_, mark) in zip(
                        box.entity.rows, columns[box.entity.key].values(), strict=False
                    )
                ),
                path=_path(box.entity.key, documentation),
                is_outside=box.entity.key not in own,
            )
            for box in diagram.boxes
        ),
        lines=tuple(
            DrawnLine(
                data=path_data(line), child=numbers[line.relation.child], parent=numbers[line.relation.parent]
            )
            for line in diagram.lines
        ),
        relations=relations,
        alone=len(own - names.keys()),
    )


def path_data(line: Line) -> str:
    """Return a line with round corners, a crow's foot at the child, and a bar at the parent."""
    corners = line.corners
    parts = [f"M{_pair(corners[0])}"]
    for before, (x, y), after in zip(corners, corners[1:], corners[2:], strict=False):
        parts.append(f"L{_pair(_towards((x, y), before))}Q{x} {y} {_pair(_towards((x, y), after))}")
    parts.append(f"L{_pair(corners[-1])}")
    (x, y), (end_x, end_y) = corners[0], corners[-1]
    foot = x + _FOOT * _direction(corners[0], corners[1])
    bar = end_x + _FOOT * _direction(corners[-1], corners[-2])
    parts.append(f"M{x} {y - _HALF}L{foot} {y}L{x} {y + _HALF}M{bar} {end_y - _HALF}V{end_y + _HALF}")
    return "".join(parts)


def _in_words(tables: Iterable[Table], documentation: Documentation) -> Iterator[RelationInWords]:
    for table in tables:
        for key in table.foreign_keys:
            other = referenced_table(table.qualified_name, key)
            if other is not None:
                yield RelationInWords(
                    table=table,
                    columns=key.columns,
                    other=other,
                    other_path=_path(other.key, documentation),
                    other_columns=key.referenced_columns,
                )


def _path(key: str, documentation: Documentation) -> str | None:
    table = documentation.by_key.get(key)
    return table_path(table) if table else None


_Columns = dict[str, dict[str, tuple[str, str]]]
"""The columns of keys by table and by name in lower case: the name as declared, and its mark."""


def _columns(
    names: Mapping[str, QualifiedName], relations: Sequence[RelationInWords], documentation: Documentation
) -> _Columns:
    foreign: dict[str, dict[str, str]] = {key: {} for key in names}
    referenced: dict[str, dict[str, str]] = {key: {} for key in names}
    for one in relations:
        foreign[one.table.key] |= {column.lower(): column for column in one.columns}
        referenced[one.other.key] |= {column.lower(): column for column in one.other_columns}
    found: _Columns = {}
    for key in names:
        table = documentation.by_key.get(key)
        primary = table.primary_key.columns if table and table.primary_key else ()
        primary_keys = {column.lower() for column in primary}
        shown = chain(
            ((column.lower(), column) for column in primary), referenced[key].items(), foreign[key].items()
        )
        found[key] = {
            lowered: (column, " ".join(_marks(lowered in primary_keys, lowered in foreign[key])))
            for lowered, column in dict(shown).items()
        }
    return found


def _marks(is_primary: bool, is_foreign: bool) -> Iterator[str]:
    if is_primary:
        yield "PK"
    if is_foreign:
        yield "FK"


def _relations(
    relations: Iterable[RelationInWords], rows: Mapping[str, Mapping[str, int]]
) -> Iterator[Relation]:
    """Yield a line for each foreign key, between the first columns of both sides."""
    for one in relations:
        child, parent = rows[one.table.key], rows[one.other.key]
        yield Relation(
            child=one.table.key,
            child_row=child[one.columns[0].lower()] if one.columns else 0,
            parent=one.other.key,
            parent_row=parent[one.other_columns[0].lower()] if one.other_columns else 0,
        )


def _near_name(name: QualifiedName, near: Table) -> str:
    return near.qualified_name.shortened(name)


def _shortened(text: str) -> str:
    """Return a text on one line, cut where it is wider than a box should be."""
    text = in_one_line(text)
    if text_width(text[: _LONGEST + 1]) <= _LONGEST:
        return text
    text = text[:_LONGEST]
    while text_width(text) >= _LONGEST:
        text = text[:-1]
    return f"{text}…"


def _pair(point: Point) -> str:
    return f"{point[0]} {point[1]}"


def _direction(start: Point, end: Point) -> int:
    return 1 if end[0] > start[0] else -1


def _towards(corner: Point, other: Point) -> Point:
    """Return the point near a corner at which its curve begins or ends."""
    (x, y), (other_x, other_y) = corner, other
    reach = min(_RADIUS, (abs(other_x - x) + abs(other_y - y)) // 2)
    return x + reach * _sign(other_x - x), y + reach * _sign(other_y - y)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)
