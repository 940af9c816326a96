"""The diagram of a schema: what its boxes show, and the paths of its lines."""

import re

from delta_engine.models import Column, ForeignKey, Table, View
from delta_engine.tools.site.diagram import Box, Diagram, draw, draw_lineage, path_data
from delta_engine.tools.site.layout import Bow
from tests.builders.documentation import documented, everything


def drawn(*tables: Table) -> Diagram:
    documentation = documented(list(tables))
    diagram = draw(documentation.tables, documentation)
    assert diagram is not None
    return diagram


def table(name: str, *references: ForeignKey, columns: tuple[str, ...] = ()) -> Table:
    names = dict.fromkeys(("id", *columns))
    return Table(
        "dev",
        "sales",
        name,
        [Column(column, "bigint", is_nullable=column != "id") for column in names],
        primary_key=["id"],
        foreign_keys=list(references),
    )


def box_of(diagram: Diagram, table_name: str) -> Box:
    return next(box for box in diagram.boxes if box.name.table == table_name)


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"-?\d+", text)]


def test_boxes_show_the_columns_of_keys_with_their_marks() -> None:
    documentation = everything()
    everything_declared: list[Table | View] = [*documentation.tables, *documentation.views]
    models = [declared for declared in everything_declared if declared.schema_name == "silver"]
    diagram = draw(models, documentation)
    assert diagram is not None
    shown = {box.title: [*box.rows] for box in diagram.boxes}
    assert shown == {
        "customers": [("id", "PK")],
        "orders": [("id", "PK"), ("customer_id", "FK"), ("parent_id", "FK"), ("day", "FK")],
        "bronze.days": [("day", "")],
        "recent": [("", "view")],
    }
    assert {box.title: (box.path, box.is_outside) for box in diagram.boxes} == {
        "customers": ("schemas/dev.silver/customers.html", False),
        "orders": ("schemas/dev.silver/orders.html", False),
        "bronze.days": (None, True),
        "recent": ("schemas/dev.silver/views/recent.html", False),
    }


def test_a_view_is_drawn_between_what_it_reads_and_what_reads_it() -> None:
    documentation = everything()
    view = next(view for view in documentation.views if view.view_name == "recent")
    diagram = draw_lineage(view, documentation)
    assert diagram is not None
    titles = {box.number: (box.title, box.is_outside) for box in diagram.boxes}
    lines = {(titles[line.child], titles[line.parent], line.is_read) for line in diagram.lines}
    assert lines == {
        (("recent", False), ("orders", True), True),
        (("gold.buyers", True), ("recent", False), True),
    }
    places = {box.title: box.place.x for box in diagram.boxes}
    assert places["orders"] < places["recent"] < places["gold.buyers"]
    alone = next(view for view in documentation.views if view.view_name == "unread")
    assert draw_lineage(alone, documentation) is None


def test_a_column_of_both_keys_has_both_marks() -> None:
    diagram = drawn(table("parent"), table("child", ForeignKey(["id"], "parent")))
    assert [mark for _, mark in box_of(diagram, "child").rows] == ["PK FK"]


def test_tables_without_foreign_keys_are_counted_and_not_drawn() -> None:
    diagram = drawn(table("alone"), table("child", ForeignKey(["id"], "parent")), table("parent"))
    assert {box.title for box in diagram.boxes} == {"child", "parent"}
    assert diagram.alone == 1
    documentation = documented([table("alone")])
    assert draw(documentation.tables, documentation) is None


def test_long_names_are_cut_and_wide_characters_make_wide_boxes() -> None:
    def width(name: str) -> int:
        return box_of(drawn(table(name), table("child", ForeignKey(["id"], name))), name).place.width

    assert width("表" * 16) > width("a" * 16)
    assert width("a" * 200) == width("a" * 32)
    long = "a" * 200
    diagram = drawn(table(long), table("child", ForeignKey(["id"], long)))
    assert box_of(diagram, long).title == "a" * 31 + "…"


def test_a_line_starts_with_a_crows_foot_at_the_child_and_ends_with_a_bar_at_the_parent() -> None:
    line, foot, bar = path_data([Bow(start=(300, 80), bend=250, end=(200, 40))]).split("M")[1:]
    assert line == "300 80H290C250 80 250 40 210 40H200"
    assert numbers(foot) == [300, 75, 290, 80, 300, 85]
    assert bar == "210 35v10"


def test_a_steep_line_has_a_vertical_middle_and_a_level_line_is_straight() -> None:
    steep, level = (path_data([Bow(start=(300, 80), bend=250, end=(200, end))]) for end in (480, 80))
    assert steep.startswith("M300 80H290Q250 80 250 128V432Q250 480 210 480H200M")
    assert level.startswith("M300 80H200M")


def test_a_line_to_its_own_table_leaves_and_enters_at_the_right() -> None:
    loop = path_data([Bow(start=(200, 80), bend=230, end=(200, 40))])
    assert loop.startswith("M200 80H210C230 80 230 40 210 40H200M200 75L210 80")
