"""A reviewed plan runs its own statements and no others."""

from pathlib import Path

import msgspec
import pytest

from delta_engine.actions import Create, CreateTable, TablePlan
from delta_engine.models import Schema
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.orchestrator import plan_sync
from delta_engine.orchestrate.runs import open_run
from delta_engine.plan_files.document import PlannedStatement, planned_statements
from delta_engine.plan_files.staleness import UnreviewedStatementError, require_statements
from tests.builders.deployment import deployment_over
from tests.builders.models import orders
from tests.fakes.planning import compiled
from tests.fakes.platform import FakePlatform, engine_over
from tests.projects.plan_files import PLAN as PLAN_FILE

PLAN = compiled(
    TablePlan(
        (
            Create(Schema("dev", "silver")),
            *tuple(CreateTable(orders(name=name)) for name in "ab"),
        )
    )
)
SCHEMA, A, B = planned_statements(PLAN)


def test_a_plan_that_was_reviewed_is_the_one_that_runs() -> None:
    assert (SCHEMA.table, A.table) == ("", "dev.silver.a")
    require_statements((SCHEMA, A, B), PLAN)


@pytest.mark.parametrize(
    ("reviewed", "sql"),
    [((), SCHEMA.sql), ((SCHEMA, A), B.sql), ((SCHEMA, B, A), A.sql), ((SCHEMA, A, B, B), B.sql)],
    ids=["none", "fewer", "another order", "more"],
)
def test_every_difference_is_refused(reviewed: tuple[PlannedStatement, ...], sql: str) -> None:
    with pytest.raises(UnreviewedStatementError, match="was stopped before it ran") as stopped:
        require_statements(reviewed, PLAN)
    assert stopped.value.sql == sql


def test_a_plan_that_was_not_reviewed_runs_nothing(tmp_path: Path) -> None:
    platform, deployment = FakePlatform(), deployment_over(tmp_path)
    models = [orders(name="a", comment="x"), orders(name="b", comment="x")]
    platform.models = {model.qualified_name.key: model for model in models}
    with open_run(engine_over(platform, deployment), "apply") as run:
        planned = plan_sync(run, models)
        first = planned_statements(planned.compiled)[:1]
        reviewed = msgspec.structs.replace(PLAN_FILE, statements=first)
        with pytest.raises(UnreviewedStatementError, match="CREATE TABLE"):
            apply_planned(run, planned, reviewed=reviewed).result()
    assert platform.statements == []
    state = deployment.peek_replayed()
    assert state is None or state.applied_plans == ()
