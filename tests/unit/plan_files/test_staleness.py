"""What makes a plan stale, and how it is named."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest

from delta_engine.aspects.aspect import Change
from delta_engine.plan_files.document import PlanFile, PlannedStatement, TouchedResource
from delta_engine.plan_files.staleness import moves
from tests.cases.golden_texts import assert_golden_lines
from tests.projects.plan_files import PLAN, SOME

OTHER = "sha256:" + "1" * 64
NOON, LATER = (datetime(2026, 3, 1, hour, tzinfo=timezone.utc) for hour in (12, 13))
ORDERS, SCHEMA = "dev.silver.orders", "dev.gold"


def changed(**fields: Any) -> PlanFile:
    return msgspec.structs.replace(PLAN, **fields)


def touching(table: Mapping[str, Any], schema: Mapping[str, Any] = {}) -> PlanFile:
    """Return a plan that touches a table and a schema of these facts."""
    return changed(
        touched={
            f"table.{ORDERS}": TouchedResource(**table),
            f"schema.{SCHEMA}": TouchedResource(**schema),
        }
    )


def planning(*changes: tuple[str, str | None, str | None], **further: object) -> PlanFile:
    """Return a plan of these changes of a table: subject, observed and desired."""
    action = {
        "action": "Set",
        "changes": [
            {
                "sign": Change(subject, observed, desired).sign.value,
                "subject": subject,
                "observed": observed,
                "desired": desired,
            }
            for subject, observed, desired in changes
        ],
    }
    table = {"table": "dev.silver.Orders", "change": "align", "actions": [action]}
    return changed(plan={"tables": [table], **further})


def of_schema(desired: str) -> PlanFile:
    change = {"sign": "+", "subject": "comment", "observed": None, "desired": desired}
    return changed(plan={"align_schemas": [{"schema": "dev.gold", "actions": [{"change": change}]}]})


def policy(**fields: Any) -> PlanFile:
    return changed(policy=msgspec.structs.replace(PLAN.policy, **fields))


def test_nothing_moved() -> None:
    assert moves(PLAN, PLAN) == ()


TABLES = [
    (touching({}), touching({"observed": SOME})),
    (touching({"observed": SOME}), touching({})),
    (touching({"observed": SOME}), touching({"observed": OTHER})),
    (touching({"observed": SOME, "table_id": "1"}), touching({"observed": OTHER, "table_id": "2"})),
    (touching({"observed": SOME, "created_at": NOON}), touching({"observed": SOME, "created_at": LATER})),
    (touching({}, {"observed": SOME}), touching({}, {"observed": OTHER})),
    (touching({}, {"observed": SOME}), touching({}, {})),
    (touching({}, {}), touching({}, {"observed": SOME})),
]
MODELS = [
    (touching({"declared": SOME}), touching({"declared": OTHER})),
    (touching({"declared": SOME, "observed": SOME}), touching({})),
    (touching({}, {}), touching({}, {"declared": SOME})),
]
DEPLOYMENTS = [
    (PLAN, changed(state_id=None)),
    (PLAN, changed(state_id="t")),
    (touching({"recorded": SOME}), touching({"recorded": OTHER})),
    (touching({"recorded": SOME}), touching({})),
    (touching({}, {}), touching({}, {"recorded": SOME})),
]
POLICIES = [
    (PLAN, policy(allow=(), create_schemas=True)),
    (PLAN, policy(tags="full")),
    (policy(removed_functions="keep"), policy(removed_functions="drop")),
    (policy(removed_policies="drop"), policy(removed_policies="keep")),
    (policy(removed_views="keep"), policy(removed_views="drop")),
    (PLAN, policy(max_rewrite_bytes=5)),
]
CHANGES = [
    (planning(("comment", "'a'", "'b'")), planning(("comment", "'c'", "'b'"))),
    (planning(("comment", "'a'", "'b'")), planning(("comment", "'a'", "'c'"))),
    (planning(("comment", "'a'", "'b'")), planning(("comment", "'c'", "'d'"))),
    (planning(("column a comment", None, "'b'")), planning(("column a comment", "'c'", "'b'"))),
    (planning(("comment", "'a'", "'b'")), planning(("comment", "'a'", "'b'"), ("tag x", None, "1"))),
    (planning(("comment", "'a'", "'b'"), ("tag x", "1", None)), planning(("tag x", "1", None))),
    (planning(("order", "1", "2")), planning(("order", "1", "2"), ("order", "2", "3"))),
    (PLAN, of_schema("'b'")),
    (
        planning(("comment", "'a'", "'b'"), create_schemas=[{"schema": "dev.gold"}]),
        planning(("comment", "'a'", "'b'")),
    ),
    (changed(plan={}), changed(plan={"tables": [{"table": "dev.silver.x", "change": "drop"}]})),
    (of_schema("'a'"), of_schema("'b'")),
    (planning(("comment", "'a'", "'b'")), planning(("comment", "'a\x1b[2J\n'", "'b'"))),
]


def test_what_moved(request: pytest.FixtureRequest) -> None:
    pairs = (*TABLES, *MODELS, *DEPLOYMENTS, *POLICIES, *CHANGES)
    lines = ["; ".join(map(str, moves(then, now))) for then, now in pairs]
    assert all(lines)
    assert_golden_lines(lines, Path(__file__).parent / "golden" / "moves.txt", request)


def test_a_move_has_the_name_of_its_table_in_lower_case() -> None:
    (move,) = moves(planning(("comment", "'a'", "'b'")), planning(("comment", "'c'", "'b'")))
    assert move.name == ORDERS


def test_the_same_table_is_known_by_its_id_whenever_it_was_made() -> None:
    then = touching({"observed": SOME, "table_id": "1", "created_at": NOON})
    assert moves(then, touching({"observed": SOME, "table_id": "1", "created_at": LATER})) == ()
    assert moves(then, touching({"observed": SOME})) == ()


def test_a_first_apply_of_other_tables_moves_nothing() -> None:
    assert moves(changed(state_id=None), changed(state_id="t")) == ()


def test_an_older_file_has_no_removed_functions_and_policies() -> None:
    assert moves(PLAN, policy(removed_functions="drop", removed_policies="drop", removed_views="drop")) == ()


def test_what_the_file_does_not_touch_may_move() -> None:
    further = {**PLAN.touched, "table.dev.silver.b": TouchedResource(observed=OTHER, recorded=OTHER)}
    assert moves(PLAN, changed(touched=further)) == ()


@pytest.mark.parametrize(
    "further",
    [
        {"kept_tables": ["dev.silver.b"]},
        {"consents": [{"kind": "drop_column", "table": "dev.silver.b", "reason": "another"}]},
        {"environment": "dev", "has_changes": True},
    ],
    ids=lambda further: next(iter(further)),
)
def test_what_a_plan_shows_beside_its_changes_may_move(further: dict[str, object]) -> None:
    assert moves(planning(("comment", "'a'", "'b'")), planning(("comment", "'a'", "'b'"), **further)) == ()


def test_costs_rows_and_authors_of_drift_may_move() -> None:
    def plan(rows: int, by: str) -> PlanFile:
        drift = {"severity": "low", "by": by, "at": None}
        change = {
            "sign": "~",
            "subject": "comment",
            "observed": "'a'",
            "desired": "'b'",
            "undoes_drift": drift,
        }
        align = {"table": "x", "change": "align", "cost": {"rows": rows}, "actions": [{"changes": [change]}]}
        return changed(plan={"tables": [align, {"table": "y", "change": "drop", "rows": rows}]})

    assert moves(plan(3, "ana"), plan(4, "bob")) == ()


def test_statements_are_named_only_if_nothing_else_has_moved() -> None:
    other = changed(statements=(PlannedStatement(table="", sql="DROP"),))
    (move,) = moves(PLAN, other)
    assert str(move).endswith("\n    and would be: DROP")
    (fewer,) = moves(PLAN, changed(statements=()))
    assert str(fewer).endswith("and would be: nothing")
    moved = msgspec.structs.replace(touching({"declared": OTHER}), statements=other.statements)
    lines = [str(move) for move in moves(touching({"declared": SOME}), moved)]
    assert lines == [f"the model of {ORDERS} was changed"]
