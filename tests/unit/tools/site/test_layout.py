"""The layout of diagrams: no two boxes overlap, and no curve crosses a box, whatever references what."""

from collections import defaultdict
from itertools import combinations, pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.tools.site.layout import STEEP, Bow, Layout, Relation, Slot, lay_out

Shape = tuple[dict[str, tuple[int, int]], list[Relation]]


def size(rows: int) -> tuple[int, int]:
    return 140, 36 + 20 * rows


def relation(child: str, parent: str, child_row: int = 0, parent_row: int = 0) -> Relation:
    return Relation(child=child, child_row=child_row, parent=parent, parent_row=parent_row)


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Return tables with rows, and foreign keys between any of them: circles and loops too."""
    rows = draw(st.lists(st.integers(1, 4), min_size=1, max_size=14))
    ends = st.integers(0, len(rows) - 1)
    relations = [
        relation(
            f"t{child:02}",
            f"t{parent:02}",
            draw(st.integers(0, rows[child] - 1)),
            draw(st.integers(0, rows[parent] - 1)),
        )
        for child, parent in draw(st.lists(st.tuples(ends, ends), max_size=24))
    ]
    return {f"t{at:02}": size(count) for at, count in enumerate(rows)}, relations


def star(children: int) -> Shape:
    keys = [f"t{at:03}" for at in range(children + 1)]
    return dict.fromkeys(keys, size(2)), [relation(key, "t000", 1) for key in keys[1:]]


Rectangle = tuple[int, int, int, int]
"""Left, top, right and bottom."""


def meet(rectangle: Rectangle, other: Rectangle) -> bool:
    """Return whether two rectangles overlap: they may touch."""
    return (
        rectangle[0] < other[2]
        and other[0] < rectangle[2]
        and rectangle[1] < other[3]
        and other[1] < rectangle[3]
    )


def around_box(box: Slot) -> Rectangle:
    return box.x, box.y, box.x + box.width, box.y + box.height


def around_bow(bow: Bow) -> Rectangle:
    """Return the rectangle around the control points of a bow, which it cannot leave."""
    (x, y), (end_x, end_y) = bow.start, bow.end
    return min(x, end_x, bow.bend), min(y, end_y), max(x, end_x, bow.bend), max(y, end_y)


def around_parts(bows: tuple[Bow, ...]) -> list[Rectangle]:
    """Return rectangles around the parts of a curve."""
    passages = []
    for bow, following in pairwise(bows):
        (x, y), (end_x, end_y) = bow.end, following.start
        assert y == end_y
        passages.append((min(x, end_x), y, max(x, end_x), y))
    return [*map(around_bow, bows), *passages]


def ends_at(box: Slot, x: int, y: int) -> bool:
    return x in (box.x, box.x + box.width) and box.y < y < box.y + box.height


def vertical_lines(layout: Layout) -> dict[int, set[tuple[int, int, int]]]:
    """Return the vertical lines of steep curves by their place: top, bottom, and the height at which they start."""
    lines = defaultdict(set)
    for bow in (bow for bows in layout.curves.values() for bow in bows):
        (left, y), (right, end_y) = sorted((bow.start, bow.end))
        if abs(end_y - y) > STEEP and left < right:
            lines[bow.bend].add((min(y, end_y), max(y, end_y), y))
    return lines


def check(sizes: dict[str, tuple[int, int]], relations: list[Relation]) -> Layout:
    layout = lay_out(sizes, relations)
    boxes = {box.key: box for box in layout.boxes}
    assert sorted(boxes) == sorted(sizes)
    for box, other in combinations(layout.boxes, 2):
        assert not meet(around_box(box), around_box(other)), (box.key, other.key)
    for box in layout.boxes:
        assert 0 <= box.x <= box.x + box.width <= layout.width
        assert 0 <= box.y <= box.y + box.height <= layout.height
    assert layout.curves.keys() == set(relations)
    for key, bows in layout.curves.items():
        assert ends_at(boxes[key.child], *bows[0].start), key
        assert ends_at(boxes[key.parent], *bows[-1].end), key
        for part in around_parts(tuple(bows)):
            assert 0 <= part[0] <= part[2] <= layout.width
            assert 0 <= part[1] <= part[3] <= layout.height
            assert not [box.key for box in layout.boxes if meet(part, around_box(box))], key
    for lines in vertical_lines(layout).values():
        for (top, bottom, start), (other_top, other_bottom, other_start) in combinations(lines, 2):
            assert start == other_start or bottom < other_top or other_bottom < top
    return layout


@settings(max_examples=300, deadline=None)
@given(shapes())
def test_no_boxes_overlap_and_no_curve_crosses_a_box(shape: Shape) -> None:
    check(*shape)


@settings(max_examples=60, deadline=None)
@given(shapes(), st.randoms())
def test_the_order_of_the_input_does_not_matter(shape: Shape, random: Random) -> None:
    sizes, relations = shape
    shuffled = random.sample(list(sizes.items()), len(sizes))
    assert places(lay_out(dict(shuffled), random.sample(relations, len(relations)))) == places(
        lay_out(sizes, relations)
    )


def places(layout: Layout) -> object:
    return [(box.key, around_box(box)) for box in layout.boxes], list(layout.curves.items())


def test_referenced_tables_stand_at_the_left() -> None:
    sizes = dict.fromkeys(("lines", "orders", "customers"), size(1))
    layout = check(sizes, [relation("lines", "orders"), relation("orders", "customers")])
    left = {box.key: box.x for box in layout.boxes}
    assert left["customers"] < left["orders"] < left["lines"]


def test_curves_to_one_key_pass_a_column_together() -> None:
    sizes = dict.fromkeys(("root", "middle", "first", "second"), size(2))
    keys = [
        relation("middle", "root"),
        relation("first", "middle"),
        relation("second", "middle"),
        relation("first", "root", 1),
        relation("second", "root", 1),
    ]
    curves = check(sizes, keys).curves
    first, second = curves[keys[3]], curves[keys[4]]
    assert len(first) == len(second) == 2
    assert first[-1] == second[-1]


def test_steep_curves_to_different_keys_run_in_lanes() -> None:
    children = [f"child_{at:02}" for at in range(40)]
    keys = [
        relation(child, f"parent_{at * step % 9}", row)
        for at, child in enumerate(children)
        for row, step in enumerate((1, 4))
    ]
    layout = check(dict.fromkeys([*children, *(key.parent for key in keys)], size(2)), keys)
    assert len(vertical_lines(layout)) > 8


def test_a_column_that_references_itself_has_a_loop() -> None:
    key = relation(
        "rows_of_tenants", "rows_of_tenants"
    )  # the first column of (tenant, parent) and (tenant, id)
    (bow,) = check({key.child: size(3)}, [key]).curves[key]
    assert bow.start[1] != bow.end[1]
    assert bow.bend > bow.start[0] == bow.end[0]


def test_a_hundred_tables_that_reference_one_fill_rows_and_columns() -> None:
    layout = check(*star(100))
    assert 1 < layout.width / layout.height < 3
    assert len({box.x for box in layout.boxes}) >= 5


def test_a_chain_of_a_thousand_tables_is_laid_out() -> None:
    keys = [f"t{at:04}" for at in range(1000)]
    relations = [relation(child, parent) for parent, child in pairwise(keys)]
    assert len(lay_out(dict.fromkeys(keys, size(1)), relations).curves) == 999


def test_groups_without_a_connection_stand_next_to_each_other() -> None:
    keys = [f"t{at:02}" for at in range(40)]
    layout = check(dict.fromkeys(keys, size(1)), [relation(keys[at], keys[at - 1]) for at in range(1, 40, 2)])
    assert 1 < layout.width / layout.height < 3
