"""What a plan means: in words, for readers and writers, for undo, and in cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine.actions import Align, AlignTable, Cost, Create, CreateTable, Drop, TablePlan
from delta_engine.aspects.aspect import EntryChange
from delta_engine.aspects.check_constraints import CheckAdd
from delta_engine.aspects.column_masks import SetColumnMask
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop
from delta_engine.aspects.function_definition import FunctionUse, ReplaceFunction
from delta_engine.aspects.grants import GrantPrivileges
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.partitioning import RewriteTable
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.aspects.tags import SetColumnTags
from delta_engine.models import (
    AbacPolicy,
    CheckConstraint,
    Column,
    ColumnMask,
    Function,
    Parameter,
    PolicyMask,
    PolicyScope,
    QualifiedName,
    Schema,
    View,
    ViewName,
)
from delta_engine.state.function_states import function_state_of
from delta_engine.tools.pull_requests.impact import impact, in_words
from delta_engine.tools.pull_requests.markdown import LONGEST
from tests.builders.models import ORDERS, orders
from tests.builders.shown_plans import plan_markdown
from tests.cases.golden_texts import assert_golden

FUNCTION = Function("dev", "g", "mask", "string", "v", [Parameter("v", "string")])
OTHER_BODY = Function("dev", "g", "mask", "string", "left(v, 3)", [Parameter("v", "string")])
POLICY = AbacPolicy(
    "mails",
    PolicyScope("schema", "dev.silver"),
    PolicyMask("dev.g.mask", "c"),
    ["account users"],
    match={"c": "has_tag('pii')"},
)
NOTE = Column("note", "string")
MANY = QualifiedName("dev", "silver", "customers")

PLAN = TablePlan(
    (
        Create(Schema("dev", "gold")),
        Create(View("dev", "gold", "revenue", "SELECT id FROM dev.silver.orders")),
        Create(POLICY),
        Align(
            FUNCTION.qualified_name,
            (
                ReplaceFunction(
                    OTHER_BODY,
                    function_state_of(FUNCTION),
                    ("body",),
                    uses=(FunctionUse("dev.silver.orders", "mail"),),
                ),
            ),
        ),
        AlignTable(
            ORDERS,
            (
                ColumnRename("at", "ordered_at"),
                ColumnAdd(Column("day", "date")),
                ColumnAdd(Column("hour", "int")),
                ColumnDrop(NOTE),
                ColumnNullabilityChange("day", make_nullable=False),
                CheckAdd(CheckConstraint("positive", "id > 0")),
                SetColumnMask("mail", ColumnMask("dev.g.mask"), None),
                SetColumnTags("mail", (EntryChange("pii", "email", None),)),
                GrantPrivileges("analysts", ("SELECT",)),
                SetTableComment("Orders", "x"),
            ),
        ),
        AlignTable(
            MANY,
            (RewriteTable(observed=(), desired=("day",)),),
            cost=Cost(rows=10, files=2, size=3_000_000_000, kept_for="interval 7 days"),
        ),
        Drop(ViewName("dev", "gold", "former")),
        Drop(QualifiedName("dev", "silver", "former"), rows=3),
    )
)


def test_a_plan_is_explained(request: pytest.FixtureRequest) -> None:
    lines = [in_words(PLAN), "", *(f"- **{heading}**: {text}" for heading, text in impact(PLAN, 21))]
    assert_golden("\n".join(lines) + "\n", Path(__file__).parent / "impact.md", request)


def test_a_comment_alone_concerns_no_one() -> None:
    plan = TablePlan((AlignTable(ORDERS, (SetTableComment("a", "b"),)),))
    assert in_words(plan) == "Changes table `dev.silver.orders`: changes 1 comment."
    assert dict(impact(plan, 1)) == {
        "Undo": "`delta-engine -e ENV undo` takes everything back with statements",
        "Cost": "1 statement",
    }


def test_an_empty_plan_has_nothing_to_explain() -> None:
    assert in_words(TablePlan()) == ""
    assert [*impact(TablePlan(), 0)] == []


def test_many_names_are_counted() -> None:
    plan = TablePlan(tuple(CreateTable(orders(name=f"t{number}")) for number in range(9)))
    assert in_words(plan).endswith("table `dev.silver.t4` and 4 more.")


def test_what_loses_data_is_shown_whole_before_all_else() -> None:
    drops = tuple(ColumnDrop(Column(f"c{number}", "string", comment="x" * 200)) for number in range(100))
    harmless = [orders(name=f"a{number}", comment="x" * 3_000) for number in range(40)]
    plan = TablePlan((*map(CreateTable, harmless), AlignTable(ORDERS, drops)))
    statements = {"dev.silver.orders": ["DROP " * 500], "dev.silver.a0": ["CREATE " * 500]}
    text = plan_markdown(plan, statements, environment="dev")
    assert len(text) <= LONGEST
    assert text.count("\n- column c") == 100
    assert "<details><summary>100 lines" not in text
    assert "more tables would be too long for a comment" in text
