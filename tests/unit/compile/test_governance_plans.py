"""Plans of functions and policies: created, changed, dropped or kept, as the policy of the environment says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from delta_engine.actions import Align, Create, Drop, Keep, TablePlan
from delta_engine.actions.policy import Policy, Removed
from delta_engine.aspects.function_definition import ReplaceFunction
from delta_engine.aspects.policy_definition import ReplacePolicy
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import (
    AbacPolicy,
    Column,
    Function,
    Parameter,
    PolicyMask,
    PolicyScope,
    Schema,
    SecurableName,
    Table,
)
from delta_engine.state.function_states import ABSENT_FUNCTION, FunctionState, function_state_of
from delta_engine.state.policy_states import ABSENT_POLICY, PolicyState, policy_state_of
from delta_engine.state.states import ABSENT, CatalogState, SchemaState, TableState
from tests.builders.deployment import records_of

HIDE = Function("dev", "gov", "hide", "string", "left(v, 3)", [Parameter("v", "string")])
PII = AbacPolicy(
    "pii",
    PolicyScope("schema", "dev.gov"),
    PolicyMask("dev.gov.hide", "m"),
    ["account users"],
    match={"m": "has_tag('pii')"},
)
TABLE_OF_THE_SAME_NAME = Table("dev", "gov", "hide", [Column("id", "int")])
DROPS = Policy(removed_functions=Removed.DROP, removed_policies=Removed.DROP)


def catalog(
    function: FunctionState = ABSENT_FUNCTION,
    policy: PolicyState = ABSENT_POLICY,
    table: TableState = ABSENT,
    **others: Any,
) -> CatalogState:
    return CatalogState(
        tables={TABLE_OF_THE_SAME_NAME.key: table},
        schema_states={"dev.gov": SchemaState()},
        functions={HIDE.key: function},
        policies={PII.key: policy},
        **others,
    )


WHOLE = catalog(function_state_of(HIDE), policy_state_of(PII))


def test_missing_functions_and_policies_are_created_as_a_whole() -> None:
    plan = TablePlanner().plan([HIDE, PII], catalog())
    assert plan == TablePlan((Create(HIDE), Create(PII)))


def test_nothing_is_planned_where_nothing_differs() -> None:
    assert TablePlanner().plan([HIDE, PII], WHOLE) == TablePlan()


def test_what_differs_is_replaced() -> None:
    plan = TablePlanner().plan([replace(HIDE, body="v"), replace(PII, to=("hr",))], WHOLE)
    assert [(align.name.kind, *map(type, align.actions)) for align in plan.alignments] == [
        ("function", ReplaceFunction),
        ("policy", ReplacePolicy),
    ]


def test_what_was_not_read_is_not_planned() -> None:
    assert TablePlanner().plan([HIDE, PII], CatalogState(tables={})) == TablePlan()


def test_a_schema_that_only_a_function_needs_is_created() -> None:
    state = CatalogState(
        tables={}, missing_schemas=frozenset({("dev", "gov")}), functions={HIDE.key: ABSENT_FUNCTION}
    )
    assert TablePlanner().plan([HIDE], state) == TablePlan((Create(Schema("dev", "gov")), Create(HIDE)))


@pytest.mark.parametrize(("policy", "change"), [(Policy(), Keep), (DROPS, Drop)], ids=["kept", "dropped"])
def test_what_is_no_longer_declared_is_kept_unless_the_policy_drops_it(policy: Policy, change: Any) -> None:
    plan = TablePlanner(policy).plan([], WHOLE, records_of([HIDE, PII]))
    assert plan.changes == (change(HIDE.qualified_name), change(PII.qualified_name))


def test_nothing_that_others_made_is_dropped() -> None:
    assert TablePlanner(DROPS).plan([], WHOLE) == TablePlan()


def test_what_is_gone_is_neither_kept_nor_dropped() -> None:
    assert TablePlanner(DROPS).plan([], catalog(), records_of([HIDE, PII])) == TablePlan()


def test_an_undo_drops_what_the_run_created_and_nothing_else() -> None:
    records = records_of([HIDE, PII])
    removed: dict[SecurableName, int | None] = {PII.qualified_name: 0}
    plan = TablePlanner(DROPS).plan([], WHOLE, records, removed, undoes=True)
    assert plan.changes == (
        Keep(HIDE.qualified_name),
        Drop(PII.qualified_name, undoes_creation=True),
    )


def test_a_table_may_have_the_name_of_a_function() -> None:
    table, changed = TABLE_OF_THE_SAME_NAME, replace(HIDE, body="v")
    records = records_of([table, HIDE])
    plan = TablePlanner().plan([table, changed], catalog(function_state_of(HIDE)), records)
    assert [(type(change), change.name.kind) for change in plan.changes] == [
        (Create, "table"),
        (Align, "function"),
    ]
