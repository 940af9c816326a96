"""A plan as Markdown: whatever is in it, it stays text, and it stays short enough for a comment."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from delta_engine.actions import AlignTable, Create, CreateTable, Keep, TablePlan
from delta_engine.aspects.columns import ColumnDrop
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.errors import UnsafePlanError
from delta_engine.models import Column, QualifiedName, Schema, View
from delta_engine.tools.pull_requests.blocks import code_span
from delta_engine.tools.pull_requests.markdown import LONGEST
from tests.builders.models import ORDERS, WORKED_MODEL, orders
from tests.builders.shown_plans import plan_markdown
from tests.cases.golden_texts import assert_golden

PLAN = TablePlan(
    (
        CreateTable(WORKED_MODEL),
        Create(Schema("dev", "silver")),
        Keep(QualifiedName("dev", "silver", "old")),
    )
)

STATEMENTS = {
    "": ["CREATE SCHEMA `dev`.`silver`"],
    "dev.silver.orders": ["CREATE TABLE `dev`.`silver`.`orders` (\n  `id` bigint\n)"],
}


def test_a_plan(request: pytest.FixtureRequest) -> None:
    text = plan_markdown(PLAN, STATEMENTS, environment="dev")
    assert_golden(text, Path(__file__).parent / "plan.md", request)


def test_nothing_to_do() -> None:
    assert plan_markdown(TablePlan(), {}, environment="dev") == (
        "<!-- delta-engine plan --><!-- dev -->\n### Plan for `dev`\n\n**no changes**\n"
    )


def test_changes_and_refusals() -> None:
    drop = ColumnDrop(Column("a", "int", False, "x"))
    plan = TablePlan((AlignTable(ORDERS, (SetTableComment("new", "old"), drop)),))
    text = plan_markdown(plan, {}, environment="dev", refusals=[UnsafePlanError("it loses data")])
    assert "**Refused: nothing will be applied.**\n\n```text\nit loses data.\n```\n" in text
    assert re.search(r"```diff\n- .*\[.*loses data.*\]\n! table comment: 'old' → 'new'  \[safe\]\n```", text)


HOSTILE = [
    "`",
    "```",
    "a`` ` ```` b",
    "``` \n</details>",
    "|",
    "<script>alert(1)</script>",
    "<!--",
    "-->",
    "${x}",
    "$`x`$",
    "@everyone #1 [x](y) ![x](y)",
    "# heading\n\n- list\n\n> quote",
    "\n```\n</details>\n",
    "\r\n",
    "~~~",
    "\u202eesrever",
    "\u200b\x00\x1b[31m",
    "&lt;b&gt;",
    " ",
    "",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_code_spans_hold_anything(text: str) -> None:
    span = code_span(text)
    assert "\n" not in span
    fence = re.match("`+", span)
    assert fence
    inside = span[len(fence[0]) : -len(fence[0])]
    assert span.endswith(fence[0])
    assert all(len(run) != len(fence[0]) for run in re.findall("`+", inside))
    assert not inside.startswith("`")
    assert not inside.endswith("`")
    assert inside
    assert all(char.isprintable() for char in span)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_and_comments_stay_in_code(text: str) -> None:
    model = orders(Column(f"c{text}", "int", True, text), comment=text, name=f"t{text}")
    plan = TablePlan((CreateTable(model),))
    sql = f"CREATE TABLE `t{text}` (`c` int) COMMENT '{text}'"
    statements = {model.qualified_name.key: [sql]}
    markdown = plan_markdown(plan, statements, environment=f"e{text}")
    prose = outside_of_code(markdown)
    (_, marker), *rest = prose
    assert re.fullmatch(r"<!-- delta-engine plan --><!-- [\w.-]+ -->\n?", marker, re.ASCII)
    assert rest == outside_of_code(plan_markdown(CALM, CALM_STATEMENTS, environment="e"))[1:]


CALM_MODEL = orders(Column("c", "int", True, "x"), comment="x", name="t")
CALM = TablePlan((CreateTable(CALM_MODEL),))
CALM_STATEMENTS = {CALM_MODEL.qualified_name.key: ["CREATE TABLE"]}


def outside_of_code(markdown: str) -> list[tuple[str, str]]:
    """Return what a parser of CommonMark takes for anything but code."""
    blocks = MarkdownIt("commonmark").enable("table").parse(markdown)
    return [
        (token.type, "" if token.type in ("fence", "code_inline") else token.content)
        for block in blocks
        for token in (block, *(block.children or ()))
        if token.type != "inline"
    ]


def test_long_plans_lose_their_sql_first() -> None:
    models = [orders(name=f"t{number}") for number in range(40)]
    plan = TablePlan(tuple(map(CreateTable, models)))
    statements = {model.qualified_name.key: ["x" * 3_000] for model in models}
    text = plan_markdown(plan, statements, environment="dev")
    assert len(text) <= LONGEST
    assert text.count("#### ") == 40
    assert re.search(
        r"The SQL of 2\d tables would be too long for a comment\. The plan file has everything\.", text
    )


def test_a_long_list_of_owners_is_left_out_and_said_to_be() -> None:
    owners = {"dev.silver.orders": [f"@team-{number:0>200}" for number in range(20)]}
    text = plan_markdown(PLAN, STATEMENTS, environment="dev", owners=owners)
    assert "\n- **Owners**: too long for a comment\n" in text
    assert "@team" not in text


def test_what_longer_plans_lose_is_named_by_its_kind() -> None:
    views = [View("dev", "gold", f"v{number}", "SELECT 1 AS id", comment="x" * 3_000) for number in range(40)]
    statements = {f"view.{view.qualified_name.key}": ["x" * 3_000] for view in views}
    text = plan_markdown(TablePlan(tuple(map(Create, views))), statements, environment="dev")
    assert re.search(r"\n2\d more views would be too long for a comment", text)
    short = [View("dev", "gold", f"v{number}", "SELECT 1 AS id") for number in range(40)]
    text = plan_markdown(TablePlan(tuple(map(Create, short))), statements, environment="dev")
    assert re.search(r"\nThe SQL of 2\d views would be too long for a comment", text)
    both = TablePlan((*map(Create, short), CreateTable(orders(comment="x" * 60_000))))
    assert "\n1 more table would be too long for a comment" in plan_markdown(both, {}, environment="dev")


def test_longer_plans_lose_tables() -> None:
    models = [orders(name=f"t{number}", comment="x" * 3_000) for number in range(40)]
    plan = TablePlan(tuple(map(CreateTable, models)))
    text = plan_markdown(plan, {}, environment="dev")
    assert len(text) <= LONGEST
    assert re.search(
        r"2\d more tables would be too long for a comment\. The plan file has everything\.", text
    )


def test_long_lists_are_folded_away() -> None:
    model = orders(*(Column(f"c{number}", "int") for number in range(30)))
    text = plan_markdown(TablePlan((CreateTable(model),)), {}, environment="dev")
    assert "<details><summary>30 lines</summary>\n\n```diff\n+ c0" in text


def test_longer_refusals_and_lists_of_kept_tables_are_cut() -> None:
    kept = tuple(QualifiedName("dev", "silver", f"kept_{number}") for number in range(2_000))
    refusals = [UnsafePlanError(f"reason {number} " + "x" * 100) for number in range(2_000)]
    text = plan_markdown(TablePlan(tuple(map(Keep, kept))), {}, environment="dev", refusals=refusals)
    assert len(text) <= LONGEST
    assert "reason 0 " in text
    assert "\ndev.silver.kept_0\n" in text
    assert re.search(r"^1,\d\d\d more refusals would be too long for a comment\.$", text, re.MULTILINE)
    assert re.search(r"^1,\d\d\d more objects would be too long for a comment\.$", text, re.MULTILINE)


@pytest.mark.parametrize("length", [10, 200])
def test_a_comment_is_short_enough_whatever_is_long_and_keeps_what_loses_data(length: int) -> None:
    names = [QualifiedName("dev", "silver", f"t{number}_{'x' * 20}") for number in range(1_000)]
    drop = ColumnDrop(Column("lost", "int", False, "x" * length))
    drops = tuple(AlignTable(name, (drop,)) for name in names[:100])
    comment = SetTableComment("y" * 300, "old")
    others = tuple(AlignTable(name, (comment,)) for name in names[100:500])
    text = plan_markdown(
        TablePlan((*drops, *others, *map(Keep, names[500:]))),
        {name.key: ["x" * 300] for name in names[:500]},
        environment="dev",
        refusals=[UnsafePlanError(f"{name} loses data") for name in names],
        entries="\n".join(f"- {name}" for name in names),
        warnings=[f"{name} is large" for name in names],
        adopted=names,
        owners={str(name): ("@" + "z" * 50,) for name in names},
    )
    assert len(text) <= LONGEST
    assert text.count("\n- column lost") == 100
    for noun in ("refusals", "tables", "notes", "objects"):
        assert re.search(rf"\n\d+ more {noun} would be too long for a comment\.", text)


def test_refusals_hide_what_looks_like_a_secret() -> None:
    refused = UnsafePlanError("default 'password=s3cr3t' cannot be compared")
    assert "s3cr3t" not in plan_markdown(TablePlan(), {}, environment="dev", refusals=[refused])
