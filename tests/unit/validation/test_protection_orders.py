"""Plans that no order of their statements makes safe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_engine.actions import Align, AlignTable, Create, Drop, TablePlan
from delta_engine.aspects.aspect import EntryChange
from delta_engine.aspects.backfill_actions import (
    DropFormerColumn,
    FillColumn,
    FillSwappedColumn,
    SwapColumn,
)
from delta_engine.aspects.column_masks import DropColumnMask, SetColumnMask
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop
from delta_engine.aspects.function_definition import ReplaceFunction
from delta_engine.aspects.governed_tables import GovernedPlan, with_uses
from delta_engine.aspects.grants import GrantPrivileges, RevokePrivileges
from delta_engine.aspects.policy_definition import ReplacePolicy
from delta_engine.aspects.row_filters import DropRowFilter, SetRowFilter
from delta_engine.aspects.tags import SetColumnTags, SetTableTags, UnsetColumnTags, UnsetTableTags
from delta_engine.models import (
    AbacPolicy,
    Column,
    ColumnMask,
    Function,
    Parameter,
    PolicyFilter,
    PolicyMask,
    PolicyScope,
    QualifiedName,
    RowFilter,
    SchemaName,
    Using,
)
from delta_engine.models.types import AtomicType
from delta_engine.state.function_states import function_state_of
from delta_engine.state.policy_states import policy_state_of
from delta_engine.state.states import CatalogState, TableState
from delta_engine.validation.protection_orders import unsafe_orders
from tests.cases.golden_texts import assert_golden_lines

ORDERS, OTHERS = QualifiedName("dev", "silver", "orders"), QualifiedName("dev", "silver", "others")
MASK, OTHER = ColumnMask("dev.g.mask"), ColumnMask("dev.g.other")
FILTER = RowFilter("dev.g.mine", ["phone"])
TAGGED = {"pii": "phone"}
CONDITION = "has_tag_value('pii', 'phone')"


def function(name: str, body: str = "v") -> Function:
    return Function("dev", "g", name, "string", body, [Parameter("v", "string")])


def policy(name: str = "phones", **changes: Any) -> AbacPolicy:
    arguments: dict[str, Any] = {
        "scope": PolicyScope("schema", "dev.silver"),
        "protection": PolicyMask("dev.g.mask", "c"),
        "to": ["account users"],
        "match": {"c": CONDITION},
        **changes,
    }
    return AbacPolicy(name, **arguments)


ROWS = policy("rows", protection=PolicyFilter("dev.g.mine", ["c"]))
FUNCTIONS = (function("mask", "dev.g.inner(v)"), function("inner"), function("other"), function("mine"))


def body(name: str, text: str = "upper(v)") -> Align[Any]:
    desired = function(name, text)
    observed = next(each for each in FUNCTIONS if each.key == desired.key)
    return Align(desired.qualified_name, (ReplaceFunction(desired, function_state_of(observed), ("body",)),))


def replaced(before: AbacPolicy, after: AbacPolicy, *parts: str) -> Align[Any]:
    return Align(after.qualified_name, (ReplacePolicy(after, policy_state_of(before), parts or ("to",)),))


def table(*actions: Any, name: QualifiedName = ORDERS) -> AlignTable:
    return AlignTable(name, actions)


def refusals(observed: CatalogState, *changes: Any) -> str:
    plan = with_uses(TablePlan(changes), observed)
    return " ".join(map(str, unsafe_orders(GovernedPlan(plan, observed))))


def snapshot(
    *columns: Column, policies: tuple[AbacPolicy, ...] = (), row_filter: RowFilter | None = None
) -> CatalogState:
    states = {
        ORDERS.key: TableState(columns=columns, row_filter=row_filter),
        OTHERS.key: TableState(columns=(Column("mail", "string", mask=OTHER),)),
    }
    return CatalogState(
        tables=states,
        functions={each.key: function_state_of(each) for each in FUNCTIONS},
        policies={each.key: policy_state_of(each) for each in policies},
    )


MAIL = Column("mail", "string", mask=MASK)
PHONE = Column("phone", "string", tags=TAGGED)
BARE = Column("phone", "string")
MASKED, GOVERNED = snapshot(MAIL, BARE), snapshot(MAIL, PHONE, policies=(policy(),))
FILTERED = snapshot(MAIL, BARE, row_filter=FILTER)
FAX = Column("fax", "string")
BY_FAX = RowFilter("dev.g.mine", ["fax"])
BY_PHONE = ColumnMask("dev.g.mask", ["phone"])
READING = Column("mail", "string", mask=BY_PHONE)
SWAP, BACK = SetColumnMask("mail", OTHER, MASK), SetColumnMask("mail", MASK, OTHER)
TAG = EntryChange("pii", "phone", None)
SET, UNSET = SetColumnTags("phone", (TAG,)), UnsetColumnTags("phone", (EntryChange("pii", None, "phone"),))
GRANT = GrantPrivileges("hr", ("SELECT",))
TO_HR = policy(to=["hr"])
BY_MAIL = policy(
    "mails", protection=PolicyMask("dev.g.other", "c"), match={"c": "has_tag_value('pii', 'mail')"}
)
NUMBER = Column("number", "string")
LENGTH = replace(NUMBER, data_type=AtomicType("int"), using=Using("length(number)"))
CONVERSION = (
    FillColumn("number", LENGTH.data_type, "length(number)", is_converted=True),
    SwapColumn(LENGTH, NUMBER),
    FillSwappedColumn("number", LENGTH.data_type, "length(number)"),
    DropFormerColumn("number"),
)
COVERED = snapshot(MAIL, BARE, policies=(policy(),))
NEGATED = policy(match={"c": "NOT has_tag('open')"}, protection=PolicyMask("dev.g.mask", "c"))

UNSAFE: dict[str, tuple[Any, ...]] = {
    "two bodies that one mask calls": (MASKED, body("mask", "dev.g.inner(upper(v))"), body("inner")),
    "a body and the policy that calls it": (GOVERNED, body("mask", "upper(v)"), replaced(policy(), TO_HR)),
    "a policy and the tag that it looks at": (
        GOVERNED,
        replaced(policy(), TO_HR),
        table(SetColumnTags("phone", (EntryChange("pii", "phone", "mail"),))),
    ),
    "the filter and a mask": (
        FILTERED,
        table(SWAP, SetRowFilter(RowFilter("dev.g.other", ["phone"]), FILTER)),
    ),
    "the body of the filter and a mask that leaves another": (FILTERED, table(SWAP), body("mine"), body("other")),
    "two bodies that one filter calls": (
        snapshot(BARE, row_filter=RowFilter("dev.g.mask", ["phone"])),
        body("mask", "dev.g.inner(upper(v))"),
        body("inner"),
    ),
    "changes while two masks meet": (
        snapshot(Column("phone", "string", tags=TAGGED, mask=OTHER), MAIL, policies=(policy(),)),
        table(SetColumnMask("phone", MASK, OTHER), SWAP),
    ),
    "a tag for a policy in place of a mask": (
        snapshot(Column("phone", "string", mask=MASK), policies=(policy(),)),
        table(SET, DropColumnMask("phone", MASK)),
    ),
    "a tag and a grant": (COVERED, table(SET, GRANT)),
    "a tag of a filter and the drop of a mask": (
        snapshot(MAIL, BARE, policies=(ROWS,)),
        table(SET, DropColumnMask("mail", MASK)),
    ),
    "a tag that goes, without which a policy covers the column, and a grant": (
        snapshot(PHONE, policies=(policy(match={"c": "NOT has_tag('pii')"}),)),
        table(UNSET, GRANT),
    ),
    "the tag of a policy that goes, and a body that shows another argument": (
        snapshot(
            PHONE,
            replace(MAIL, tags={"mail": ""}),
            policies=(
                policy(
                    protection=PolicyMask("dev.g.mask", "c", ["m"]),
                    match={"c": CONDITION, "m": "has_tag('mail')"},
                ),
            ),
        ),
        table(UNSET),
        body("mask", "w"),
    ),
    "the tag of a policy that goes, and another function of the policy": (
        GOVERNED,
        table(UNSET),
        replaced(policy(), policy(protection=PolicyMask("dev.g.other", "c")), "protection"),
    ),
    "a tag of the schema and a new body": (
        snapshot(PHONE, MAIL, policies=(policy(when="has_tag('open')"),)),
        Align(SchemaName("dev", "silver"), (SetTableTags((EntryChange("open", "", None),)),)),
        table(GRANT),
    ),
    "tags by which columns change places under two policies, and a body": (
        snapshot(PHONE, FAX, policies=(policy(), BY_MAIL)),
        table(
            SetColumnTags("phone", (EntryChange("pii", "mail", "phone"),)),
            SetColumnTags("fax", (EntryChange("pii", "phone", None),)),
        ),
        body("mask", "upper(v)"),
    ),
    "a policy of others that meets the mask": (
        snapshot(Column("phone", "string", tags=TAGGED), policies=(policy(),)),
        table(SetColumnMask("phone", OTHER, None)),
    ),
    "functions that filter in each other's place": (
        snapshot(Column("v", "string", mask=OTHER), row_filter=RowFilter("dev.g.mask", ["v"])),
        table(SetRowFilter(RowFilter("dev.g.other", ["v"]), RowFilter("dev.g.mask", ["v"]))),
        table(BACK, name=OTHERS),
        body("mask", "left(v, 3)"),
        body("other"),
    ),
    "the drop of a column that the filter reads": (FILTERED, table(DropRowFilter(FILTER), ColumnDrop(BARE))),
    "the drop of a column that a mask reads, and of the filter": (
        snapshot(READING, BARE, FAX, row_filter=BY_FAX),
        table(DropRowFilter(BY_FAX), DropColumnMask("mail", BY_PHONE), ColumnDrop(BARE)),
    ),
    "the drop of a column through which a policy filters, and another mask": (
        snapshot(MAIL, PHONE, policies=(ROWS,)),
        table(SWAP, ColumnDrop(PHONE)),
    ),
    "the drop of a column whose two masks refuse all queries, and a revoked right": (
        snapshot(Column("phone", "string", tags=TAGGED, mask=OTHER), FAX, policies=(policy(),)),
        table(ColumnDrop(PHONE), RevokePrivileges("hr", ("SELECT",))),
    ),
    "a conversion and another filter of a policy": (
        snapshot(NUMBER, PHONE, policies=(ROWS,)),
        table(*CONVERSION),
        replaced(ROWS, policy("rows", protection=PolicyFilter("dev.g.other", ["c"])), "filter"),
    ),
    "a conversion and a tag by which two masks refuse all queries": (
        snapshot(NUMBER, PHONE, policies=(policy(), policy("again", protection=PolicyMask("dev.g.other", "c")))),
        table(*CONVERSION, SetColumnTags("phone", (EntryChange("pii", "mail", "phone"),))),
    ),
    "the end of a conversion and the body of a mask": (
        snapshot(replace(NUMBER, tags=TAGGED), policies=(policy(),)),
        table(*CONVERSION[2:]),
        body("inner"),
    ),
    "functions that change places": (
        MASKED,
        table(SWAP),
        table(BACK, name=OTHERS),
        body("mask", "left(v, 3)"),
        body("other"),
    ),
}  # fmt: skip

SAFE: dict[str, tuple[Any, ...]] = {
    "a conversion and the drop of a policy": (
        snapshot(NUMBER, PHONE, policies=(ROWS,)),
        table(*CONVERSION, GRANT),
        Drop(ROWS.qualified_name),
    ),
    "a conversion and a new policy": (
        snapshot(NUMBER, PHONE, policies=(ROWS,)),
        table(*CONVERSION),
        Create(policy()),
    ),
    "a conversion and the body of another column's mask": (
        snapshot(NUMBER, PHONE, policies=(policy(),)),
        table(*CONVERSION),
        body("inner"),
    ),
    "no change": (GOVERNED,),
    "one body": (GOVERNED, body("inner")),
    "a body of two tables": (GOVERNED, body("mask", "upper(v)"), body("other")),
    "a comment of a policy": (GOVERNED, replaced(policy(), policy(comment="x"), "comment"), body("inner")),
    "a first mask and a body": (MASKED, table(SetColumnMask("phone", OTHER, None)), body("inner")),
    "a mask that leaves a function": (MASKED, table(SWAP), body("mask", "upper(v)")),
    "a policy in place of a mask": (
        snapshot(Column("phone", "string", tags=TAGGED, mask=MASK)),
        Create(policy()),
        table(DropColumnMask("phone", MASK)),
    ),
    "a renamed policy": (GOVERNED, Create(policy("again")), Drop(policy().qualified_name)),
    "a tag that no policy names": (
        COVERED,
        table(SetColumnTags("phone", (EntryChange("team", "x", "y"),)), GRANT, SWAP),
    ),
    "a tag alone": (COVERED, table(SET)),
    "a tag and the drop of another mask": (COVERED, table(SET, DropColumnMask("mail", MASK))),
    "a tag that a policy forbids": (
        snapshot(PHONE, policies=(NEGATED,)),
        table(SetTableTags((EntryChange("open", "", None),))),
    ),
    "the filter and a body of another table": (
        FILTERED,
        table(SetRowFilter(RowFilter("dev.g.inner", ["phone"]), FILTER)),
        body("other"),
    ),
    "a filter and tags that go": (
        snapshot(PHONE, row_filter=FILTER),
        table(DropRowFilter(FILTER), UNSET, UnsetTableTags((EntryChange("a", None, "b"),))),
    ),
    "a filter and the tag of a policy that go": (
        snapshot(PHONE, policies=(policy(),), row_filter=FILTER),
        table(DropRowFilter(FILTER), UNSET),
    ),
    "the tag of a policy that goes, and a grant": (GOVERNED, table(UNSET, GRANT)),
    "the tag of a filter that goes, and its body": (
        snapshot(MAIL, PHONE, policies=(ROWS,)),
        table(UNSET),
        body("mine"),
    ),
    "a tag that goes, without which a policy still covers the column, and a body": (
        snapshot(
            replace(PHONE, tags={**TAGGED, "open": ""}),
            policies=(policy(match={"c": f"{CONDITION} OR has_tag('open')"}),),
        ),
        table(UnsetColumnTags("phone", (EntryChange("open", None, ""),))),
        body("mask", "upper(v)"),
    ),
    "a new table": (CatalogState(tables={ORDERS.key: TableState(exists=False)}), Create(policy()), body("inner")),
    "the drop of a column and of a filter": (
        snapshot(MAIL, BARE, FAX, row_filter=BY_FAX),
        table(DropRowFilter(BY_FAX), ColumnDrop(BARE)),
    ),
    "the drop of a column that a mask reads": (
        snapshot(READING, BARE),
        table(DropColumnMask("mail", BY_PHONE), ColumnDrop(BARE), GRANT),
    ),
    "an added column": (COVERED, table(ColumnAdd(Column("n", "string", mask=MASK)), GRANT)),
}  # fmt: skip


def test_unsafe_plans_are_refused_with_the_whole_message(request: pytest.FixtureRequest) -> None:
    lines = [f"{case}: {refusals(*given)}" for case, given in UNSAFE.items()]
    assert [line for line in lines if line.endswith(": ")] == []
    assert_golden_lines(lines, Path(__file__).parent / "unsafe_orders.txt", request)


@pytest.mark.parametrize("case", SAFE)
def test_safe_plans_pass(case: str) -> None:
    assert refusals(*SAFE[case]) == ""
