"""A plan as a page: the tree, and no text that becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser

from delta_engine.actions import AlignTable, CreateTable, DropTable, TablePlan
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.models import Column, QualifiedName, Table
from delta_engine.report.plan_tree import plan_branches, plan_html

HOSTILE = "</li><script>alert(1)</script>&amp;"
ORDERS = Table(
    "dev", "silver", "orders", (Column("id", "bigint", comment=HOSTILE), Column("at", "timestamp"))
)


class Page(HTMLParser):
    """Notes the elements, and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_it_is_the_terminals_tree() -> None:
    plan = TablePlan(
        create_tables=(CreateTable(ORDERS),),
        align_tables=(
            AlignTable(
                QualifiedName("dev", "silver", "customers"),
                (SetTableComment(desired="who buys", observed=HOSTILE),),
            ),
        ),
        drop_tables=(DropTable(QualifiedName("dev", "silver", "gone"), 7),),
    )
    page = Page(plan_html(plan, environment="dev"))
    assert page.open == []
    assert page.elements == {"div", "p", "b", "details", "summary", "ul", "li"}
    branches = list(plan_branches(plan))
    assert len(branches) == 3
    for branch in (*branches, *(leaf for one in branches for leaf in one.leaves)):
        assert f"{branch.sign.value} {branch.text}" in page.text


def test_nothing_to_do_is_said() -> None:
    assert Page(plan_html(TablePlan(), environment="a<b")).text == "a<b: no changes"
