"""What moved between two plans of one command."""

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest

from delta_engine.plan_files.document import (
    DeploymentFingerprint,
    PlanFile,
    PlannedStatement,
    TableFingerprint,
)
from delta_engine.plan_files.staleness import MoveKind, moves
from tests.cases.golden_texts import assert_golden_lines
from tests.projects.plan_files import PLAN, SOME

OTHER = "sha256:" + "1" * 64
NOON, LATER = (datetime(2026, 3, 1, hour, tzinfo=timezone.utc) for hour in (12, 13))
ORDERS = "dev.silver.orders"
TOUCHED = {f"table.{ORDERS}": SOME, "schema.dev.x": None}


def recorded(state_id: str | None = "s", **records: str | None) -> DeploymentFingerprint:
    """Return the fingerprint of a deployment state: of a table, a schema, and other `records`."""
    return DeploymentFingerprint(state_id=state_id, records={**TOUCHED, **records})


def found(**fingerprints: Any) -> PlanFile:
    known = {"deployment_state": recorded(), **fingerprints}
    return msgspec.structs.replace(PLAN, fingerprints=msgspec.structs.replace(PLAN.fingerprints, **known))


def table(**fields: Any) -> PlanFile:
    return found(tables={ORDERS: TableFingerprint(**fields)})


def test_nothing_moved() -> None:
    assert moves(PLAN, PLAN) == ()


TABLES = [
    (table(), table(state=SOME)),
    (table(state=SOME), table()),
    (table(state=SOME), table(state=OTHER)),
    (table(state=SOME, table_id="1"), table(state=OTHER, table_id="2")),
    (table(state=SOME, created_at=NOON), table(state=SOME, created_at=LATER)),
    (found(schemas={"dev.x": SOME}), found(schemas={"dev.x": OTHER})),
    (found(schemas={"dev.x": SOME}), found(schemas={"dev.x": None})),
    (found(schemas={"dev.x": None}), found(schemas={"dev.x": SOME})),
]
ORDERS_RECORD = f"table.{ORDERS}"
DEPLOYMENTS = [
    (found(), found(deployment_state=recorded(None))),
    (found(), found(deployment_state=recorded("t"))),
    (found(), found(deployment_state=recorded(**{ORDERS_RECORD: OTHER}))),
    (found(), found(deployment_state=recorded(**{ORDERS_RECORD: None}))),
    (found(deployment_state=recorded(None)), found(deployment_state=recorded(**{"schema.dev.x": SOME}))),
]
MODELS = [
    (
        msgspec.structs.replace(found(), declared_schemas={}),
        msgspec.structs.replace(found(), declared_schemas={"dev.x": SOME}),
    )
]


def test_what_moved(request: pytest.FixtureRequest) -> None:
    said = ["; ".join(map(str, moves(then, now))) for then, now in (*TABLES, *DEPLOYMENTS, *MODELS)]
    assert_golden_lines(said, Path(__file__).parent / "golden" / "moves.txt", request)


def test_the_same_table_is_known_by_its_id_whenever_it_was_made() -> None:
    then = table(state=SOME, table_id="1", created_at=NOON)
    assert moves(then, table(state=SOME, table_id="1", created_at=LATER)) == ()
    assert moves(then, table(state=SOME)) == ()


def test_a_first_apply_of_other_tables_moves_nothing() -> None:
    then = found(deployment_state=recorded(None))
    assert moves(then, found(deployment_state=recorded("t"))) == ()


def elsewhere(plan: PlanFile) -> PlanFile:
    """Return a plan over another table that moved, of another model."""
    tables = {**plan.fingerprints.tables, "dev.silver.b": TableFingerprint(state=OTHER)}
    fingerprints = msgspec.structs.replace(plan.fingerprints, tables=tables)
    return msgspec.structs.replace(
        plan, fingerprints=fingerprints, models={**plan.models, "dev.silver.b": OTHER}
    )


def test_what_the_plan_does_not_touch_may_move() -> None:
    tables = {**PLAN.fingerprints.tables, "dev.silver.b": TableFingerprint(state=SOME)}
    assert moves(found(tables=tables), elsewhere(found())) == ()


def test_statements_are_named_only_if_nothing_that_counts_has_moved() -> None:
    other = msgspec.structs.replace(PLAN, statements=(PlannedStatement(table="", sql="DROP"),))
    (move,) = moves(PLAN, other)
    assert move.kind is MoveKind.STATEMENTS_CHANGED
    assert "\n    and would be: DROP" in str(move)
    (fewer,) = moves(PLAN, msgspec.structs.replace(PLAN, statements=()))
    assert str(fewer).endswith("and would be: nothing")
    moved = msgspec.structs.replace(other, models={ORDERS: OTHER})
    assert [move.kind for move in moves(PLAN, elsewhere(moved))] == [MoveKind.MODEL_CHANGED]


def test_other_moves_explain_other_statements() -> None:
    other = msgspec.structs.replace(PLAN, statements=(PlannedStatement(table="", sql="DROP"),))
    kinds = [move.kind for move in moves(PLAN, elsewhere(other))]
    assert kinds == [MoveKind.MODEL_ADDED, MoveKind.STATEMENTS_CHANGED]
