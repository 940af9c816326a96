"""The diagram of a schema, ready for its template: shapes and texts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from delta_engine.models import QualifiedName, Table
from delta_engine.telemetry.visible import in_one_line
from delta_engine.tools.site.documented import Documentation, Link
from delta_engine.tools.site.layout import HEADER, ROW, STEEP, Bow, Relation, Slot, lay_out

_LONGEST: Final = 32
_CHARACTER: Final = 7.3  # the width of a monospaced character of 12 px, rounded up
_PADDING: Final = 48
_NARROWEST: Final = 140
_FOOT: Final = 4
_STUB: Final = 10
"""The straight part of a curve at its ends, for the crow's foot and the bar."""
_HALF: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A column of a key: its name, shortened, and `PK`, `FK` or both."""

    text: str
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A table in the diagram.

    Args:
        title: its name, shortened.
        path: of its page; None if the site has no page for it.
        is_outside: whether it belongs to another schema, or no model declares it.
    """

    number: int
    place: Slot
    name: QualifiedName
    title: str
    rows: Sequence[Row]
    path: str | None
    is_outside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagramLine:
    """A foreign key in the diagram: the data of its path, and the numbers of its boxes."""

    data: str
    child: int
    parent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """The diagram of a schema.

    Args:
        relations: the foreign keys, for readers who do not see the diagram.
        alone: how many tables of the schema have no foreign key and are not drawn.
    """

    width: int
    height: int
    boxes: Sequence[Box]
    lines: Sequence[DiagramLine]
    relations: Sequence[tuple[Table, Link]]
    alone: int


def draw(tables: Sequence[Table], documentation: Documentation) -> Diagram | None:
    """Return the diagram of the foreign keys of a schema's tables; None if they have no foreign keys."""
    links = [(table, link) for table in tables for link in documentation.references(table)]
    if not links:
        return None
    names = {name.key: name for table, link in links for name in (table.qualified_name, link.other)}
    own = {table.key for table in tables}
    titles = {
        key: _shortened(name.table if key in own else tables[0].qualified_name.shortened(name))
        for key, name in names.items()
    }
    columns = _key_columns(names, links, documentation)
    rows = {key: list(columns[key].values()) or [Row(text="", mark="")] for key in names}
    layout = lay_out(
        {key: _box_size([titles[key], *(row.text for row in rows[key])], len(rows[key])) for key in names},
        _relations(links, columns),
    )
    numbers = {place.key: number for number, place in enumerate(layout.boxes)}
    return Diagram(
        width=layout.width,
        height=layout.height,
        boxes=[
            Box(
                number=numbers[place.key],
                place=place,
                name=names[place.key],
                title=titles[place.key],
                rows=rows[place.key],
                path=documentation.path_of(place.key),
                is_outside=place.key not in own,
            )
            for place in layout.boxes
        ],
        lines=[
            DiagramLine(data=path_data(bows), child=numbers[relation.child], parent=numbers[relation.parent])
            for relation, bows in layout.curves.items()
        ],
        relations=links,
        alone=len(own - names.keys()),
    )


def path_data(bows: Sequence[Bow]) -> str:
    """Return a curve with a crow's foot at the child, and a bar at the parent."""
    (x, y), (end_x, end_y) = bows[0].start, bows[-1].end
    foot, bar = _beside(x, bows[0].bend), _beside(end_x, bows[-1].bend)
    return (
        f"M{x} {y}{''.join(map(_bow_data, bows))}H{end_x}"
        f"M{x} {y - _HALF}L{foot} {y}L{x} {y + _HALF}M{bar} {end_y - _HALF}v{2 * _HALF}"
    )


def _bow_data(bow: Bow) -> str:
    (x, y), bend, (end_x, end_y) = bow.start, bow.bend, bow.end
    if y == end_y:
        return ""
    begin, end = f"H{_beside(x, bend)}", f"{_beside(end_x, bend)} {end_y}"
    if abs(end_y - y) <= STEEP:
        return f"{begin}C{bend} {y} {bend} {end_y} {end}"
    arc = STEEP // 2 if end_y > y else -STEEP // 2
    return f"{begin}Q{bend} {y} {bend} {y + arc}V{end_y - arc}Q{bend} {end_y} {end}"


def _beside(x: int, bend: int) -> int:
    return x + _STUB if bend > x else x - _STUB


def _key_columns(
    keys: Iterable[str], links: Iterable[tuple[Table, Link]], documentation: Documentation
) -> dict[str, dict[str, Row]]:
    """Return the columns of each table's keys, by their names in lower case."""
    foreign: dict[str, dict[str, str]] = defaultdict(dict)
    referenced: dict[str, dict[str, str]] = defaultdict(dict)
    for table, link in links:
        foreign[table.key] |= _lowered(link.columns)
        referenced[link.other.key] |= _lowered(link.other_columns)
    columns = {}
    for key in keys:
        declared = documentation.by_key.get(key)
        primary = _lowered(declared.primary_key.columns) if declared and declared.primary_key else {}
        marked = (("PK", primary), ("FK", foreign[key]))
        columns[key] = {
            lowered: Row(text=_shortened(column), mark=" ".join(mark for mark, by in marked if lowered in by))
            for lowered, column in (primary | referenced[key] | foreign[key]).items()
        }
    return columns


def _lowered(columns: Iterable[str]) -> dict[str, str]:
    return {column.lower(): column for column in columns}


def _relations(
    links: Iterable[tuple[Table, Link]], columns: Mapping[str, Mapping[str, Row]]
) -> Iterator[Relation]:
    """Yield a relation for each foreign key, between the first columns of both sides."""
    rows = {key: {column: row for row, column in enumerate(columns[key])} for key in columns}
    for table, link in links:
        yield Relation(
            child=table.key,
            child_row=rows[table.key][link.columns[0].lower()] if link.columns else 0,
            parent=link.other.key,
            parent_row=rows[link.other.key][link.other_columns[0].lower()] if link.other_columns else 0,
        )


def _box_size(texts: Iterable[str], rows: int) -> tuple[int, int]:
    width = math.ceil((max(map(_text_width, texts)) * _CHARACTER + _PADDING) / 4) * 4
    return max(_NARROWEST, width), HEADER + ROW * rows + _FOOT


def _shortened(text: str) -> str:
    """Return a text on one line, cut where it is wider than a box should be."""
    text = in_one_line(text)
    if _text_width(text[: _LONGEST + 1]) <= _LONGEST:
        return text
    text = text[:_LONGEST]
    while _text_width(text) >= _LONGEST:
        text = text[:-1]
    return f"{text}…"


def _text_width(text: str) -> int:
    """Return the width of a text in characters; those of East Asian scripts take two."""
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
