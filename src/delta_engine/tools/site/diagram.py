"""The diagram of a schema, or around a view, ready for its template: shapes and texts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from delta_engine.models import QualifiedName, Table, View
from delta_engine.telemetry.visible import in_one_line
from delta_engine.tools.site.documented import Documentation, Link, relation_name
from delta_engine.tools.site.layout import HEADER, ROW, STEEP, Bow, Relation, Slot, lay_out

_LONGEST: Final = 32
_CHARACTER: Final = 7.3  # the width of a monospaced character of 12 px, rounded up
_PADDING: Final = 48
_NARROWEST: Final = 140
_FOOT: Final = 4
_STUB: Final = 10
"""The straight part of a curve at its ends, for the crow's foot and the bar."""
_HALF: Final = 5


KeyRow: TypeAlias = tuple[str, str]
"""A column of a key: its name, shortened, and `PK`, `FK` or both. Views have a row without a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A table or view in the diagram.

    Args:
        title: its name, shortened.
        path: of its page; None if the site has no page for it.
        is_outside: whether it belongs to another schema, or no model declares it.
    """

    number: int
    place: Slot
    name: QualifiedName
    title: str
    rows: Sequence[KeyRow]
    path: str | None
    is_outside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagramLine:
    """A foreign key or a read in the diagram: the data of its path, and the numbers of its boxes."""

    data: str
    child: int
    parent: int
    is_read: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """The diagram of a schema, or around a view.

    Args:
        relations: the foreign keys and reads, for readers who do not see the diagram.
        alone: how many tables and views are not drawn because they have neither.
    """

    width: int
    height: int
    boxes: Sequence[Box]
    lines: Sequence[DiagramLine]
    relations: Sequence[tuple[Table | View, Link]]
    alone: int


def draw(models: Sequence[Table | View], documentation: Documentation) -> Diagram | None:
    """Return the diagram of the foreign keys and reads of a schema's tables and views; None if they have none."""
    return _drawn(
        models, [(model, link) for model in models for link in documentation.links_of(model)], documentation
    )


def draw_lineage(view: View, documentation: Documentation) -> Diagram | None:
    """Return the diagram of what a view reads and what reads it; None if that is nothing."""
    sources = [(view, link) for link in documentation.links_of(view)]
    return _drawn([view], [*sources, *documentation.readers.get(view.key, ())], documentation)


def _drawn(
    models: Sequence[Table | View], links: Sequence[tuple[Table | View, Link]], documentation: Documentation
) -> Diagram | None:
    if not links:
        return None
    home = relation_name(models[0])
    names = {name.key: name for model, link in links for name in (relation_name(model), link.other)}
    own = {model.key for model in models}
    titles = {
        key: _shortened(name.table if key in own else home.shortened(name)) for key, name in names.items()
    }
    columns = _key_columns(names, links, documentation)
    rows = {key: list(columns[key].values()) or [("", "")] for key in names}
    layout = lay_out(
        {key: _box_size([titles[key], *(text for text, _ in rows[key])], len(rows[key])) for key in names},
        _relations(links, columns),
    )
    views = {view.key for view in documentation.views}
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
            DiagramLine(
                data=path_data(bows, has_ends=relation.child not in views),
                child=numbers[relation.child],
                parent=numbers[relation.parent],
                is_read=relation.child in views,
            )
            for relation, bows in layout.curves.items()
        ],
        relations=links,
        alone=len(own - names.keys()),
    )


def path_data(bows: Sequence[Bow], *, has_ends: bool = True) -> str:
    """Return a curve with a crow's foot at the child, and a bar at the parent.

    Args:
        has_ends: whether it has both marks.
    """
    (x, y), (end_x, end_y) = bows[0].start, bows[-1].end
    foot, bar = _beside(x, bows[0].bend), _beside(end_x, bows[-1].bend)
    curve = f"M{x} {y}{''.join(map(_bow_data, bows))}H{end_x}"
    ends = f"M{x} {y - _HALF}L{foot} {y}L{x} {y + _HALF}M{bar} {end_y - _HALF}v{2 * _HALF}"
    return f"{curve}{ends}" if has_ends else curve


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
    keys: Iterable[str], links: Iterable[tuple[Table | View, Link]], documentation: Documentation
) -> dict[str, dict[str, KeyRow]]:
    """Return the columns of each table's keys, by their names in lower case; a view has one row, which says so."""
    foreign: dict[str, dict[str, str]] = defaultdict(dict)
    referenced: dict[str, dict[str, str]] = defaultdict(dict)
    for model, link in links:
        if not link.is_read:
            foreign[model.key] |= _lowered(link.columns)
            referenced[link.other.key] |= _lowered(link.other_columns)
    columns = {}
    for key in keys:
        declared = documentation.by_key.get(key)
        if isinstance(declared, View):
            columns[key] = {"": ("", "view")}
            continue
        primary = _lowered(declared.primary_key.columns) if declared and declared.primary_key else {}
        marked = (("PK", primary), ("FK", foreign[key]))
        columns[key] = {
            lowered: (_shortened(column), " ".join(mark for mark, by in marked if lowered in by))
            for lowered, column in (primary | referenced[key] | foreign[key]).items()
        }
    return columns


def _lowered(columns: Iterable[str]) -> dict[str, str]:
    return {column.lower(): column for column in columns}


def _relations(
    links: Iterable[tuple[Table | View, Link]], columns: Mapping[str, Mapping[str, KeyRow]]
) -> Iterator[Relation]:
    """Yield a relation for each foreign key, between the first columns of both sides, and for each read."""
    rows = {key: {column: row for row, column in enumerate(columns[key])} for key in columns}
    for model, link in links:
        yield Relation(
            child=model.key,
            child_row=rows[model.key][link.columns[0].lower()] if link.columns else 0,
            parent=link.other.key,
            parent_row=rows[link.other.key].get(link.other_columns[0].lower(), 0)
            if link.other_columns
            else 0,
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
