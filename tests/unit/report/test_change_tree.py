"""Changes as a tree: fields below their columns, renames as renames, types without backticks that nobody needs."""

from collections.abc import Sequence

import pytest

from delta_engine.actions import Action, AlignTable, CreateTable, TablePlan
from delta_engine.actions.policy import ColumnOrder, Policy
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, FieldAdd, FieldDrop
from delta_engine.aspects.table_names import RenameTable
from delta_engine.compile.planner import TablePlanner
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.models import Column, QualifiedName, Table
from delta_engine.models.type_text import parse_data_type
from delta_engine.models.types import StructField
from delta_engine.report.change_tree import Branch, change_lines
from delta_engine.report.compact_plan import notable_branches
from delta_engine.report.notebook_html import plan_html
from delta_engine.report.plan_tree import plan_branches
from tests.builders.models import catalog_of, orders
from tests.builders.models import observed as state_of
from tests.builders.shown_plans import plan_markdown

NAME = QualifiedName("dev", "silver", "orders")
STRING = parse_data_type("string")
LONG = (
    "struct<street: string NOT NULL COMMENT 'of `home`', `the zip`: string, "
    "lines: array<struct<sku: string, amounts: map<string, struct<net: decimal(18,2), gross: decimal(18,2)>>>>>"
)


def lines(branches: tuple[Branch, ...], indent: str = "") -> list[str]:
    texts = []
    for branch in branches:
        texts += [f"{indent}{branch.sign.value} {branch.text}", *lines(branch.leaves, f"{indent}  ")]
    return texts


def aligned(*actions: Action) -> AlignTable:
    return AlignTable(NAME, actions)


def shown(*actions: Action) -> list[str]:
    (branch,) = plan_branches(TablePlan((aligned(*actions),)))
    return lines(branch.leaves)


def test_changes_of_fields_stand_below_their_column() -> None:
    assert shown(
        FieldAdd(("address", "zip"), StructField("zip", STRING)),
        ColumnTypeChange(
            "address", parse_data_type("bigint"), parse_data_type("int"), ("geo", "element", "lat")
        ),
        FieldDrop(("Address", "the street"), StructField("the street", STRING)),
    ) == [
        "~ column address",
        "  + zip string  [safe]",
        "  - `the street` string  [loses data, reversible by RESTORE]",
        "  ~ geo",
        "    ~ element",
        "      ~ lat int → bigint  [breaks readers, reversible by RESTORE]",
    ]


def test_a_type_that_changes_as_a_whole_shows_what_differs() -> None:
    before, after = (
        parse_data_type("struct<street: string, b: int>"),
        parse_data_type("struct<street: varchar(80), zip: array<string>>"),
    )
    assert shown(ColumnTypeChange("address", after, before)) == [
        "~ column address type  [breaks readers, reversible by RESTORE]",
        "  ~ street string → varchar(80)",
        "  + zip array<string>",
        "  - b int",
    ]


def test_a_rename_says_that_it_is_one() -> None:
    former = QualifiedName("dev", "silver", "old")
    assert shown(
        RenameTable(NAME, former), ColumnRename("mail", "email"), ColumnRename("strt", "street", ("a",))
    ) == [
        "~ table name dev.silver.old → dev.silver.orders  renamed  [breaks readers]",
        "~ column mail → email  renamed  [breaks readers]",
        "~ column a",
        "  ~ strt → street  renamed  [breaks readers]",
    ]


def test_a_long_type_has_a_line_per_field() -> None:
    expected = [
        "+ street string NOT NULL 'of `home`'",
        "+ `the zip` string",
        "+ lines array<struct>",
        "  + sku string",
        "  + amounts map<string, struct<net: decimal(18,2), gross: decimal(18,2)>>",
    ]
    column = Column("address", LONG, comment="c")
    assert shown(ColumnAdd(column)) == [
        "+ column address: struct 'c'  [safe]",
        *(f"  {line}" for line in expected),
    ]
    (created,) = plan_branches(TablePlan((CreateTable(Table("dev", "silver", "orders", [column])),)))
    assert lines(created.leaves) == ["+ address  struct 'c'", *(f"  {line}" for line in expected)]


def test_every_form_has_the_fields() -> None:
    align = aligned(FieldAdd(("address", "zip"), StructField("zip", STRING)))
    plan = TablePlan((align,))
    assert "```diff\n! column address\n+   zip string  [safe]\n```" in plan_markdown(
        plan, {}, environment="dev"
    )
    assert "zip string" in plan_html(PlannedRun(plan=plan), environment="dev")
    assert list(change_lines(align)) == ["+ column address.zip: string  [safe]"]


NOTE, AMOUNT = Column("note", "string"), Column("amount", "string")
CONVERTED = Column("amount", "decimal(18,2)", using="cast(amount AS decimal(18,2))")
FILLED = Column("note", "string", is_nullable=False, using="'none'")
CONVERSION = (
    "~ convert amount: string → decimal(18,2), verified; the old column is dropped  "
    "[rewrites data, scans data, loses data, breaks readers, reversible by RESTORE]"
)


def planned(observed: Sequence[Column], desired: Sequence[Column], policy: Policy | None = None) -> TablePlan:
    """Return the plan between columns of a table whose columns can be renamed and dropped."""
    mapped = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    model = orders(*desired, properties=mapped)
    catalog = catalog_of([model], state_of(*observed, properties=mapped))
    return TablePlanner(policy or Policy()).plan([model], catalog)


def tree(plan: TablePlan, *, is_full: bool = False) -> list[str]:
    (branch,) = plan_branches(plan, is_full=is_full)
    return lines(branch.leaves)


def test_a_converted_column_is_one_line() -> None:
    plan = planned([NOTE, AMOUNT], [NOTE, CONVERTED])
    assert tree(plan) == [CONVERSION]
    assert len(tree(plan, is_full=True)) == 7
    assert CONVERSION.removeprefix("~ ") in plan_markdown(plan, {}, environment="dev")
    assert len(list(change_lines(plan.align_tables[0]))) == 7


def test_other_fills_keep_their_lines_beside_a_conversion() -> None:
    shown = tree(planned([NOTE, AMOUNT], [FILLED, CONVERTED]))
    assert CONVERSION in shown
    assert "+ column note values: 'none'  [rewrites data, reversible by RESTORE]" in shown
    assert "+ rows after filling note, amount: verified  [scans data]" in shown


def test_a_compact_plan_has_conversions_in_one_line() -> None:
    (branch,) = notable_branches(planned([NOTE, AMOUNT], [NOTE, CONVERTED]))
    assert lines(branch.leaves) == [CONVERSION]
    assert "more change" not in branch.text


@pytest.mark.parametrize(
    ("desired", "notes"),
    [
        ("id new note", {"new": "after id"}),
        ("new id note", {"new": "first"}),
        ("id note new", {}),
        ("id new newer note", {"new": "after id"}),
        ("id new note newer", {"new": "after id"}),
        ("note id new", {}),
    ],
)
def test_a_column_that_is_declared_in_the_middle_says_where_it_lands(
    desired: str, notes: dict[str, str]
) -> None:
    before, after = ([Column(name, "int") for name in names.split()] for names in ("id note", desired))
    shown = {line.split(":")[0]: line for line in tree(planned(before, after))}
    for name in {*desired.split()} - {"id", "note"}:
        place = notes.get(name)
        end = f"  added last, not {place}: policy.column_order: enforce moves it" if place else ""
        assert shown[f"+ column {name}"] == f"+ column {name}: int  [safe]{end}"
    moved = tree(planned(before, after, Policy(column_order=ColumnOrder.ENFORCE)))
    assert not [line for line in moved if "added last" in line]
