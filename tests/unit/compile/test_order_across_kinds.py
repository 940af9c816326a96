"""The order of functions, policies and the protection of tables in a compiled plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Policy, Removed
from delta_engine.compile.compiled_plan import CompiledPlan, Round
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import (
    AbacPolicy,
    Column,
    ColumnMask,
    Function,
    Parameter,
    PolicyMask,
    PolicyScope,
    RowFilter,
    Schema,
    Table,
    Using,
    by_resource,
)
from delta_engine.models.types import AtomicType
from delta_engine.state.function_states import ABSENT_FUNCTION, function_state_of
from delta_engine.state.policy_states import ABSENT_POLICY, policy_state_of
from delta_engine.state.states import ABSENT, CatalogState, SchemaState, state_of
from tests.builders.deployment import records_of
from tests.fakes.planning import compiled

HIDE = Function("dev", "gov", "hide", "string", "left(v, 3)", [Parameter("v", "string")])
MINE = Function("dev", "gov", "mine", "boolean", "v = 'DE'", [Parameter("v", "string")])
OUTER = replace(HIDE, function_name="outer", body="dev.gov.hide(v)")
PII = AbacPolicy(
    "pii",
    PolicyScope("schema", "dev.silver"),
    PolicyMask("dev.gov.hide", "m"),
    ["account users"],
    match={"m": "has_tag('pii')"},
)
MASKED = Column("mail", "string", mask=ColumnMask("dev.gov.hide"))
PLAIN = replace(MASKED, mask=None)
DROPS = Policy(removed_functions=Removed.DROP, removed_policies=Removed.DROP)


def orders(*columns: Column, **parts: Any) -> Table:
    return Table("dev", "silver", "orders", columns or (PLAIN,), **parts)


def catalog(before: Sequence[Any], after: Sequence[Any]) -> CatalogState:
    """Return what exists before, with nothing for the rest of what is declared."""
    absent = by_resource(after)
    models = {**absent, **by_resource(before)}
    there = by_resource(before).keys()
    tables, functions, policies = {}, {}, {}
    for key, model in models.items():
        match model:
            case Table():
                tables[model.key] = state_of(model) if key in there else ABSENT
            case Function():
                functions[model.key] = function_state_of(model) if key in there else ABSENT_FUNCTION
            case AbacPolicy():
                policies[model.key] = policy_state_of(model) if key in there else ABSENT_POLICY
    schemas = {"dev.silver": SchemaState(), "dev.gov": SchemaState()}
    return CatalogState(tables=tables, functions=functions, policies=policies, schema_states=schemas)


def compiled_from(before: Sequence[Any], after: Sequence[Any]) -> CompiledPlan:
    return compiled(plan_from(before, after))


def plan_from(before: Sequence[Any], after: Sequence[Any]) -> TablePlan:
    return TablePlanner(DROPS).plan(after, catalog(before, after), records_of(before))


def short(plan: CompiledPlan) -> list[str]:
    """Return the statements in few words, in order."""
    words = ("`dev`.`gov`.", "`dev`.`silver`.", "`", "(v string) RETURNS string RETURN left(v, 3)")
    texts = list(plan.sql())
    for word in words:
        texts = [text.replace(word, "") for text in texts]
    return [" ".join(text.split()[:7]) for text in texts]


def waits(plan: CompiledPlan) -> list[tuple[str, tuple[int, ...]]]:
    return [(f"{step.name.kind} {step.operation.value}", step.after) for step in plan.steps]


def test_a_chain_is_made_from_the_function_on() -> None:
    plan = compiled_from([], [orders(MASKED), HIDE, PII])
    assert [sql.split(" (")[0] for sql in short(plan)] == [
        "CREATE FUNCTION hide",
        "CREATE POLICY pii ON SCHEMA dev.silver COLUMN",
        "CREATE TABLE orders",
    ]
    assert waits(plan) == [("function create", ()), ("policy create", (0,)), ("table create", (0, 1))]


def test_what_names_a_new_function_waits_for_all_of_its_last_name() -> None:
    other = replace(HIDE, schema_name="silver")
    plan = compiled_from([orders(PLAIN)], [HIDE, other, orders(MASKED)])
    assert waits(plan)[-1] == ("table alter", (0, 1))


def test_a_policy_of_a_new_table_comes_after_it() -> None:
    own = replace(PII, scope=PolicyScope("table", "dev.silver.orders"))
    plan = compiled_from([], [orders(), HIDE, own])
    assert waits(plan) == [("function create", ()), ("table create", ()), ("policy create", (0, 1))]


def test_functions_come_after_those_that_they_call() -> None:
    callee = replace(HIDE, function_name="zzz")
    plan = compiled_from([], [replace(OUTER, body="dev.gov.zzz(v)"), callee])
    assert [step.name for step in plan.steps] == [callee.qualified_name, OUTER.qualified_name]
    assert plan.steps[1].after == (0,)


def test_a_replaced_function_comes_between_what_strengthens_and_what_weakens() -> None:
    phone = replace(MASKED, name="phone")
    before = [HIDE, orders(MASKED, replace(phone, mask=None), Column("fax", "string", mask=MASKED.mask))]
    after = [
        replace(HIDE, body="v"),
        orders(MASKED, phone, Column("fax", "string"), grants={"bob": ["SELECT"]}),
    ]
    plan = compiled_from(before, after)
    assert short(plan) == [
        "ALTER TABLE orders ALTER COLUMN phone SET",
        "CREATE OR REPLACE FUNCTION hide(v string) RETURNS",
        "ALTER TABLE orders ALTER COLUMN fax DROP",
        "GRANT SELECT ON TABLE orders TO bob",
    ]
    assert waits(plan) == [("table alter", ()), ("function alter", (0,)), ("table alter", (0, 1))]


def test_what_leaves_a_function_comes_before_its_replacement_and_what_arrives_after() -> None:
    other = replace(HIDE, function_name="other", body="upper(v)")
    before = [HIDE, other, orders(MASKED)]
    swapped = orders(replace(MASKED, mask=ColumnMask("dev.gov.other")))
    left = compiled_from(before, [replace(HIDE, body="v"), other, swapped])
    assert [step.name.kind for step in left.steps] == ["table", "function"]
    arrived = compiled_from(before, [HIDE, replace(other, body="v"), swapped])
    assert [step.name.kind for step in arrived.steps] == ["function", "table"]


def test_a_function_that_stops_calling_another_is_replaced_before_it() -> None:
    before = [HIDE, OUTER, orders(replace(MASKED, mask=ColumnMask("dev.gov.outer")))]
    after = [replace(HIDE, body="v"), replace(OUTER, body="lower(v)"), before[2]]
    plan = compiled_from(before, after)
    assert [step.name for step in plan.steps] == [OUTER.qualified_name, HIDE.qualified_name]
    back = compiled_from([*after], [*before])
    assert [step.name for step in back.steps] == [HIDE.qualified_name, OUTER.qualified_name]


def test_protection_moves_from_a_mask_to_a_policy_without_a_gap() -> None:
    plan = compiled_from([HIDE, orders(MASKED)], [HIDE, orders(), PII])
    assert waits(plan) == [("policy create", ()), ("table alter", (0,))]
    back = compiled_from([HIDE, orders(), PII], [HIDE, orders(MASKED)])
    assert waits(back) == [("table alter", ()), ("policy drop", (0,))]
    assert back.steps[1].round is Round.DROPS


def test_a_function_is_dropped_after_everything_that_used_it() -> None:
    plan = compiled_from([HIDE, orders(MASKED), PII], [orders()])
    assert waits(plan) == [("table alter", ()), ("policy drop", (0,)), ("function drop", (0, 1))]


def test_the_policy_of_a_dropped_table_goes_with_it() -> None:
    own = replace(PII, scope=PolicyScope("table", "dev.silver.orders"))
    before = [HIDE, orders(), own]
    records = records_of([own])
    state = catalog(before, [])
    plan = TablePlanner(DROPS).plan([HIDE], state, records, {orders().qualified_name: 1})
    assert [step.statements == () for step in compiled(plan).steps] == [False, True]


def test_a_renamed_policy_is_created_before_the_former_one_is_dropped() -> None:
    plan = compiled_from([HIDE, PII], [HIDE, replace(PII, name="other")])
    assert waits(plan) == [("policy create", ()), ("policy drop", (0,))]


def test_a_comment_alone_orders_nothing() -> None:
    before = [HIDE, orders(MASKED, Column("n", "int"))]
    after = [replace(HIDE, comment="x"), orders(MASKED, Column("n", "int", comment="y"))]
    assert waits(compiled_from(before, after)) == [("function alter", ()), ("table alter", ())]


def test_rows_are_hidden_before_a_filter_shows_more() -> None:
    hidden = orders(MASKED, Column("region", "string"))
    shown = orders(PLAIN, Column("region", "string"), row_filter=RowFilter("dev.gov.mine", ["region"]))
    plan = compiled_from([HIDE, MINE, shown], [HIDE, MINE, hidden])
    assert short(plan) == [
        "ALTER TABLE orders ALTER COLUMN mail SET",
        "ALTER TABLE orders DROP ROW FILTER",
    ]


REGION = Column("region", "string")
BY_REGION = RowFilter("dev.gov.mine", ["region"])
OTHERS = replace(MINE, function_name="others")


@pytest.mark.parametrize(
    ("before", "after", "later"),
    [
        (
            orders(MASKED, REGION, row_filter=BY_REGION),
            orders(REGION),
            "ALTER TABLE orders DROP ROW FILTER",
        ),
        (
            orders(MASKED, REGION, row_filter=BY_REGION),
            orders(REGION, row_filter=RowFilter("dev.gov.others", ["region"])),
            "ALTER TABLE orders SET ROW FILTER others",
        ),
        (
            orders(MASKED, REGION, tags={"open": "no"}),
            orders(REGION),
            "ALTER TABLE orders UNSET TAGS ('open')",
        ),
    ],
    ids=["a filter that goes", "another filter", "a tag that goes"],
)
def test_a_column_is_dropped_before_more_rows_are_visible(before: Table, after: Table, later: str) -> None:
    first, second = short(compiled_from([HIDE, MINE, OTHERS, before], [HIDE, MINE, OTHERS, after]))[-2:]
    assert first == "ALTER TABLE orders DROP COLUMNS (mail)"
    assert second.startswith(later)


def test_a_column_is_dropped_before_its_function_shows_more_and_a_schema_is_granted() -> None:
    before = [HIDE, orders(MASKED, REGION)]
    plan = plan_from(before, [replace(HIDE, body="v"), orders(REGION)])
    granted = TablePlanner().plan([Schema("dev", "silver", grants={"bob": ("SELECT",)})], catalog([], []))
    statements = short(compiled(TablePlan((*granted.changes, *plan.changes))))
    assert [statement.split()[0] for statement in statements][-3:] == ["ALTER", "CREATE", "GRANT"]


NUMBER = replace(REGION, data_type=AtomicType("int"), using=Using("length(region)"))
HALF_DONE = orders(REGION, Column("delta_engine_new_region", "int"))


@pytest.mark.parametrize(
    ("before", "after", "drop"),
    [
        (orders(REGION), orders(NUMBER), "ALTER TABLE orders DROP COLUMNS (delta_engine_old_region)"),
        (HALF_DONE, orders(REGION), "ALTER TABLE orders DROP COLUMNS (delta_engine_new_region)"),
        (
            HALF_DONE,
            orders(replace(NUMBER, data_type=AtomicType("bigint"))),
            "ALTER TABLE orders DROP COLUMNS (delta_engine_new_region)",
        ),
    ],
    ids=["a conversion", "one that is abandoned", "one to another type"],
)
def test_rights_to_read_a_schema_come_after_values_that_a_conversion_drops(
    before: Table, after: Table, drop: str
) -> None:
    granted = TablePlanner().plan([Schema("dev", "silver", grants={"bob": ("SELECT",)})], catalog([], []))
    plan = plan_from([before], [after])
    statements = short(compiled(TablePlan((*granted.changes, *plan.changes))))
    assert statements.index(drop) < statements.index("GRANT SELECT ON SCHEMA dev.silver TO bob")


def test_rights_to_read_go_before_values_are_computed() -> None:
    read = {"bob": ("SELECT",)}
    filled = orders(REGION, Column("copy", "string", using=Using("left(region, 2)")))
    plan = plan_from([orders(REGION, grants=read)], [filled])
    schema = Schema("dev", "silver", grants=read)
    held = CatalogState(tables={}, schema_states={"dev.silver": SchemaState(grants=read)})
    revoked = TablePlanner().plan([Schema("dev", "silver")], held, records_of([schema]))
    first_words = [text.split()[0] for text in short(compiled(TablePlan((*revoked.changes, *plan.changes))))]
    assert first_words[: first_words.index("UPDATE")].count("REVOKE") == 2


def test_a_clustering_column_leaves_the_clustering_before_it_is_dropped_and_a_filter_goes() -> None:
    before = orders(PLAIN, REGION, row_filter=BY_REGION, cluster_by=["mail"])
    plan = compiled_from([MINE, before], [MINE, orders(REGION, cluster_by=["region"])])
    assert [" ".join(statement.split()[3:5]) for statement in short(plan)][-3:] == [
        "CLUSTER BY",
        "DROP COLUMNS",
        "DROP ROW",
    ]


def test_a_filter_goes_before_the_column_that_it_reads() -> None:
    plan = compiled_from([MINE, orders(PLAIN, REGION, row_filter=BY_REGION)], [MINE, orders(PLAIN)])
    assert short(plan)[-2:] == [
        "ALTER TABLE orders DROP ROW FILTER",
        "ALTER TABLE orders DROP COLUMNS (region)",
    ]


def test_rights_to_read_a_schema_come_after_protection_and_go_before_it_is_weakened() -> None:
    schema = Schema("dev", "silver", grants={"bob": ("SELECT",)})
    closed = Schema("dev", "silver")
    granted = TablePlanner().plan([schema], catalog([], []))
    protected = plan_from([HIDE, orders()], [HIDE, orders(MASKED)])
    assert short(compiled(TablePlan((*granted.changes, *protected.changes)))) == [
        "ALTER TABLE orders ALTER COLUMN mail SET",
        "GRANT SELECT ON SCHEMA dev.silver TO bob",
    ]
    held = CatalogState(tables={}, schema_states={"dev.silver": SchemaState(grants=schema.grants)})
    revoked = TablePlanner().plan([closed], held, records_of([schema]))
    weakened = plan_from([HIDE, orders(MASKED)], [HIDE, orders()])
    assert short(compiled(TablePlan((*revoked.changes, *weakened.changes)))) == [
        "REVOKE SELECT ON SCHEMA dev.silver FROM bob",
        "ALTER TABLE orders ALTER COLUMN mail DROP",
    ]
    assert short(compiled(revoked)) == ["REVOKE SELECT ON SCHEMA dev.silver FROM bob"]


def test_a_schema_comes_before_what_is_in_it() -> None:
    state = CatalogState(
        tables={},
        missing_schemas=frozenset({("dev", "gov"), ("dev", "silver")}),
        functions={HIDE.key: ABSENT_FUNCTION},
        policies={PII.key: ABSENT_POLICY},
    )
    plan = compiled(TablePlanner().plan([Schema("dev", "silver"), HIDE, PII], state))
    assert waits(plan) == [
        ("schema create", ()),
        ("schema create", ()),
        ("function create", (0,)),
        ("policy create", (1, 2)),
    ]


@pytest.mark.parametrize("is_declared", [True, False])
def test_a_function_and_a_table_of_one_name_have_steps_of_their_own(*, is_declared: bool) -> None:
    table = Table("dev", "gov", "hide", [PLAIN])
    plan = compiled_from([], [HIDE, table] if is_declared else [table])
    assert len({step.resource for step in plan.steps}) == len(plan.steps) == 1 + is_declared
