"""The layout of diagrams: no two boxes overlap, and no line crosses a box, whatever references what."""

from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.tools.site.diagram import Box, Diagram, Entity, Relation, lay_out

Shape = tuple[list[Entity], list[Relation]]


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Return tables with rows, and foreign keys between any of them: circles and loops too."""
    count = draw(st.integers(1, 14))
    rows = [draw(st.integers(1, 4)) for _ in range(count)]
    entities = [
        Entity(key=f"t{at:02}", title=f"t{at:02}", rows=tuple(f"c{row}" for row in range(rows[at])))
        for at in range(count)
    ]
    ends = st.integers(0, count - 1)
    relations = [
        Relation(
            child=f"t{child:02}",
            child_row=draw(st.integers(0, rows[child] - 1)),
            parent=f"t{parent:02}",
            parent_row=draw(st.integers(0, rows[parent] - 1)),
        )
        for child, parent in draw(st.lists(st.tuples(ends, ends), max_size=24))
    ]
    return entities, relations


def star(children: int) -> Shape:
    entities = [
        Entity(key=f"t{at:03}", title=f"table_{at}", rows=("id", "parent_id")) for at in range(children + 1)
    ]
    relations = [
        Relation(child=f"t{at:03}", child_row=1, parent="t000", parent_row=0) for at in range(1, children + 1)
    ]
    return entities, relations


def overlapping(diagram: Diagram) -> list[tuple[str, str]]:
    return [
        (one.entity.key, other.entity.key)
        for one, other in combinations(diagram.boxes, 2)
        if one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    ]


def crossed(diagram: Diagram) -> list[tuple[str, Relation]]:
    """Return the boxes that a line crosses: lines may touch an edge."""
    found = []
    for line in diagram.lines:
        for (x1, y1), (x2, y2) in pairwise(line.corners):
            assert x1 == x2 or y1 == y2
            found += [
                (box.entity.key, line.relation)
                for box in diagram.boxes
                if min(x1, x2) < box.x + box.width
                and max(x1, x2) > box.x
                and min(y1, y2) < box.y + box.height
                and max(y1, y2) > box.y
            ]
    return found


def ends_at(box: Box, x: int, y: int) -> bool:
    return x in (box.x, box.x + box.width) and box.y < y < box.y + box.height


def check(entities: list[Entity], relations: list[Relation]) -> Diagram:
    diagram = lay_out(entities, relations)
    boxes = {box.entity.key: box for box in diagram.boxes}
    assert sorted(boxes) == sorted(entity.key for entity in entities)
    assert overlapping(diagram) == []
    assert crossed(diagram) == []
    assert {line.relation for line in diagram.lines} == set(relations)
    for line in diagram.lines:
        assert ends_at(boxes[line.relation.child], *line.corners[0]), line
        assert ends_at(boxes[line.relation.parent], *line.corners[-1]), line
        assert all(0 <= x <= diagram.width and 0 <= y <= diagram.height for x, y in line.corners)
    for box in diagram.boxes:
        assert box.x + box.width <= diagram.width
        assert box.y + box.height <= diagram.height
    return diagram


@settings(max_examples=300, deadline=None)
@given(shapes())
def test_no_boxes_overlap_and_no_line_crosses_a_box(shape: Shape) -> None:
    check(*shape)


@settings(max_examples=60, deadline=None)
@given(shapes(), st.randoms())
def test_the_order_of_the_input_does_not_matter(shape: Shape, random: object) -> None:
    entities, relations = shape
    assert lay_out(entities[::-1], relations[::-1]) == lay_out(entities, relations)


def test_referenced_tables_stand_at_the_left() -> None:
    entities = [Entity(key=key, title=key, rows=("id",)) for key in ("lines", "orders", "customers")]
    relations = [
        Relation(child="lines", child_row=0, parent="orders", parent_row=0),
        Relation(child="orders", child_row=0, parent="customers", parent_row=0),
    ]
    places = {box.entity.key: box.x for box in lay_out(entities, relations).boxes}
    assert places["customers"] < places["orders"] < places["lines"]


def test_a_hundred_tables_that_reference_one_fill_rows_and_columns() -> None:
    diagram = check(*star(100))
    assert 1 < diagram.width / diagram.height < 3
    columns = {box.x for box in diagram.boxes}
    assert len(columns) >= 5


def test_a_chain_of_a_thousand_tables_is_laid_out() -> None:
    entities = [Entity(key=f"t{at:04}", title=f"t{at}", rows=("id",)) for at in range(1000)]
    relations = [
        Relation(child=f"t{at:04}", child_row=0, parent=f"t{at - 1:04}", parent_row=0)
        for at in range(1, 1000)
    ]
    assert len(lay_out(entities, relations).lines) == 999


def test_groups_without_a_connection_stand_beside_each_other() -> None:
    entities = [Entity(key=f"t{at:02}", title=f"t{at}", rows=("id",)) for at in range(40)]
    relations = [
        Relation(child=f"t{at:02}", child_row=0, parent=f"t{at - 1:02}", parent_row=0)
        for at in range(1, 40, 2)
    ]
    diagram = check(entities, relations)
    assert 1 < diagram.width / diagram.height < 3


def test_wide_characters_make_wide_boxes() -> None:
    narrow, wide = (
        lay_out([Entity(key="t", title=title, rows=("id",))], []).boxes[0].width
        for title in ("a" * 20, "表" * 20)
    )
    assert wide > narrow
