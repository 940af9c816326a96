"""Which columns and rows a function reaches, before and after a plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from delta_engine.actions import Align, AlignTable, Create, Drop, TablePlan
from delta_engine.aspects.aspect import EntryChange
from delta_engine.aspects.column_masks import DropColumnMask, SetColumnMask
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop
from delta_engine.aspects.function_definition import FunctionUse, ReplaceFunction
from delta_engine.aspects.governed_tables import GovernedPlan, with_uses
from delta_engine.aspects.policy_definition import ReplacePolicy
from delta_engine.aspects.row_filters import DropRowFilter, SetRowFilter
from delta_engine.aspects.tags import SetColumnTags, SetTableTags, UnsetColumnTags
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
    Table,
    ViewName,
)
from delta_engine.state.function_states import FunctionState, function_state_of
from delta_engine.state.policy_states import policy_state_of
from delta_engine.state.states import CatalogState, SchemaState, TableState

ORDERS = QualifiedName("dev", "silver", "orders")
KEY = ORDERS.key
MASK = ColumnMask("dev.g.mask")
SEVERAL = PolicyScope("catalog", "dev")
COLUMNS = (
    Column("mail", "string", mask=MASK),
    Column("phone", "string", tags={"pii": "phone"}),
    Column("n", "int"),
)


def function(name: str, body: str = "v") -> Function:
    return Function("dev", "g", name, "string", body, [Parameter("v", "string")])


def policy(name: str = "phones", **changes: Any) -> AbacPolicy:
    arguments: dict[str, Any] = {
        "scope": PolicyScope("schema", "dev.silver"),
        "protection": PolicyMask("dev.g.mask", "c"),
        "to": ["account users"],
        "match": {"c": "has_tag('pii')"},
        **changes,
    }
    return AbacPolicy(name, **arguments)


def snapshot(*columns: Column, policies: tuple[AbacPolicy, ...] = (), **changes: Any) -> CatalogState:
    functions = (function("mask", "dev.g.inner(v)"), function("inner"), function("other"))
    return CatalogState(
        tables={KEY: TableState(columns=columns or COLUMNS, row_filter=changes.get("row_filter"))},
        functions={each.key: function_state_of(each) for each in functions},
        policies={each.key: policy_state_of(each) for each in policies},
        schema_states={"dev.silver": SchemaState(tags=changes.get("tags", {}))},
        function_uses=changes.get("function_uses", {}),
    )


def replacing(name: str = "inner", body: str = "upper(v)") -> Align[Any]:
    desired = function(name, body)
    return Align(
        desired.qualified_name, (ReplaceFunction(desired, function_state_of(function(name)), ("body",)),)
    )


def uses_of(change: Align[Any], observed: CatalogState, *others: Any) -> list[FunctionUse]:
    plan = with_uses(TablePlan((change, *others)), observed)
    (align,) = plan.of_kind(Align, "function")
    (action,) = align.of_type(ReplaceFunction)
    return [*action.uses]


def test_a_function_is_used_by_masks_filters_and_policies_also_through_others() -> None:
    observed = snapshot(
        policies=(policy(), policy("rows", scope=SEVERAL, protection=PolicyFilter("dev.g.mask"), match={}))
    )
    assert uses_of(replacing(), observed) == [
        FunctionUse(KEY, "mail"),
        FunctionUse(KEY, "phone", "phones on schema dev.silver"),
        FunctionUse(KEY, None, "rows on catalog dev"),
    ]
    assert [*map(str, uses_of(replacing(), observed))] == [
        "dev.silver.orders.mail",
        "dev.silver.orders.phone (policy phones on schema dev.silver)",
        "the rows of dev.silver.orders (policy rows on catalog dev)",
    ]
    assert uses_of(replacing("other"), observed) == []


def test_names_of_policies_compare_without_case() -> None:
    before, after = policy("Phones"), policy("Phones", to=["hr"])
    replaced = Align(after.qualified_name, (ReplacePolicy(after, policy_state_of(before), ("to",)),))
    assert uses_of(replacing(), snapshot(policies=(before,)), replaced) == [
        FunctionUse(KEY, "mail"),
        FunctionUse(KEY, "phone", "phones on schema dev.silver"),
    ]


def test_uses_leave_and_arrive() -> None:
    other = ColumnMask("dev.g.other")
    swap = AlignTable(ORDERS, (SetColumnMask("mail", other, MASK), SetRowFilter(RowFilter("g.inner"), None)))
    assert uses_of(replacing(), snapshot(), swap) == [
        FunctionUse(KEY, "mail", is_after=False),
        FunctionUse(KEY, None, is_before=False),
    ]
    again = AlignTable(ORDERS, (ColumnRename("mail", "email"), ColumnDrop(Column("n", "int"))))
    assert uses_of(replacing(), snapshot(), again) == [FunctionUse(KEY, "email")]
    gone = (AlignTable(ORDERS, (DropColumnMask("mail", MASK), DropRowFilter(RowFilter("dev.g.mask")))),)
    observed = snapshot(row_filter=RowFilter("dev.g.mask"))
    assert [use.is_after for use in uses_of(replacing(), observed, *gone)] == [False, False]
    assert [use.is_after for use in uses_of(replacing(), observed, Drop(ORDERS))] == [False, False]
    stops = replacing("mask", "reverse(v)")
    assert [use.is_after for use in _uses_of_inner(snapshot(), stops)] == [False]


def _uses_of_inner(observed: CatalogState, change: Align[Any]) -> tuple[FunctionUse, ...]:
    plan = with_uses(TablePlan((change, replacing())), observed)
    inner = next(align for align in plan.of_kind(Align, "function") if align.name.name == "inner")
    (action,) = inner.of_type(ReplaceFunction)
    return action.uses


def test_policies_and_tags_of_a_plan_change_what_a_function_reaches() -> None:
    pii = EntryChange("pii", "phone", None)
    tagged = AlignTable(
        ORDERS, (SetColumnTags("n", (pii,)), UnsetColumnTags("phone", (EntryChange("pii", None, "phone"),)))
    )
    assert uses_of(replacing(), snapshot(*COLUMNS[1:], policies=(policy(),)), tagged) == [
        FunctionUse(KEY, "phone", "phones on schema dev.silver", is_after=False),
        FunctionUse(KEY, "n", "phones on schema dev.silver", is_before=False),
    ]
    sensitive = policy(when="has_tag('sensitive')")
    schema = Align(SchemaName("dev", "silver"), (SetTableTags((EntryChange("sensitive", "", None),)),))
    observed = snapshot(*COLUMNS[1:], policies=(sensitive,))
    assert [use.is_before for use in uses_of(replacing(), observed, schema)] == [False]
    created = Create(policy())
    assert [use.is_before for use in uses_of(replacing(), snapshot(*COLUMNS[1:]), created)] == [False]
    changed = policy(protection=PolicyMask("dev.g.other", "c"))
    swap = Align(
        changed.qualified_name, (ReplacePolicy(changed, policy_state_of(policy()), ("protection",)),)
    )
    observed = snapshot(*COLUMNS[1:], policies=(policy(),))
    assert [use.is_after for use in uses_of(replacing(), observed, swap)] == [False]


def test_what_still_uses_a_dropped_function_is_named() -> None:
    drop = Drop(function("inner").qualified_name)
    kept = with_uses(TablePlan((drop,)), snapshot()).of_kind(Drop, "function")
    assert kept[0].used_by == ("dev.silver.orders.mail", "function dev.g.mask")
    detached = AlignTable(ORDERS, (DropColumnMask("mail", MASK),))
    both = (drop, Drop(function("mask").qualified_name), detached)
    assert [
        change.used_by for change in with_uses(TablePlan(both), snapshot()).of_kind(Drop, "function")
    ] == [(), ()]


def test_a_view_may_be_dropped_together_with_a_function() -> None:
    drops = (Drop(function("inner").qualified_name), Drop(ViewName("dev", "gold", "revenue")))
    kept = with_uses(TablePlan(drops), snapshot()).of_kind(Drop, "view")
    assert [drop.name for drop in kept] == [drops[1].name]


def test_a_policy_that_reaches_no_known_table_uses_its_function() -> None:
    observed = snapshot(Column("n", "int"), policies=(policy(),))
    (use,) = uses_of(replacing(), observed)
    assert str(use) == "policy phones on schema dev.silver"
    assert uses_of(replacing("other"), observed) == []


def test_uses_by_tables_outside_the_snapshot_stay() -> None:
    others = {"dev.g.inner": (("dev.gold.t", None), (KEY, "mail"))}
    assert uses_of(replacing(), snapshot(function_uses=others)) == [
        FunctionUse(KEY, "mail"),
        FunctionUse("dev.gold.t", None),
    ]


def test_a_hidden_body_calls_nothing() -> None:
    observed = replace(snapshot(), functions={"dev.g.mask": FunctionState(body=None)})
    assert uses_of(replacing(), observed) == []


def test_a_new_table_has_what_its_model_declares() -> None:
    created = Table("dev", "silver", "orders", [*COLUMNS], row_filter=RowFilter("g.rows"))
    added = AlignTable(QualifiedName("dev", "silver", "t"), (ColumnAdd(Column("a", "int", mask=MASK)),))
    plan = TablePlan((Create(created), added))
    new = GovernedPlan(plan, CatalogState(tables={KEY: TableState(exists=False)}))
    assert new.before.reaches(KEY) == []
    assert [str(reach) for reach in new.after.reaches(KEY)] == [
        "its own row filter",
        "its own mask",
    ]
    grown = GovernedPlan(plan, CatalogState(tables={"dev.silver.t": TableState()}))
    assert [reach.column for reach in grown.after.reaches("dev.silver.t")] == ["a"]
